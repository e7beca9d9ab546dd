"""Processes by pid: identify one, measure its memory, wait for it, end it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from lakehouse.core.refs import BranchOwner

STOP_TIMEOUT_S = 20.0


def start_time(pid: int) -> str:
    """When a process started, as the system records it; with the pid it identifies one process. Empty if it has ended."""
    if sys.platform == "linux":
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return ""
        # A zombie has ended, except for its threads: those of a large JVM release its sockets a moment later.
        return "" if fields[0] == "Z" and int(fields[17]) <= 1 else fields[19]
    listed = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True)
    return listed.stdout.strip()


def current_process() -> BranchOwner:
    """This process, as others on this host and elsewhere can identify it."""
    import socket

    return BranchOwner(socket.gethostname() or "localhost", os.getpid(), start_time(os.getpid()))


def has_ended(owner: BranchOwner) -> bool:
    """Whether a process of this host has ended."""
    return start_time(owner.pid) != owner.started


def terminate(pid: int, started: str, stop_signal: int = signal.SIGTERM, timeout_s: float | None = None) -> None:
    """End the process with this pid and start time, by force after the timeout, and what is left of its group.

    Args:
        started: what `start_time` returned; another process that has the pid now is not touched.
        timeout_s: seconds between the signal and SIGKILL (default: STOP_TIMEOUT_S).
    """
    if not started or start_time(pid) != started:
        return
    timeout_s = STOP_TIMEOUT_S if timeout_s is None else timeout_s
    with suppress(ProcessLookupError):
        os.kill(pid, stop_signal)
    wait_until(lambda: start_time(pid) != started, timeout_s)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    wait_until(lambda: start_time(pid) != started, timeout_s)


def memory_mb(pid: int) -> int | None:
    """Resident memory of a process and its descendants, shared pages counted once; None where the system has no figure."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        own = next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")) // 1024
        children = {
            child for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
        }
    except (OSError, StopIteration):
        return None
    return own + sum(memory_mb(int(child)) or 0 for child in children)


def wait_until(condition: Callable[[], object], timeout_s: float, every_s: float = 0.02) -> bool:
    """Check a condition repeatedly; False if it still does not hold after the timeout."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(every_s)
    return True
