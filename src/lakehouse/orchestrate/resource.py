"""The Dagster resource through which assets reach the lake."""

from __future__ import annotations

from dataclasses import dataclass

from lakehouse.lake import Lake

#: The resource key that assets require.
RESOURCE = "lakehouse"


@dataclass(frozen=True)
class LakeResource:
    """An open lake, and the author of the commits that Dagster makes."""

    lake: Lake
    author: str = "dagster"
