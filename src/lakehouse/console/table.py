"""The page of a table: its timeline, one moment of it, and the difference between two, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Facts = Mapping[str, Any]
TABS = ("rows", "schema", "history", "diff")
#: Snapshots on the timeline, the newest; a page stays small however many there are.
MOST_SNAPSHOTS = 200
_CHART_HEIGHT, _CHART_WIDTH, _WIDEST_BAR = 56, 1000, 16


def timeline(snapshots: Sequence[Facts], at: str) -> dict[str, Any]:
    """The newest snapshots, oldest first, with the shown one and its neighbours."""
    shown = list(snapshots[-MOST_SNAPSHOTS:])
    position = next((place for place, snapshot in enumerate(shown) if snapshot["id"] == at), len(shown) - 1)
    return {
        "snapshots": shown,
        "total": len(snapshots),
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
