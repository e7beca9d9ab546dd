"""What a table's metadata file alone states about its layout: files, deletes, snapshots, sizes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from lakehouse.core.dataclass import dataclass
from lakehouse.tables.rewrite import COMPACTED_FILES

#: Iceberg's own default of `write.target-file-size-bytes`.
DEFAULT_TARGET = 512 * 2**20
TARGET_PROPERTY = "write.target-file-size-bytes"


@dataclass(frozen=True)
class Layout:
    """The layout of the current snapshot, and how many snapshots there are."""

    data_files: int
    bytes: int
    rows: int
    delete_files: int
    deleted_rows: int
    """Rows that position deletes mark; equality deletes do not state how many rows they match."""
    snapshots: int
    metadata_bytes: int
    min_files: int
    """How many data files the table would have after compaction, as far as it is known from metadata."""
    is_exact: bool
    """False for a partitioned table that was never compacted: metadata does not state how many partitions it has."""
    target: int
    current: str = ""

    @property
    def mean_file_bytes(self) -> int:
        return self.bytes // self.data_files if self.data_files else 0


def layout_of(raw: Mapping[str, Any], metadata_bytes: int, target: int = 0) -> Layout:
    """Return the layout that a metadata file states.

    Args:
        target: the size of data files that compaction aims at; 0: what the table's property states.
    """
    snapshots = raw.get("snapshots", [])
    current = current_snapshot(raw)
    summary: Mapping[str, str] = current["summary"] if current else {}
    target = target or _int(raw.get("properties", {}), TARGET_PROPERTY) or DEFAULT_TARGET
    files, size = _int(summary, "total-data-files"), _int(summary, "total-files-size")
    partitions, exact = _partitions(raw, snapshots)
    return Layout(
        data_files=files,
        bytes=size,
        rows=_int(summary, "total-records"),
        delete_files=_int(summary, "total-delete-files"),
        deleted_rows=_int(summary, "total-position-deletes"),
        snapshots=len(snapshots),
        metadata_bytes=metadata_bytes,
        min_files=min(files, max(-(-size // target), partitions)),
        is_exact=exact,
        target=target,
        current=str(current["snapshot-id"]) if current else "",
    )


def current_snapshot(raw: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the current snapshot of a metadata file; None if the table has none."""
    current = raw.get("current-snapshot-id")
    # In reverse, because the current snapshot is mostly the last one.
    snapshot: dict[str, Any] | None = next(
        (snapshot for snapshot in reversed(raw.get("snapshots", [])) if snapshot["snapshot-id"] == current), None
    )
    return snapshot


def ended_at_ms(raw: Mapping[str, Any]) -> dict[int, int]:
    """Return when each snapshot stopped being the current one, in milliseconds; the current snapshot is missing.

    A snapshot that was never current, such as one of a branch of the table, counts from its own time.
    """
    ends = {snapshot["snapshot-id"]: snapshot["timestamp-ms"] for snapshot in raw.get("snapshots", [])}
    entries = raw.get("snapshot-log", [])
    for entry, following in zip(entries, entries[1:], strict=False):
        if entry["snapshot-id"] in ends:
            ends[entry["snapshot-id"]] = following["timestamp-ms"]
    ends.pop(raw.get("current-snapshot-id"), None)
    return ends


def utc_now() -> datetime:
    """Return the current time."""
    return datetime.now(UTC)


def _partitions(raw: Mapping[str, Any], snapshots: list[Any]) -> tuple[int, bool]:
    """Return a lower bound of the number of files, and whether it is exact.

    It is what the last compaction left, or the most partitions that one commit changed.
    """
    spec: Mapping[str, Any] = next(
        (spec for spec in raw["partition-specs"] if spec["spec-id"] == raw["default-spec-id"]), {}
    )
    partitioned = any(part["transform"] != "void" for part in spec.get("fields", ()))
    partitions = 1
    for snapshot in reversed(snapshots):
        summary = snapshot.get("summary", {})
        if COMPACTED_FILES in summary:
            return max(partitions, _int(summary, COMPACTED_FILES)), True
        if partitioned:
            partitions = max(partitions, _int(summary, "changed-partition-count"))
    return partitions, not partitioned


def _int(values: Mapping[str, str], name: str) -> int:
    try:
        return int(values.get(name, 0))
    except ValueError:
        return 0
