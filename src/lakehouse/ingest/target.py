"""The table that an ingest writes to, independent of its format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from lakehouse.core.catalog import Catalog
from lakehouse.core.dataclass import dataclass
from lakehouse.core.engine import SparkRunner
from lakehouse.core.files import LOCAL, Files
from lakehouse.core.names import TableName
from lakehouse.core.requests import IngestRequest, QueryRequest
from lakehouse.core.tables import Column, Scan, TableInfo
from lakehouse.engines.duckdb import DuckDB
from lakehouse.ingest.files import PlannedColumn
from lakehouse.ingest.schema import SchemaChanges
from lakehouse.tables.changes import UpsertChanges
from lakehouse.tables.directory import Tables


@dataclass(frozen=True)
class TargetContext:
    """A table to write to and the services that this needs."""

    tables: Tables
    catalog: Catalog
    spark: SparkRunner
    duckdb: DuckDB
    table: TableName
    info: TableInfo | None
    """The current state of the table; None if it does not exist."""
    files: Files = LOCAL
    """The files of the warehouse."""

    def run(self, request: QueryRequest) -> None:
        """Run a statement on Spark."""
        self.spark.run(replace(request, ingest_into=str(self.table)), "an ingest")


class Target(Protocol):
    """A table that is being written to; readers see no change before `publish`."""

    def open(
        self,
        planned: Sequence[PlannedColumn],
        key: Sequence[str],
        request: IngestRequest,
        changes: SchemaChanges,
        replace_all: bool,
    ) -> None:
        """Create the table, or prepare its schema changes."""

    def columns(self) -> Sequence[Column]:
        """The columns of the table after the schema changes."""

    def existing_rows(self) -> Scan | None:
        """The rows of the table before the ingest; None for a new table."""

    def insert(self, folder: Path, provided: Sequence[str], overwrite: bool) -> None:
        """Add the rows of a folder of Parquet files, which have the columns `provided`."""

    def upsert(self, changes: UpsertChanges, key: Sequence[str]) -> None:
        """Insert new rows and update changed ones."""

    def add_rejects(self, folder: Path) -> None:
        """Add rejected rows to the table's `__rejected` table."""

    def publish(self, notes: Mapping[str, str]) -> str | None:
        """Make the changes visible; returns the new snapshot, or None if another writer changed the table meanwhile."""
