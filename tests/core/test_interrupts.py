"""Ctrl-C at moments at which Python's own handler leaves a lock locked or forgets the signal."""

from __future__ import annotations

import subprocess
import sys

import pytest

START = (
    "import os, signal, time\nfrom lakehouse.core.interrupts import raise_interrupts\nraise_interrupts()\nsteps = []\n"
)
#: The signal comes while the import machinery runs: what follows there, such as giving a lock back, must not be left out.
IMPORTING = """
lines = "os.kill(os.getpid(), signal.SIGINT)\\nfor _ in range(10): pass\\nsteps.append('lock given back')"
exec(compile(lines, "<frozen importlib._bootstrap>", "exec"))
"""
#: The signal comes while an object is destroyed, where an exception is only printed.
DESTROYING = """
class Destroyed:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(10): pass
steps.append(bool(Destroyed()))
"""
END = "\ntime.sleep(60)\n"


def interrupted(script: str) -> str:
    lines = "".join(f"    {line}\n" for line in (script + END).splitlines())
    guarded = f"{START}try:\n{lines}except KeyboardInterrupt:\n    print('stopped', *steps)\n"
    done = subprocess.run([sys.executable, "-c", guarded], capture_output=True, text=True, timeout=50, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize(("script", "steps"), [(IMPORTING, "lock given back"), (DESTROYING, "True")])
def test_a_signal_at_a_bad_moment_is_put_off_and_not_lost(script: str, steps: str) -> None:
    assert interrupted(script) == f"stopped {steps}\n"


def test_another_error_of_a_destructor_is_still_printed() -> None:
    script = "class Destroyed:\n    def __del__(self): raise ValueError('printed')\nDestroyed()\nos.kill(os.getpid(), signal.SIGINT)"
    shown = interrupted(script)
    assert "stopped" in shown and "ValueError: printed" in shown


def test_a_process_that_ignores_the_signal_goes_on_ignoring_it() -> None:
    script = (
        "import os, signal\nfrom lakehouse.core.interrupts import raise_interrupts\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\nraise_interrupts()\nos.kill(os.getpid(), signal.SIGINT)\nprint('goes on')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=50, check=False)
    assert done.stdout == "goes on\n"
