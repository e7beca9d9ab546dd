"""How often a test repeats what goes wrong by chance: a few times in every run, many times in `make test-faults`."""

from __future__ import annotations

import os

#: `smoke` or `full`.
REPEAT = os.environ.get("TEST_REPEAT", "smoke")


def repetitions(smoke: int, full: int) -> int:
    """The count for this run. A test that uses it is marked `faults`."""
    return {"smoke": smoke, "full": full}[REPEAT]
