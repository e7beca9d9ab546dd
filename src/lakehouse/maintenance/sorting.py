"""Measures how well a table is sorted: how far the value ranges of its files overlap, by the bounds in its manifests."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from lakehouse.tables.rewrite import SnapshotFiles, partition_key

#: Our note in the summary of a snapshot that sorted a table: the overlap that it left. Z-order leaves some.
SORT_OVERLAP = "lake.sort-overlap"
#: A table is sorted again when its overlap has grown by this much since.
_DECAYED_BY = 0.3
_ZORDER = re.compile(r"\s*zorder\s*\((.*)\)\s*", re.IGNORECASE)


def sort_columns(order: str, table: Any) -> list[str]:
    """Return the columns that a sort order of a policy names; without one, those of the table's own sort order.

    Files of a table that is sorted by several columns overlap in the second one even right after sorting, so only the first
    counts; z-order sorts by all of them.
    """
    zorder = _ZORDER.fullmatch(order)
    if zorder:
        return [column.strip() for column in zorder[1].split(",")]
    if order:
        return [order.split(",")[0].split()[0]]
    fields = [field for field in table.sort_order().fields if str(field.transform) == "identity"]
    return [table.schema().find_column_name(field.source_id) for field in fields[:1]]


def overlap(table: Any, files: SnapshotFiles, columns: Sequence[str]) -> float | None:
    """Return which share of the other files of its partition a file overlaps with, on average over files and columns.

    0: a query for one value opens one file of a partition; 1: all of them. None if no partition has two files with bounds.
    """
    shares = [share for column in columns if (share := _of_column(table, files, column)) is not None]
    return sum(shares) / len(shares) if shares else None


def is_decayed(share: float | None, raw: Mapping[str, Any]) -> bool:
    """Return whether sorting again would let queries skip noticeably more files."""
    summaries = [snapshot.get("summary", {}) for snapshot in raw.get("snapshots", ())]
    notes = [summary[SORT_OVERLAP] for summary in summaries if SORT_OVERLAP in summary]
    after_sorting = float(notes[-1]) if notes else 0.0
    return share is not None and share > after_sorting + _DECAYED_BY


def _of_column(table: Any, files: SnapshotFiles, column: str) -> float | None:
    from pyiceberg.conversions import from_bytes

    try:
        field = table.schema().find_field(column, case_sensitive=False)
    except ValueError:
        return None
    ranges: dict[tuple[int, str], list[tuple[Any, Any]]] = {}
    for entry in files.data.values():
        lower = (entry.data_file.lower_bounds or {}).get(field.field_id)
        upper = (entry.data_file.upper_bounds or {}).get(field.field_id)
        if lower is not None and upper is not None:
            bounds = from_bytes(field.field_type, lower), from_bytes(field.field_type, upper)
            ranges.setdefault(partition_key(entry.data_file), []).append(bounds)
    several = [group for group in ranges.values() if len(group) > 1]
    possible = sum(len(group) * (len(group) - 1) for group in several)
    return sum(_overlapping(group) for group in several) / possible if possible else None


def _overlapping(ranges: Sequence[tuple[Any, Any]]) -> int:
    """Return the number of ordered pairs of ranges that overlap; sharing an end, as sorted files may, is no overlap."""
    lowers, uppers = sorted(lower for lower, _ in ranges), sorted(upper for _, upper in ranges)
    pairs = (bisect_left(lowers, upper) - bisect_right(uppers, lower) - 1 for lower, upper in ranges)
    return sum(max(0, number) for number in pairs)
