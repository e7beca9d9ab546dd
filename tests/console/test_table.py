"""The page of a table: its timeline and its differences in words."""

from __future__ import annotations

from typing import Any

from lakehouse.console.table import MOST_SNAPSHOTS, bars, in_words, timeline


def snapshots(count: int) -> list[dict[str, Any]]:
    return [{"id": str(number), "rows_total": number} for number in range(count)]


def test_the_timeline_has_the_newest_snapshots_and_their_neighbours() -> None:
    line = timeline(snapshots(2000), "1990")
    assert (len(line["snapshots"]), line["total"]) == (MOST_SNAPSHOTS, 2000)
    assert (line["earlier"], line["selected"]["id"], line["later"]) == ("1989", "1990", "1991")


def test_the_ends_of_the_timeline_have_one_neighbour() -> None:
    assert timeline(snapshots(3), "0")["earlier"] == ""
    assert timeline(snapshots(3), "2")["later"] == ""
    assert timeline([], "")["selected"] is None


def test_bars_fill_the_box() -> None:
    first, second = bars([5, 10])
    assert second["height"] > first["height"] and second["y"] + second["height"] == 56
    assert bars([]) == [] and bars([0])[0]["height"] == 1


def test_a_difference_is_said_in_words() -> None:
    assert in_words({"added": 1200, "removed": 0, "changed": 2}) == "1,200 added, 2 changed"
    assert in_words({"added": 0, "removed": 0, "changed": 0}) == "no row was added, removed or changed"
