"""The result of an ingest."""

from __future__ import annotations

from lakehouse.core.dataclass import dataclass
from lakehouse.core.names import TableName
from lakehouse.ingest.files import PlannedColumn


@dataclass(frozen=True)
class IngestReport:
    """What an ingest did, or with `dry_run` would do."""

    table: TableName
    mode: str
    files: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    """Files whose content is already in the table."""
    rows_read: int = 0
    inserted: int = 0
    updated: int = 0
    unchanged: int = 0
    rejected: int = 0
    superseded: int = 0
    """Rows of an upsert that another row of the files with the same key replaced; they are in no other count but rows_read."""
    snapshot: str = ""
    columns: tuple[PlannedColumn, ...] = ()
    changes: tuple[str, ...] = ()
    """Schema changes, one sentence each."""
    notes: tuple[str, ...] = ()
    dry_run: bool = False
