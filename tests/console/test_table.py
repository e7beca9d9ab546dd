"""The page of a table: its timeline and its differences in words."""

from __future__ import annotations

from typing import Any

from lakehouse.console.table import bars, evolution, in_words, timeline


def snapshots(count: int) -> list[dict[str, Any]]:
    return [{"id": str(number), "rows_total": number} for number in range(count)]


def test_the_timeline_has_the_shown_snapshot_and_its_neighbours() -> None:
    line = timeline(snapshots(20), 2000, "10")
    assert (len(line["snapshots"]), line["total"]) == (20, 2000)
    assert (line["earlier"], line["selected"]["id"], line["later"]) == ("9", "10", "11")


def test_the_ends_of_the_timeline_have_one_neighbour() -> None:
    assert timeline(snapshots(3), 3, "0")["earlier"] == ""
    assert timeline(snapshots(3), 3, "2")["later"] == ""
    assert timeline([], 0, "")["selected"] is None


def test_the_changes_of_a_schema_are_said_in_words() -> None:
    changes = [
        {"change": "added", "column": "city", "before": "", "after": "string"},
        {"change": "dropped", "column": "zip", "before": "int", "after": ""},
        {"change": "renamed", "column": "full_name", "before": "name", "after": "full_name"},
        {"change": "type changed", "column": "id", "before": "int", "after": "bigint"},
        {"change": "comment changed", "column": "id", "before": "", "after": "the key"},
    ]
    tree = {"children": [{"kind": "schema", "name": "1", "facts": {"changes": changes}}, {"kind": "snapshot"}]}
    assert evolution(tree)[0]["words"] == [
        "+ city string", "− zip int", "name renamed to full_name", "id: int became bigint", "id: comment “the key”",
    ]  # fmt: skip


def test_bars_fill_the_box() -> None:
    first, second = bars([5, 10])
    assert second["height"] > first["height"] and second["y"] + second["height"] == 56
    assert bars([]) == [] and bars([0])[0]["height"] == 1


def test_a_difference_is_said_in_words() -> None:
    assert in_words({"added": 1200, "removed": 0, "changed": 2}) == "1,200 added, 2 changed"
    assert in_words({"added": 0, "removed": 0, "changed": 0}) == "no row was added, removed or changed"
