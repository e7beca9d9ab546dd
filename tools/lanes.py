"""All tests in two lanes, each a pytest of its own: those that use a shared server, and the others.

`python tools/lanes.py [PYTEST_ARGS…]`. A server is started once, in the one lane that uses it, and two cores have two Sparks to
work for. (pytest-xdist's own groups do nothing under pytest 9.2, which keeps a test's id where that plugin does not look.)
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time

LANES = {"servers": "servers", "others": "not servers"}
NO_TESTS = 5
"""How pytest ends when the arguments leave a lane nothing to do."""


def started(lane: str, chosen: str, arguments: list[str]) -> subprocess.Popen[str]:
    # What failed last is kept in one file, which two cannot write at once.
    command = [sys.executable, "-u", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--durations=10", "-m", chosen]
    process = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    threading.Thread(target=told, args=(lane, process), daemon=True).start()
    return process


def told(lane: str, process: subprocess.Popen[str]) -> None:
    """Every line of a lane as it comes, with the lane's name before it."""
    assert process.stdout
    for line in process.stdout:
        sys.stdout.write(f"{lane:8}| {line}")
        sys.stdout.flush()


def main(arguments: list[str]) -> int:
    begun = time.monotonic()
    lanes = {lane: started(lane, chosen, arguments) for lane, chosen in LANES.items()}
    took = {}
    while len(took) < len(lanes):
        time.sleep(0.2)
        took |= {
            lane: round(time.monotonic() - begun)
            for lane, process in lanes.items()
            if lane not in took and process.poll() is not None
        }
    codes = {process.returncode for process in lanes.values()}
    each = ", ".join(f"{lane} {seconds} s" for lane, seconds in took.items())
    sys.stdout.write(f"make test: {round(time.monotonic() - begun)} s of tests ({each})\n")
    return max(codes - {NO_TESTS}, default=NO_TESTS)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:  # which both lanes have got, too
        sys.exit(130)
