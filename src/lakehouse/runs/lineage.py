"""Which partitions of a table's inputs changed since the table was built, from snapshot metadata alone.

A run records in each snapshot the input snapshots that it was built from, and Iceberg records in the summary of a
snapshot the partitions that it changed. The answer needs two metadata files and no data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from urllib.parse import unquote_plus

from lakehouse.core.format import TableFormat
from lakehouse.core.names import TableName
from lakehouse.core.tables import Snapshot


def lineage(tables: TableFormat, table: TableName) -> list[Snapshot]:
    """The ancestors of a table's current snapshot, newest first; snapshots that were rolled back are left out."""
    if not tables.has(table):
        return []
    history = {snapshot.id: snapshot for snapshot in tables.history(table)}
    current = next((snapshot for snapshot in history.values() if snapshot.is_current), None)
    ancestors: list[Snapshot] = []
    while current is not None:
        ancestors.append(current)
        current = history.get(current.parent)
    return ancestors


def latest_note(snapshots: Sequence[Snapshot], note: str) -> str:
    """A note of the newest snapshot that has it; empty if none does."""
    return next((snapshot.notes[note] for snapshot in snapshots if note in snapshot.notes), "")


def inputs_of(snapshots: Sequence[Snapshot]) -> Mapping[str, str]:
    """The snapshot of each input that a table was last built from."""
    inputs: dict[str, str] = json.loads(latest_note(snapshots, "inputs") or "{}")
    return inputs


def fingerprints_of(snapshots: Sequence[Snapshot]) -> Mapping[str, str]:
    """The fingerprint of each partition's source when it was last read."""
    return merged_note(snapshots, "fingerprints")


def merged_note(snapshots: Sequence[Snapshot], note: str) -> Mapping[str, str]:
    """The newest value of each partition in notes that are JSON objects."""
    values: dict[str, str] = {}
    for snapshot in reversed(snapshots):
        values |= json.loads(snapshot.notes.get(note, "{}"))
    return values


def has_new_rows(snapshots: Sequence[Snapshot], seen: str) -> bool:
    """Whether a table may have other rows than at a snapshot; compaction changes none."""
    for snapshot in snapshots:
        if snapshot.id == seen:
            return False
        if snapshot.operation != "replace":
            return True
    return bool(seen)


def changed_since(snapshots: Sequence[Snapshot], seen: str, column: str) -> set[str] | None:
    """The partition column's values in partitions that changed after a snapshot; None if metadata does not say.

    Args:
        seen: the snapshot; empty for every change since the table was created.
    """
    changed: set[str] = set()
    for snapshot in snapshots:
        if snapshot.id == seen:
            return changed
        if snapshot.operation == "replace":
            continue  # compaction: other files, the same rows
        values = [_value(partition, column) for partition in snapshot.changed_partitions]
        if None in values or len(values) != snapshot.changed_partition_count:
            return None
        changed.update(value for value in values if value is not None)
    is_complete = bool(snapshots) and not snapshots[-1].parent
    return changed if not seen and is_complete else None


def _value(partition: str, column: str) -> str | None:
    """The value of one field of a partition path such as `date=2026-01-14/region=eu`."""
    fields = dict(part.split("=", 1) for part in partition.split("/") if "=" in part)
    return unquote_plus(fields[column]) if column in fields else None
