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
WRONG = ("E   ", "FAILED ", "ERROR ")
"""How the lines begin that somebody must look at: what went wrong, and in which tests."""


class Lane:
    """A pytest of its own, every line of which is shown as it comes, with the lane's name before it."""

    def __init__(self, name: str, chosen: str, arguments: list[str]) -> None:
        # What failed last is kept in one file, which two cannot write at once.
        command = [sys.executable, "-u", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--durations=10", "-m", chosen]
        self.name, self.seconds, self.code, self.wrong = name, 0, 0, list[str]()
        self._begun = time.monotonic()
        self._process = subprocess.Popen(
            [*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            sys.stdout.write(f"{self.name:8}| {line}")
            sys.stdout.flush()
            if line.startswith(WRONG):
                self.wrong.append(line)
        self.code = self._process.wait()
        self.seconds = round(time.monotonic() - self._begun)

    def ended(self) -> Lane:
        self._reader.join()
        return self


def main(arguments: list[str]) -> int:
    begun = time.monotonic()
    lanes = [lane.ended() for lane in [Lane(name, chosen, arguments) for name, chosen in LANES.items()]]
    # Once more at the very end: one lane may go on for long after the other's summary.
    sys.stdout.writelines(line for lane in lanes for line in lane.wrong)
    each = ", ".join(f"{lane.name} {lane.seconds} s" for lane in lanes)
    sys.stdout.write(f"make test: {round(time.monotonic() - begun)} s of tests ({each})\n")
    return max({lane.code for lane in lanes} - {NO_TESTS}, default=NO_TESTS)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:  # which both lanes have got, too
        sys.exit(130)
