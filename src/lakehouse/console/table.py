"""The page of a table: its timeline, one moment of it, the difference between two and the changes of its schema, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Facts = Mapping[str, Any]
#: Snapshots on the timeline, the newest; a page stays small however many there are.
MOST_SNAPSHOTS = 100
_PLAIN_FACTS = ("at", "operation", "rows_added", "rows_removed", "source", "parent", "refs", "is_current")
_CHART_HEIGHT, _CHART_WIDTH, _WIDEST_BAR = 56, 1000, 16


def snapshots_of(tree: Facts) -> list[dict[str, Any]]:
    """The snapshots or instants below a tree of metadata, oldest first."""
    return [
        {
            "id": node["name"],
            **{name: node["facts"][name] for name in _PLAIN_FACTS},
            **{f"{name}_total": node["facts"][name] for name in ("rows", "files", "bytes")},
        }
        for node in reversed(tree["children"])
        if node["kind"] in ("snapshot", "instant")
    ]


def tree_of_history(snapshots: Sequence[Facts]) -> dict[str, Any]:
    """The newest snapshots, given oldest first, as a tree of metadata that has nothing else."""
    nodes = [
        {
            "kind": "snapshot",
            "name": snapshot["id"],
            "path": "",
            "facts": {**snapshot, **{name: snapshot[f"{name}_total"] for name in ("rows", "files", "bytes")}},
            "children": [],
            "left_out": 0,
        }
        for snapshot in reversed(snapshots[-MOST_SNAPSHOTS:])
    ]
    shown = {"kind": "history", "name": "", "path": "", "facts": {}, "children": nodes}
    return {**shown, "left_out": len(snapshots) - len(nodes)}


def evolution(tree: Facts) -> list[dict[str, Any]]:
    """The schemas below a tree of metadata, newest first, each with its changes in words."""
    return [
        {"id": node["name"], **node["facts"], "words": [_change_words(change) for change in node["facts"]["changes"]]}
        for node in reversed(tree["children"])
        if node["kind"] == "schema"
    ]


def _change_words(change: Mapping[str, str]) -> str:
    column, before, after = change["column"], change["before"], change["after"]
    match change["change"]:
        case "added":
            return f"+ {column} {after}".rstrip()
        case "dropped":
            return f"− {column} {before}".rstrip()
        case "renamed":
            return f"{before} renamed to {after}"
        case "comment changed":
            return f"{column}: comment “{before}” became “{after}”" if before else f"{column}: comment “{after}”"
        case _:
            return f"{column}: {before} became {after}"


def timeline(snapshots: Sequence[Facts], total: int, at: str) -> dict[str, Any]:
    """Some snapshots, oldest first, with the shown one and its neighbours.

    Args:
        total: how many the table has.
    """
    shown = list(snapshots)
    position = next((place for place, snapshot in enumerate(shown) if snapshot["id"] == at), len(shown) - 1)
    return {
        "snapshots": shown,
        "total": total,
        "position": position,
        "selected": shown[position] if shown else None,
        "earlier": shown[position - 1]["id"] if position > 0 else "",
        "later": shown[position + 1]["id"] if position + 1 < len(shown) else "",
        "bars": bars([snapshot["rows_total"] or 0 for snapshot in shown]),
    }


def bars(values: Sequence[int]) -> list[dict[str, float]]:
    """The rectangles of a bar chart in a box of 1000 by 56, each in the middle above its place on the slider."""
    if not values:
        return []
    step, most = _CHART_WIDTH / max(len(values) - 1, 1), max(max(values), 1)
    width = max(min(step * 0.8, _WIDEST_BAR), 1.0)
    return [
        {
            "x": round(min(max(number * step - width / 2, 0), _CHART_WIDTH - width), 2),
            "width": round(width, 2),
            "y": round(_CHART_HEIGHT - _height(value, most), 2),
            "height": round(_height(value, most), 2),
        }
        for number, value in enumerate(values)
    ]


def in_words(diff: Facts) -> str:
    """What happened from the first moment to the second."""
    counts = [f"{diff[kind]:,} {kind}" for kind in ("added", "removed", "changed") if diff[kind]]
    return ", ".join(counts) if counts else "no row was added, removed or changed"


def _height(value: int, most: int) -> float:
    return max(value / most * (_CHART_HEIGHT - 2), 1.0) if value else 1.0
