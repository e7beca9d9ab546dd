"""What an asset holds of the lake while it runs: the lake itself, and whom to tell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from lakehouse.lake import Lake
from lakehouse.runs.model import RunRecord

#: The name under which assets ask for it.
RESOURCE = "lakehouse"


@dataclass
class LakeResource:
    """A lake that is open, and what the runs through this door left."""

    lake: Lake
    author: str = "dagster"
    say: Callable[[str], None] | None = None
    """Nothing: Dagster's own log."""
    records: list[RunRecord] = field(default_factory=list)
    error: BaseException | None = None
    """What stopped the last try."""
