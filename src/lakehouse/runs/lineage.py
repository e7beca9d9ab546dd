"""Which partitions a table has to be made anew for: those whose source or whose inputs have changed since it was made.

Every table that a run writes keeps, in the snapshot, which snapshots of its inputs it was made from; and Iceberg keeps
in the summary of a snapshot which partitions it changed. So the answer needs two metadata files and no data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from urllib.parse import unquote_plus

from lakehouse.core.format import TableFormat
from lakehouse.core.names import TableName
from lakehouse.core.tables import Snapshot

#: Iceberg writes the changed partitions into a snapshot's summary up to that many; beyond it, all count as changed.
PARTITIONS_TOLD = 1000


def lineage(tables: TableFormat, table: TableName) -> list[Snapshot]:
    """The snapshots that led to what a table is now, the newest first. What was rolled back is not among them."""
    if not tables.has(table):
        return []
    history = {snapshot.id: snapshot for snapshot in tables.history(table)}
    at = next((snapshot for snapshot in history.values() if snapshot.is_current), None)
    found: list[Snapshot] = []
    while at is not None:
        found.append(at)
        at = history.get(at.parent)
    return found


def noted(snapshots: Sequence[Snapshot], note: str) -> str:
    """The newest snapshot's word on something, or nothing."""
    return next((snapshot.notes[note] for snapshot in snapshots if note in snapshot.notes), "")


def inputs_of(snapshots: Sequence[Snapshot]) -> Mapping[str, str]:
    """The snapshot of each input that a table was last made from."""
    found: dict[str, str] = json.loads(noted(snapshots, "inputs") or "{}")
    return found


def fingerprints_of(snapshots: Sequence[Snapshot]) -> Mapping[str, str]:
    """What each partition's source looked like when it was read last."""
    found: dict[str, str] = {}
    for snapshot in reversed(snapshots):
        found |= json.loads(snapshot.notes.get("fingerprints", "{}"))
    return found


def changed_since(snapshots: Sequence[Snapshot], seen: str, column: str) -> set[str] | None:
    """The values of the slice column in partitions that changed after a snapshot; None if that cannot be told.

    Args:
        seen: the snapshot; nothing for all that ever changed.
    """
    changed: set[str] = set()
    for snapshot in snapshots:
        if snapshot.id == seen:
            return changed
        if snapshot.operation == "replace":
            continue  # compaction: other files, the same rows
        told = [_value(partition, column) for partition in snapshot.changed_partitions]
        if None in told or len(told) != snapshot.changed_partition_count:
            return None
        changed.update(value for value in told if value is not None)
    from_the_start = bool(snapshots) and not snapshots[-1].parent
    return changed if not seen and from_the_start else None


def _value(partition: str, column: str) -> str | None:
    """`date=2026-01-14/region=eu` as the value of one of its fields."""
    fields = dict(part.split("=", 1) for part in partition.split("/") if "=" in part)
    return unquote_plus(fields[column]) if column in fields else None
