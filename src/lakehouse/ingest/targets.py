"""Where an ingest writes: an Iceberg table on a branch of its own, or a Hudi table by one commit of its own."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from lakehouse.core.errors import NotSupportedError
from lakehouse.core.names import TableName
from lakehouse.core.ports import Column, Request, Scan, SparkEngine, TableInfo
from lakehouse.core.quoting import spark_text
from lakehouse.formats.iceberg.stamp import stamp
from lakehouse.ingest import statements
from lakehouse.ingest.changes import Changes
from lakehouse.ingest.model import Wanted
from lakehouse.ingest.schema import Evolution
from lakehouse.serve.tables import Tables
from lakehouse.sources.files import PlannedColumn

_PREFIX = "ingest_"
_REJECTED = (
    "CREATE TABLE {table} (file STRING, line BIGINT, reason STRING, raw STRING, ingested_at TIMESTAMP) USING iceberg"
)


class Branches(Protocol):
    """The part of a catalog that writing beside a table and publishing needs."""

    def on(self, branch: str) -> Branches: ...
    def pointer(self, table: TableName) -> str | None: ...
    def move(self, table: TableName, start: str, end: str) -> None: ...
    def fork(self, branch: str, tables: Sequence[TableName]) -> dict[TableName, str | None]: ...
    def publish(self, branch: str, base: Mapping[TableName, str | None]) -> bool: ...
    def branches_of(self, table: TableName, prefix: str) -> list[str]: ...
    def discard(self, branch: str) -> None: ...


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
    catalog: Branches
    spark: SparkEngine
    table: TableName
    info: TableInfo | None
    """The table as it is; None if it is not there yet."""
    lock: str
    """Locked while a statement runs, so that the next ingest waits for one whose own ingest was killed."""

    def run(self, request: Request) -> None:
        self.spark.query(replace(request, lock=self.lock), "an ingest")


class IcebergTarget:
    """An Iceberg table, and the table of its rejected rows, on a branch."""

    def __init__(self, place: Place) -> None:
        self._place, self._table, self._info = place, place.table, place.info
        table, tables, catalog = place.table, place.tables, place.catalog
        self._catalog = catalog
        self._rejected = TableName(table.namespace, f"{table.table}__rejected")
        self._branch = f"{_PREFIX}{uuid.uuid4().hex[:12]}"
        self._main = tables.formats["iceberg"]
        self._here = tables.formats["iceberg"].on(self._branch)
        for left_behind in catalog.branches_of(table, _PREFIX):
            catalog.discard(left_behind)  # by an ingest that was killed: into one table only one runs at a time
        self._base = catalog.fork(self._branch, [table, self._rejected])

    def open(
        self,
        planned: Sequence[PlannedColumn],
        key: Sequence[str],
        wanted: Wanted,
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
        for statement in statements.evolve(self._table, changes, order, keep_rows=not replace_all):
            self._run(statement)
        listed = ", ".join(f"{spark_text(name)} = {spark_text(value)}" for name, value in kept.items())
        if any(self._info.properties.get(name) != value for name, value in kept.items()):
            self._run(f"ALTER TABLE {self._table} SET TBLPROPERTIES ({listed})")

    def columns(self) -> Sequence[Column]:
        return self._here.describe(self._table).columns

    def before(self) -> Scan | None:
        return self._main.scan(self._table) if self._info is not None else None

    def insert(self, folder: Path, brought: Sequence[str], overwrite: bool) -> None:
        self._run(statements.insert(self._table, self.columns(), brought, overwrite), folder)

    def upsert(self, changes: Changes, key: Sequence[str]) -> None:
        columns = self.columns()
        names = [column.name for column in columns]
        if changes.updated:
            self._run(statements.merge(self._table, columns, key), changes.folder)
        else:
            self._run(statements.insert(self._table, columns, names), changes.folder)

    def keep_rejects(self, folder: Path) -> None:
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
        )
        here.move(self._table, pointer, stamped)
        current = self._here.describe(self._table).current
        assert current is not None
        return current.id if self._catalog.publish(self._branch, self._base) else None

    def publish_rejects(self) -> None:
        """Make only the rejected rows seen."""
        self._catalog.publish(self._branch, self._base)

    def discard(self) -> None:
        self._catalog.discard(self._branch)

    def _run(self, sql: str, folder: Path | None = None) -> None:
        files = {statements.STAGED: str(folder)} if folder else {}
        # Rows go to the files of the task that reads them: moving them to one task per partition first took five times
        # as long for a million rows, and saves files only where a task meets many partitions.
        settings = {"spark.sql.iceberg.distribution-mode": "none"} if folder else {}
        self._place.run(Request(sql, arrow=False, branch=self._branch, files=files, settings=settings))


class HudiTarget:
    """A Hudi table. It has no branches: the rows are one commit, which is what makes them seen."""

    def __init__(self, place: Place) -> None:
        self._place, self._table, self._info = place, place.table, place.info
        self._format = place.tables.formats["hudi"]
        self._rejected: Path | None = None
        self._write: tuple[str, str, Path] | None = None

    def open(
        self,
        planned: Sequence[PlannedColumn],
        key: Sequence[str],
        wanted: Wanted,
        changes: Evolution,
        replace_all: bool,
    ) -> None:
        if changes.widened or changes.rewritten:
            raise NotSupportedError(
                f"A Hudi table cannot change the type of a column: {'; '.join(changes.words())}.",
                "Use --contract quarantine to set such rows aside, or an Iceberg table.",
            )
        if key and self._info is not None and set(key) != set(self._info.key):
            raise NotSupportedError(
                f"{self._table} is a Hudi table with the key {', '.join(self._info.key) or '(none)'}, which cannot change.",
                "Leave --key away, or ingest into a new table.",
            )
        if self._info is None:
            properties = {"primaryKey": ",".join(key)} if key else {}
            self._query(
                statements.create(self._table, planned, "hudi", wanted.partition_by, properties or {"type": "cow"})
            )
        for statement in statements.evolve(self._table, changes, []):
            self._query(statement)

    def columns(self) -> Sequence[Column]:
        return self._format.describe(self._table).columns

    def before(self) -> Scan | None:
        return self._format.scan(self._table) if self._info is not None else None

    def insert(self, folder: Path, brought: Sequence[str], overwrite: bool) -> None:
        self._write = (statements.insert(self._table, self.columns(), brought, overwrite), "insert", folder)

    def upsert(self, changes: Changes, key: Sequence[str]) -> None:
        columns = self.columns()
        names = [column.name for column in columns]
        self._write = (statements.insert(self._table, columns, names), "upsert", changes.folder)

    def keep_rejects(self, folder: Path) -> None:
        self._rejected = folder

    def publish(self, notes: Mapping[str, str]) -> str | None:
        assert self._write is not None
        sql, operation, folder = self._write
        settings = {f"hoodie.lake.{name}": value for name, value in notes.items()}
        settings["hoodie.datasource.write.commitmeta.key.prefix"] = "hoodie.lake."
        settings["hoodie.spark.sql.insert.into.operation"] = operation
        self._query(sql, folder, settings)
        if self._rejected:
            # Last, so that a kill in between loses the note of a bad row and never a good row.
            keeper = IcebergTarget(self._place)
            keeper.keep_rejects(self._rejected)
            keeper.publish_rejects()
        current = self._format.describe(self._table).current
        return current.id if current else ""

    def discard(self) -> None:
        """There is nothing that would have to be forgotten."""

    def _query(self, sql: str, folder: Path | None = None, settings: Mapping[str, str] | None = None) -> None:
        files = {statements.STAGED: str(folder)} if folder else {}
        self._place.run(Request(sql, arrow=False, files=files, settings=settings or {}))
