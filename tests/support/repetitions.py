"""How often a test repeats what goes wrong by chance: a few times in every run, many times in `make test-faults`."""

from __future__ import annotations

import os
from typing import TypeVar

#: `smoke` or `full`.
REPEAT = os.environ.get("TEST_REPEAT", "smoke")


Count = TypeVar("Count")


def repetitions(smoke: Count, full: Count) -> Count:
    """The count, or the cases, for this run. A test that uses it is marked `faults`."""
    return {"smoke": smoke, "full": full}[REPEAT]
