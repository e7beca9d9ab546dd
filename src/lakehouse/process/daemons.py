"""Detached daemons: one per lake, started on demand, configured through standard input."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lakehouse.core.errors import LakeError
from lakehouse.process.locks import try_locked
from lakehouse.process.logs import failure_line, log_size, open_log
from lakehouse.process.polling import wait_until

#: The exit code of a daemon that finds another one running.
ALREADY_RUNNING = 75


class DaemonStartError(Exception):
    """A daemon ended, or did not become ready in time; the message is the reason."""


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
