"""What is asked of an ingest, and what it reports."""

from __future__ import annotations

from dataclasses import dataclass, field

from lakehouse.core.errors import UnknownChoiceError
from lakehouse.core.names import TableName
from lakehouse.ingest.files import PlannedColumn, ReadSettings

MODES = ("append", "upsert", "replace")
CONTRACTS = ("evolve", "freeze", "quarantine")


@dataclass(frozen=True)
class IngestRequest:
    """Files to bring into a table, and how."""

    sources: tuple[str, ...]
    table: TableName
    mode: str = ""
    """Nothing: upsert where there is a key, else append."""
    key: tuple[str, ...] = ()
    order_by: str = ""
    """Of the rows of one key in one ingest, the one with the highest value here wins; else the last one does."""
    format: str = ""
    """Nothing: the table's own, or iceberg for a new one."""
    contract: str = "evolve"
    partition_by: str = ""
    sort_by: str = ""
    force: bool = False
    """Also files that were ingested before."""
    read: ReadSettings = field(default_factory=ReadSettings)

    def __post_init__(self) -> None:
        for name, given, known in (
            ("mode", self.mode, ("", *MODES)),
            ("contract", self.contract, CONTRACTS),
            ("format", self.format, ("", "iceberg", "hudi")),
        ):
            if given not in known:
                raise UnknownChoiceError(name, given, [each for each in known if each])


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
