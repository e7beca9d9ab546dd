"""Detached daemons: one per lake, started on demand, configured through standard input; and the log files of child processes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from lakehouse.core.errors import LakeError
from lakehouse.process.files import try_locked
from lakehouse.process.pids import wait_until

#: The exit code of a daemon that finds another one running.
ALREADY_RUNNING = 75


class DaemonStartError(Exception):
    """A daemon ended, or did not become ready in time; the message is the reason."""


def module_command(module: str, *arguments: str) -> list[str]:
    """The command that runs a module in another Python process. No file of the working folder takes the place of a library there."""
    return [sys.executable, "-P", "-m", module, *arguments]


def start_daemon(
    command: Sequence[str],
    stdin: str,
    log: Path,
    is_ready: Callable[[], bool],
    timeout_s: float,
    cwd: Path | None = None,
) -> None:
    """Start a daemon and wait until it is ready.

    Args:
        stdin: what it reads from standard input, because everybody on the machine can list a command's arguments.
        cwd: its working folder (default: that of this process).
    Raises:
        DaemonStartError: it ended or was not ready in time.
    """
    with open_log(log) as output:
        offset = log_size(log)
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,  # it outlives the terminal, and a Ctrl-C there does not reach it
            env={**os.environ, "TZ": "UTC"},
            cwd=cwd,
        )
    assert process.stdin is not None
    with process.stdin:
        process.stdin.write(stdin.encode())

    def has_ended() -> bool:
        return process.poll() not in (None, ALREADY_RUNNING)

    in_time = wait_until(lambda: is_ready() or has_ended(), timeout_s)
    if has_ended():
        raise DaemonStartError(failure_line(log, offset))
    if not in_time:
        process.kill()
        process.wait()
        raise DaemonStartError(f"it was not ready within {timeout_s:.0f} s.")
    process.returncode = 0  # it outlives this process on purpose; Python need not warn that it still runs


@contextmanager
def sole_daemon(lock: Path) -> Iterator[None]:
    """Run the block as the only process that holds the lock; exit with ALREADY_RUNNING if another one does."""
    with try_locked(lock) as is_held:
        if not is_held:
            sys.exit(ALREADY_RUNNING)
        yield


def run_main(main: Callable[[], object]) -> int:
    """Run the main function of a child process; a LakeError becomes one line on stderr and exit code 1."""
    try:
        main()
    except LakeError as exc:
        sys.stderr.write(f"{exc.message} {exc.hint}\n")
        return 1
    return 0


_MAX_BYTES = 20_000_000
_TAIL_BYTES = 50_000
_ERROR = re.compile(r"\bERROR\b|\bFATAL\b|Exception\b|\w*Error\b")
#: Frames of a Java stack trace, and the headline of a JVM that does not start: its reason is the line after.
_NO_REASON = ("at ", "... ", "Error occurred during initialization of VM")
_NO_OUTPUT = "it wrote nothing to its log."


def open_log(log: Path) -> IO[bytes]:
    """Open a log to append to; one that has grown too large is renamed to `.log.1` first."""
    log.parent.mkdir(parents=True, exist_ok=True)
    if log_size(log) > _MAX_BYTES:
        log.replace(log.with_suffix(".log.1"))
    return log.open("ab")


def log_size(log: Path) -> int:
    """The size in bytes: the offset at which later output begins."""
    return log.stat().st_size if log.is_file() else 0


def failure_line(log: Path, since: int = 0) -> str:
    """The last line after an offset that names an error, else the last line that is a sentence."""
    if not log.is_file():
        return _NO_OUTPUT
    with log.open("rb") as file:
        file.seek(max(since, log.stat().st_size - _TAIL_BYTES))
        lines = [line.strip() for line in file.read().decode(errors="replace").splitlines()]
    sentences = [line for line in lines if line.count(" ") >= 2 and not line.startswith(_NO_REASON)]
    errors = [line for line in sentences if _ERROR.search(line)]
    return (errors or sentences or [_NO_OUTPUT])[-1][:300]
