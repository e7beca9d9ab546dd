"""What is asked of an ingest, and what it reports."""

from __future__ import annotations

from dataclasses import dataclass

from lakehouse.core.names import TableName
from lakehouse.ingest.files import PlannedColumn


@dataclass(frozen=True)
class Report:
    """What an ingest did, or with `dry_run` would do."""

    table: TableName
    mode: str
    files: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    """Files that are in the table already."""
    rows_read: int = 0
    inserted: int = 0
    updated: int = 0
    unchanged: int = 0
    rejected: int = 0
    snapshot: str = ""
    columns: tuple[PlannedColumn, ...] = ()
    changes: tuple[str, ...] = ()
    """What happened to the schema, in words."""
    notes: tuple[str, ...] = ()
    dry_run: bool = False
