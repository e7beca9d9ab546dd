"""Where an ingest writes, and how it does into an Iceberg table: on a branch of its own. Hudi is in hudi.py."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from lakehouse.core.catalog import Catalog
from lakehouse.core.engine import SparkRunner
from lakehouse.core.errors import NotSupportedError
from lakehouse.core.files import LOCAL, Files
from lakehouse.core.names import TableName
from lakehouse.core.quoting import spark_text
from lakehouse.core.refs import Commit
from lakehouse.core.requests import IngestRequest, QueryRequest
from lakehouse.core.tables import Column, Scan, TableInfo
from lakehouse.engines.duckdb import DuckDB
from lakehouse.formats.iceberg.stamp import stamp
from lakehouse.ingest import layout, statements
from lakehouse.ingest.changes import Changes
from lakehouse.ingest.errors import CommitConflictError
from lakehouse.ingest.files import PlannedColumn
from lakehouse.ingest.native import NativeWriter, Rows
from lakehouse.ingest.schema import Evolution
from lakehouse.query.tables import Tables

_PREFIX = "ingest_"
_TRIES = 5
_REJECTED = (
    "CREATE TABLE {table} (file STRING, line BIGINT, reason STRING, raw STRING, ingested_at TIMESTAMP) USING iceberg"
)


class Target(Protocol):
    """A table that is being written to; nothing of it is seen before `publish`."""

    def columns(self) -> Sequence[Column]:
        """The table's columns as they will be."""

    def before(self) -> Scan | None:
        """The table's rows as they were; None if it was not there."""

    def insert(self, folder: Path, brought: Sequence[str], overwrite: bool) -> None: ...
    def upsert(self, changes: Changes, key: Sequence[str]) -> None: ...
    def keep_rejects(self, folder: Path) -> None: ...

    def publish(self, notes: Mapping[str, str]) -> str | None:
        """Make it the table everybody sees; the new snapshot, or None if the table moved meanwhile."""

    def discard(self) -> None:
        """Forget what was not published."""


@dataclass(frozen=True)
class Place:
    """A table to be written to, and what that takes."""

    tables: Tables
    catalog: Catalog
    spark: SparkRunner
    duckdb: DuckDB
    table: TableName
    info: TableInfo | None
    """The table as it is; None if it is not there yet."""
    lock: str
    """Locked while a statement runs, so that the next ingest waits for one whose own ingest was killed."""
    files: Files = LOCAL
    """The warehouse's own."""

    def run(self, request: QueryRequest) -> None:
        self.spark.run(replace(request, lock=self.lock), "an ingest")


