"""Ingest into an Iceberg table: write on a branch, then publish it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from lakehouse.core.errors import CommitConflictError, NotSupportedError
from lakehouse.core.names import TableName
from lakehouse.core.quoting import spark_text
from lakehouse.core.refs import Commit
from lakehouse.core.requests import IngestRequest, QueryRequest
from lakehouse.core.tables import Column, Scan
from lakehouse.ingest import layout, statements
from lakehouse.ingest.files import PlannedColumn
from lakehouse.ingest.schema import SchemaChanges
from lakehouse.ingest.target import TargetContext
from lakehouse.tables.changes import UpsertChanges
from lakehouse.tables.fork import Fork, drop_abandoned, forked
from lakehouse.tables.native import NativeWriter
from lakehouse.tables.native_schema import NativeTables
from lakehouse.tables.spark import STAGED, StatementWriter
from lakehouse.tables.write import StagedRows, TableWriter, needs_spark, write_with

_MAX_ATTEMPTS = 5
REJECTED_COLUMNS = (
    Column("file", "string"),
    Column("line", "bigint"),
    Column("reason", "string"),
    Column("raw", "string"),
    Column("ingested_at", "timestamp"),
)


class IcebergTarget:
    """An Iceberg table and its `__rejected` table, on a branch of their own."""

    def __init__(self, context: TargetContext, fork: Fork) -> None:
        self._context, self._table, self._info = context, context.table, context.info
        self._catalog, self._fork = context.catalog, fork
        self._rejected = context.table.rejected
        self._pending_rejects: Path | None = None
        self._light = False
        self._main = context.tables.formats["iceberg"]
        self._on_branch = self._main.on(fork.branch)

    def open(
        self,
        planned: Sequence[PlannedColumn],
        key: Sequence[str],
        request: IngestRequest,
        changes: SchemaChanges,
        replace_all: bool,
    ) -> None:
        """Create the table on the branch, or change its schema there to what the files need."""
        properties = {statements.COLUMNS_PROPERTY: statements.dump_recorded_columns(planned), "lake.key": ",".join(key)}
        properties = {name: value for name, value in properties.items() if value}
        self._light = request.light
        if self._light:
            self._open_light(planned, request, changes, properties)
            return
        if self._info is None:
            # Spark's tasks sort their rows by partition. Otherwise each keeps a file open per partition, and every open
            # file buffers a row group: a file with thousands of partitions ran out of memory.
            properties["write.spark.fanout.enabled"] = "false"
            self._run(
                statements.create(
                    self._table, planned, "iceberg", layout.quoted_layout(request.partition_by), properties
                )
            )
            if request.sort_by:
                self._run(f"ALTER TABLE {self._table.spark} WRITE ORDERED BY {layout.quoted_layout(request.sort_by)}")
            return
        order = [column.name for column in self._info.columns]
        types = {column.name: column.type for column in changes.rewritten}
        self._check_update_mode(types)
        for statement in (
            *layout.drop_statements(self._table, self._info, types),
            *statements.evolve(self._table, changes, order, keep_rows=not replace_all),
            *layout.restore_statements(self._table, self._info, types),
        ):
            self._run(statement)
        if any(self._info.properties.get(name) != value for name, value in properties.items()):
            listed = ", ".join(f"{spark_text(name)} = {spark_text(value)}" for name, value in properties.items())
            self._run(f"ALTER TABLE {self._table.spark} SET TBLPROPERTIES ({listed})")

    def _open_light(
        self,
        planned: Sequence[PlannedColumn],
        request: IngestRequest,
        changes: SchemaChanges,
        properties: Mapping[str, str],
    ) -> None:
        if self._info is None and (request.partition_by or request.sort_by):
            raise needs_spark("A partitioned or sorted table")
        if self._info is None:
            self._native_tables().create(self._table, _as_columns(planned), properties)
            return
        if changes.rewritten or changes.unpartitioned or changes.unsorted:
            column = (*changes.rewritten, *changes.widened)[0]
            raise needs_spark(f"Changing the column {column.name} of {self._table} to {column.type}")
        new = {name: value for name, value in properties.items() if self._info.properties.get(name) != value}
        if changes or new:
            self._native_tables().change(self._table, _as_columns(changes.added), _as_columns(changes.widened), new)

    def columns(self) -> Sequence[Column]:
        return self._on_branch.describe(self._table).columns

    def existing_rows(self) -> Scan | None:
        return self._main.scan(self._table) if self._info is not None else None

    def insert(self, folder: Path, provided: Sequence[str], overwrite: bool) -> None:
        rows, columns = StagedRows(folder, provided), self.columns()
        write_with(
            self._writers(self._table),
            lambda writer: writer.overwrite(rows, columns) if overwrite else writer.append(rows, columns),
        )

    def upsert(self, changes: UpsertChanges, key: Sequence[str]) -> None:
        columns = self.columns()
        names = [column.name for column in columns]
        if changes.updated:
            rows = StagedRows(changes.folder, names)
            write_with(self._writers(self._table), lambda writer: writer.merge(rows, columns, key))
        else:
            self.insert(changes.folder, names, overwrite=False)

    def _writers(self, table: TableName) -> list[TableWriter]:
        """The executors for a table, the cheapest first."""
        properties = self._fork.on_branch.pyiceberg_properties()
        native = NativeWriter(self._context.duckdb, self._fork.branch, properties, table)
        return [native] if self._light else [native, StatementWriter(table, self._run)]

    def _native_tables(self) -> NativeTables:
        return NativeTables(self._fork.branch, self._fork.on_branch.pyiceberg_properties())

    def add_rejects(self, folder: Path) -> None:
        if self._catalog.capabilities.multi_table_publish:
            self.write_rejects(folder)
        else:
            self._pending_rejects = folder

    def write_rejects(self, folder: Path) -> None:
        """Append rejected rows to the `__rejected` table on the branch."""
        if self._fork.base[self._rejected] is None:
            self._native_tables().create(self._rejected, REJECTED_COLUMNS, {})
        rows = StagedRows(folder, [column.name for column in REJECTED_COLUMNS[:-1]], {"ingested_at": "now()"})
        write_with(self._writers(self._rejected), lambda writer: writer.append(rows, REJECTED_COLUMNS))

    def publish(self, notes: Mapping[str, str]) -> str | None:
        self._fork.annotate(self._table, {name: value for name, value in notes.items() if name != "columns"})
        current = self._on_branch.describe(self._table).current
        assert current is not None
        if not self._fork.publish(self._commit(notes)):
            return None
        if self._pending_rejects:
            publish_rejects(self._context, self._pending_rejects)
        return current.id

    def publish_rejects(self) -> bool:
        """Publish the rejected rows alone; False if another writer changed their table meanwhile."""
        return bool(self._fork.publish(self._commit({})))

    def _commit(self, notes: Mapping[str, str]) -> Commit:
        content = notes.get("mode", "rejected rows")
        return Commit("ingest", message=f"{content} into {self._table}", source=notes.get("source", ""))

    def _check_update_mode(self, types: Mapping[str, str]) -> None:
        """Refuse to change the type of a partition column where updates merge on read.

        Such an update keeps the old data files, whose partition column no longer exists; DuckDB crashes on reading them.
        """
        assert self._info is not None
        merges_on_read = self._info.properties.get("write.update.mode") == "merge-on-read"
        fields = map(layout.LayoutField.parse, self._info.partitioning)
        if merges_on_read and any(field.column in types for field in fields):
            raise NotSupportedError(
                f"The type of a partition column of {self._table} cannot change while its updates merge on read.",
                f"First: ALTER TABLE {self._table} SET TBLPROPERTIES ('write.update.mode' = 'copy-on-write')",
            )

    def _run(self, sql: str, folder: Path | None = None) -> None:
        files = {STAGED: str(folder)} if folder else {}
        # Each task writes the rows it reads. A shuffle to one task per partition took five times as long for a million
        # rows, and creates fewer files only where a task has rows of many partitions.
        settings = {"spark.sql.iceberg.distribution-mode": "none"} if folder else {}
        self._context.run(QueryRequest(sql, arrow=False, branch=self._fork.branch, files=files, settings=settings))


def _as_columns(planned: Sequence[PlannedColumn]) -> list[Column]:
    return [Column(column.name, column.type, comment=column.header) for column in planned]


@contextmanager
def iceberg_target(context: TargetContext) -> Iterator[IcebergTarget]:
    """An Iceberg table to write to until the end of the block; branches of ingests that were killed are dropped."""
    drop_abandoned(context.catalog, "ingest", context.table)
    with forked(context.catalog, "ingest", [context.table, context.table.rejected], context.files) as fork:
        yield IcebergTarget(context, fork)


def publish_rejects(context: TargetContext, folder: Path) -> None:
    """Add rejected rows in a commit of their own, where the catalog cannot publish two tables at once.

    This commit comes last: a kill before it loses the record of a rejected row, never a valid row.
    """
    for _ in range(_MAX_ATTEMPTS):
        with iceberg_target(context) as target:
            target.write_rejects(folder)
            if target.publish_rejects():
                return
    raise CommitConflictError(
        f"The valid rows are in {context.table}, but the rejected rows are not in {context.table.rejected}:"
        f" other writers changed it during all {_MAX_ATTEMPTS} attempts to commit.",
        "Show them with --dry-run, or ingest the files again with --force when fewer writers are active.",
    )
