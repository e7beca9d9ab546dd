"""A guarded command ends with its parent, however the parent ends."""

from __future__ import annotations

import subprocess
import sys

from lakehouse.process.guarded import guarded
from lakehouse.process.pids import start_time, wait_until

_PARENT = """
import subprocess, sys
from lakehouse.process.guarded import guarded
child = subprocess.Popen(guarded(["/bin/sleep", "60"]))
print(child.pid, flush=True)
child.wait()
"""


def test_the_command_ends_with_a_killed_parent() -> None:
    with subprocess.Popen([sys.executable, "-c", _PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert start_time(child)
        parent.kill()
    assert wait_until(lambda: not start_time(child), 10)


def test_the_command_becomes_the_process_and_keeps_its_exit_code() -> None:
    done = subprocess.run(guarded(["/bin/sh", "-c", "echo $0 here; exit 7", "it is"]), capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("it is here\n", 7)


def test_root_is_another_user_for_a_server_that_refuses_root() -> None:
    done = subprocess.run(guarded(["/usr/bin/id", "-u"], not_root=True), capture_output=True, text=True)
    assert done.stdout.strip() != "0", done.stderr
