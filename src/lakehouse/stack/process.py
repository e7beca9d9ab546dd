"""A server as a process: started with its files written, told apart from another with the same number, ended politely."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from lakehouse.core.errors import ServiceFailedError
from lakehouse.stack.model import ProcessSpec, StackContext

_CHILD = str(Path(__file__).with_name("child.py"))
_STOP_TIMEOUT_S = 20.0
_LARGEST_LOG = 20_000_000
_TROUBLE = re.compile(r"\bERROR\b|\bFATAL\b|Exception\b|\w*Error\b")
#: What a server gets of our environment; settings of ours, and secrets that are somebody else's, stay here.
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "USER", "SSL_CERT_FILE", "SSL_CERT_DIR", "PYTHONPATH")


def failed(service: str, why: str, log: Path | str = "") -> ServiceFailedError:
    """The error of a service that does not run."""
    whole = f" (the whole log: {log})" if log else ""
    return ServiceFailedError(f"{service} does not run: {why}", f"lake logs {service}{whole}")


def fingerprint(process: ProcessSpec) -> str:
    """Changes when anything does that the process was started with."""
    parts = [process.argv, sorted(process.environment.items()), process.input, process.prepared_with]
    parts += [sorted((str(path), text) for path, text in process.files.items())]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def guarded(argv: Sequence[str], stop_signal: int = signal.SIGTERM, not_root: bool = False) -> list[str]:
    """The command that ends when this process does, and is not root where it must not be."""
    return [sys.executable, "-I", _CHILD, str(os.getpid()), str(int(stop_signal)), str(int(not_root)), *argv]


def start(name: str, process: ProcessSpec, context: StackContext) -> subprocess.Popen[bytes]:
    """Start a server, its output going to its log.

    The thread that calls this must live as long as the server: the system ends the one with the other.
    """
    log = context.log(name)
    if log.is_file() and log.stat().st_size > _LARGEST_LOG:
        log.replace(log.with_suffix(".log.1"))
    with log.open("ab") as out:
        return _start(name, process, context, out)


def run_in_foreground(name: str, process: ProcessSpec, context: StackContext) -> int:
    """Run a server with its output on ours; told to end, it is told so too. Gives its exit code."""
    started = _start(name, process, context, None)
    for told in (signal.SIGTERM, signal.SIGINT):
        signal.signal(told, lambda *_: started.send_signal(process.stop_signal))
    return started.wait()


def _start(name: str, process: ProcessSpec, context: StackContext, out: IO[bytes] | None) -> subprocess.Popen[bytes]:
    for path, text in process.files.items():
        write_private(path, text)
    folder = process.folder or context.folder(name)
    folder.mkdir(parents=True, exist_ok=True)
    started = subprocess.Popen(
        guarded(process.argv, process.stop_signal, process.not_root),
        stdin=subprocess.PIPE if process.input else subprocess.DEVNULL,
        stdout=out,
        stderr=out,
        cwd=folder,
        env=environment(process),
        start_new_session=True,
    )
    if process.input:
        assert started.stdin is not None
        with suppress(BrokenPipeError), started.stdin:
            started.stdin.write(process.input.encode())
    return started


def environment(process: ProcessSpec) -> dict[str, str]:
    """What a server sees: little of ours, in UTC, and its own."""
    ours = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {**ours, "TZ": "UTC", **process.environment}


def run_once(name: str, process: ProcessSpec, context: StackContext, timeout: float = 300.0) -> None:
    """Run a program that ends, such as one that makes a schema."""
    log = context.log(name)
    before = log_size(log)
    started = start(name, process, context)
    try:
        code = started.wait(timeout)
    except subprocess.TimeoutExpired as exc:
        started.kill()
        started.wait()
        raise failed(name, f"{process.argv[0]} took too long", log) from exc
    if code != 0:
        raise failed(name, last_words(log, before), log)


def write_private(path: Path, text: str) -> None:
    """A file that only its owner reads, complete or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.parent.chmod(0o700)
    new = path.with_name(path.name + ".new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        out.write(text)
    new.replace(path)


def properties_text(values: Mapping[str, str]) -> str:
    """Java's properties: a backslash in a value stands for itself only if it is doubled."""
    doubled = "\\" * 2
    return "".join(f"{name}={value.replace(doubled[0], doubled)}\n" for name, value in values.items())


def log_size(log: Path) -> int:
    """Where what a log says from now on begins."""
    return log.stat().st_size if log.is_file() else 0


def last_words(log: Path, since: int = 0) -> str:
    """The last line of a log that tells what went wrong, of those after so many bytes; else the last that says anything."""
    if not log.is_file():
        return "it said nothing."
    with log.open("rb") as file:
        file.seek(max(since, log.stat().st_size - 50_000))
        lines = [line.strip() for line in file.read().decode(errors="replace").splitlines()]
    telling = [line for line in lines if line.count(" ") >= 2 and not line.startswith(("at ", "... "))]
    wrong = [line for line in telling if _TROUBLE.search(line)]
    return (wrong or telling or ["it said nothing."])[-1][:300]


def start_mark(pid: int) -> str:
    """When a process started, as the system tells: with the pid it names one process for ever. Nothing if it is gone."""
    if sys.platform == "linux":
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return ""
        # A zombie is gone, but for its threads: those of a large Java let go of its sockets a moment later.
        return "" if fields[0] == "Z" and int(fields[17]) <= 1 else fields[19]
    told = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True)
    return told.stdout.strip()


def end(pid: int, mark: str, stop_signal: int, timeout: float = _STOP_TIMEOUT_S) -> None:
    """End the process that had this mark, by force in the end, and whatever it left in its group."""
    if not mark or start_mark(pid) != mark:
        return
    with suppress(ProcessLookupError):
        os.kill(pid, stop_signal)
    _wait_for_end(pid, mark, timeout)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    _wait_for_end(pid, mark, timeout)


def _wait_for_end(pid: int, mark: str, timeout: float) -> None:
    deadline = time.monotonic() + timeout
    while start_mark(pid) == mark and time.monotonic() < deadline:
        time.sleep(0.02)


def end_left_over(state: Path) -> None:
    """End the servers that a supervisor wrote down before it was killed, and that did not notice."""
    try:
        written = json.loads(state.read_text())
    except (OSError, ValueError):
        return
    for fact in written:
        if fact["pid"]:
            end(fact["pid"], fact["mark"], fact["stop_signal"])


def memory_mb(pid: int) -> int | None:
    """The resident memory of a process and all below it, shared pages counted once; None where that is not told."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        own = next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")) // 1024
        children = {
            child for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
        }
    except (OSError, StopIteration):
        return None
    return own + sum(memory_mb(int(child)) or 0 for child in children)
