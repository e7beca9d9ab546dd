"""Processes are identified by pid and start time, and ended with their group."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from lakehouse.process.pids import memory_mb, start_time, terminate, wait_until


def started(code: str) -> subprocess.Popen[str]:
    """A Python process in a group of its own that has printed a line."""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_a_process_is_ended_and_its_children_with_it() -> None:
    code = "import subprocess, sys; c = subprocess.Popen(['sleep', '60']); print(c.pid, flush=True); c.wait()"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True)
    with process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        terminate(process.pid, start_time(process.pid))
        process.wait()
    assert wait_until(lambda: not start_time(child), 60)


def test_a_process_that_ignores_the_signal_is_killed_after_the_timeout() -> None:
    code = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)"
    )
    with started(code) as process:
        terminate(process.pid, start_time(process.pid), timeout_s=0.2)
        assert process.wait(timeout=60) == -signal.SIGKILL


def test_another_process_that_has_the_pid_now_is_not_touched() -> None:
    with started("import time; print('ready', flush=True); time.sleep(60)") as process:
        terminate(process.pid, "another start time")
        terminate(process.pid, "")
        assert process.poll() is None
        process.kill()


def test_an_ended_process_has_no_start_time() -> None:
    with started("print('ready')") as process:
        process.wait()
    assert start_time(process.pid) == ""
    assert start_time(os.getpid())


def test_memory_counts_the_children() -> None:
    code = "import subprocess, sys; x = bytearray(80 << 20); print('ready', flush=True); import time; time.sleep(60)"
    before = memory_mb(os.getpid()) or 0
    with started(code) as process:
        assert (memory_mb(os.getpid()) or 0) - before > 60
        process.kill()
    assert memory_mb(process.pid) is None


def test_waiting_ends_with_the_condition_or_the_timeout() -> None:
    values = iter([False, False, True])
    assert wait_until(lambda: next(values), 5, every_s=0.001)
    begin = time.monotonic()
    assert not wait_until(lambda: False, 0.05, every_s=0.001)
    assert time.monotonic() - begin < 2