class IcebergTarget:
    """An Iceberg table, and the table of its rejected rows, on a branch."""

    def __init__(self, place: Place) -> None:
        self._place, self._table, self._info = place, place.table, place.info
        table, tables, catalog = place.table, place.tables, place.catalog
        self._catalog = catalog
        self._rejected = table.rejected
        self._left_for_later: Path | None = None
        self._branch = f"{_PREFIX}{uuid.uuid4().hex[:12]}"
        self._main = tables.formats["iceberg"]
        self._here = tables.formats["iceberg"].on(self._branch)
        for left_behind in catalog.branches_of(table, _PREFIX):
            catalog.drop_branch(left_behind)  # by an ingest that was killed: into one table only one runs at a time
        self._base = catalog.fork(self._branch, [table, self._rejected])

    def open(
        self,
        planned: Sequence[PlannedColumn],
        key: Sequence[str],
        wanted: IngestRequest,
        changes: Evolution,
        replace_all: bool,
    ) -> None:
        """Bring the table on the branch to the schema that the files need."""
        kept = {statements.COLUMNS_PROPERTY: statements.recorded_text(planned), "lake.key": ",".join(key)}
        kept = {name: value for name, value in kept.items() if value}
        if self._info is None:
            # Every task keeps a file open for each partition it meets, which spares sorting the rows by partition.
            kept["write.spark.fanout.enabled"] = "true"
            self._run(statements.create(self._table, planned, "iceberg", wanted.partition_by, kept))
            if wanted.sort_by:
                self._run(f"ALTER TABLE {self._table} WRITE ORDERED BY {wanted.sort_by}")
            return
        order = [column.name for column in self._info.columns]
        types = {column.name: column.type for column in changes.rewritten}
        self._refuse_leaving_files(types)
        for statement in (
            *layout.taken_off(self._table, self._info, types),
            *statements.evolve(self._table, changes, order, keep_rows=not replace_all),
            *layout.put_back(self._table, self._info, types),
        ):
            self._run(statement)
        listed = ", ".join(f"{spark_text(name)} = {spark_text(value)}" for name, value in kept.items())
        if any(self._info.properties.get(name) != value for name, value in kept.items()):
            self._run(f"ALTER TABLE {self._table} SET TBLPROPERTIES ({listed})")

    def columns(self) -> Sequence[Column]:
        return self._here.describe(self._table).columns

    def before(self) -> Scan | None:
        return self._main.scan(self._table) if self._info is not None else None

    def insert(self, folder: Path, brought: Sequence[str], overwrite: bool) -> None:
        columns = self.columns()
        if overwrite or not self._native().append(Rows(folder, brought), columns):
            self._run(statements.insert(self._table, columns, brought, overwrite), folder)

    def upsert(self, changes: Changes, key: Sequence[str]) -> None:
        columns = self.columns()
        names = [column.name for column in columns]
        if not changes.updated:
            self.insert(changes.folder, names, overwrite=False)
        elif not self._native().merge(Rows(changes.folder, names), columns, key):
            self._run(statements.merge(self._table, columns, key), changes.folder)

    def _native(self) -> NativeWriter:
        properties = self._catalog.on(self._branch).pyiceberg_properties()
        return NativeWriter(self._place.duckdb, self._branch, properties, self._table)

    def keep_rejects(self, folder: Path) -> None:
        if not self._catalog.capabilities.multi_table_publish:
            self._left_for_later = folder
            return
        self.write_rejects(folder)

    def write_rejects(self, folder: Path) -> None:
        """Put rejected rows into their own table, on the branch."""
        if self._base[self._rejected] is None:
            self._run(_REJECTED.format(table=self._rejected))
        self._run(
            f"INSERT INTO {self._rejected} SELECT file, line, reason, raw, current_timestamp() FROM {statements.STAGED}",
            folder,
        )

    def publish(self, notes: Mapping[str, str]) -> str | None:
        here = self._catalog.on(self._branch)
        pointer = here.pointer(self._table)
        assert pointer is not None
        stamped = stamp(
            pointer,
            {f"lake.{name}": value for name, value in notes.items() if name != "columns"},
            self._base[self._table],
            self._place.files,
        )
        here.swap_pointer(self._table, pointer, stamped)
        current = self._here.describe(self._table).current
        assert current is not None
        if not self._catalog.publish(self._branch, self._commit(notes)):
            return None
        if self._left_for_later:
            publish_rejects(self._place, self._left_for_later)
        return current.id

    def publish_rejects(self) -> bool:
        """Make only the rejected rows seen; False if somebody else wrote to their table meanwhile."""
        return bool(self._catalog.publish(self._branch, self._commit({})))

    def discard(self) -> None:
        self._catalog.drop_branch(self._branch)

    def _commit(self, notes: Mapping[str, str]) -> Commit:
        what = notes.get("mode", "rejected rows")
        return Commit("ingest", message=f"{what} into {self._table}", source=notes.get("source", ""))

    def _refuse_leaving_files(self, types: Mapping[str, str]) -> None:
        """A merge-on-read update leaves the old files in place, partitioned by a column that is gone: DuckDB dies of it."""
        assert self._info is not None
        merges = self._info.properties.get("write.update.mode") == "merge-on-read"
        if merges and any(layout.Field.read(each).column in types for each in self._info.partitioning):
            raise NotSupportedError(
                f"{self._table} is partitioned by a column whose type would change, and updates are merged on read.",
                f"First: ALTER TABLE {self._table} SET TBLPROPERTIES ('write.update.mode' = 'copy-on-write')",
            )

    def _run(self, sql: str, folder: Path | None = None) -> None:
        files = {statements.STAGED: str(folder)} if folder else {}
        # Rows go to the files of the task that reads them: moving them to one task per partition first took five times
        # as long for a million rows, and saves files only where a task meets many partitions.
        settings = {"spark.sql.iceberg.distribution-mode": "none"} if folder else {}
        self._place.run(QueryRequest(sql, arrow=False, branch=self._branch, files=files, settings=settings))


def publish_rejects(place: Place, folder: Path) -> None:
    """Keep rejected rows where that cannot be one commit with the good ones.

    Last, so that a kill in between loses the note of a bad row and never a good row.
    """
    for _ in range(_TRIES):
        keeper = IcebergTarget(place)
        try:
            keeper.write_rejects(folder)
            if keeper.publish_rejects():
                return
        finally:
            keeper.discard()
    raise CommitConflictError(
        f"The good rows are in {place.table}, but the bad ones could not be kept: {place.table.rejected} was"
        f" changed by somebody else {_TRIES} times meanwhile.",
        "See them with --dry-run, or bring the files in again with --force when it is quieter.",
    )
