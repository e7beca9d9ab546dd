"""The built-in partitions: keys, ranges and neighbours."""

from __future__ import annotations

import pytest

from lakehouse.core.errors import BadPartitionError
from lakehouse.pipelines import Days, Hours, Keys, Months, Weeks
from lakehouse.pipelines.partitions import Partitions


@pytest.mark.parametrize(
    ("partitions", "first", "last", "keys"),
    [
        (
            Hours(),
            "2026-01-14T22",
            "2026-01-15T01",
            ["2026-01-14T22", "2026-01-14T23", "2026-01-15T00", "2026-01-15T01"],
        ),
        (Days(), "2026-02-27", "2026-03-01", ["2026-02-27", "2026-02-28", "2026-03-01"]),
        (Weeks(), "2026-01-01", "2026-01-12", ["2025-12-29", "2026-01-05", "2026-01-12"]),
        (Months(), "2025-12", "2026-02", ["2025-12", "2026-01", "2026-02"]),
        (Keys(("eu", "us", "asia")), "us", "asia", ["us", "asia"]),
    ],
    ids=["hours", "days", "weeks", "months", "keys"],
)
def test_a_range_has_both_ends(partitions: Partitions, first: str, last: str, keys: list[str]) -> None:
    assert partitions.between(first, last) == keys
    assert [partitions.check(key) for key in keys] == keys
    with pytest.raises(BadPartitionError):
        partitions.between(keys[-1], keys[0])


@pytest.mark.parametrize(
    ("partitions", "key"),
    [(Hours(), "2026-01-14T24"), (Weeks(), "2026-1"), (Keys(("eu",)), "EU")],
    ids=["hours", "weeks", "keys"],
)
def test_other_texts_are_refused_with_a_hint(partitions: Partitions, key: str) -> None:
    with pytest.raises(BadPartitionError) as error:
        partitions.check(key)
    assert error.value.hint


def test_neighbours_cross_the_ends_of_days_and_years() -> None:
    assert Hours().shifted("2026-01-01T00", -1) == "2025-12-31T23"
    assert Weeks().check("2026-W03") == "2026-01-12"
    assert Weeks().shifted("2026-01-05", -1) == "2025-12-29"
    with pytest.raises(BadPartitionError, match="no earlier"):
        Keys(("eu", "us")).shifted("us", -1)
