"""Ingest into a Hudi table: without branches, rows and schema become visible in one commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import NotSupportedError
from lakehouse.core.format import spark_tables
from lakehouse.core.quoting import spark_text
from lakehouse.core.requests import IngestRequest, QueryRequest
from lakehouse.core.tables import Column, Scan
from lakehouse.formats.hudi.writer import noted, write_to
from lakehouse.ingest import layout, statements
from lakehouse.ingest.files import PlannedColumn
from lakehouse.ingest.iceberg_target import publish_rejects
from lakehouse.ingest.schema import SchemaChanges, columns_after, with_utc_timestamps
from lakehouse.ingest.target import TargetContext
from lakehouse.tables.changes import UpsertChanges
from lakehouse.tables.spark import STAGED


@dataclass(frozen=True)
class _PendingRows:
    """Staged rows that `publish` writes."""

    folder: Path
    provided: Sequence[str]
    key: Sequence[str] = ()
    """The staged rows replace those of the table with the same key; without a key they are added."""
    overwrite: bool = False


class HudiTarget:
    """A Hudi table that is being written to; `publish` writes rows and schema changes."""

    def __init__(self, context: TargetContext) -> None:
        self._context, self._table, self._info = context, context.table, context.info
        self._format = context.tables.formats["hudi"]
        self._changes = SchemaChanges()
        self._rejected: Path | None = None
        self._rows: _PendingRows | None = None

    def open(
        self,
        planned: Sequence[PlannedColumn],
        key: Sequence[str],
        request: IngestRequest,
        changes: SchemaChanges,
        replace_all: bool,
    ) -> None:
        if self._format.capabilities.sync:
            planned = with_utc_timestamps(planned)
            changes = replace(changes, added=with_utc_timestamps(changes.added))
        if self._info is None:
            _check_no_transforms(request.partition_by)
            properties = {"primaryKey": ",".join(key)} if key else {"type": "cow"}
            create = statements.create(
                self._table, planned, "hudi", layout.quoted_layout(request.partition_by), properties
            )
            self._context.run(QueryRequest(create + self._location_clause(), arrow=False))
        elif key and set(key) != set(self._info.key):
            raise NotSupportedError(
                f"{self._table} is a Hudi table with the key {', '.join(self._info.key) or '(none)'}, which cannot change.",
                "Omit --key, or ingest into a new table.",
            )
        else:
            self._check_partition_types(changes)
            self._check_date_and_decimal_types(changes)
        self._changes = changes

    def columns(self) -> Sequence[Column]:
        info = self._format.describe(self._table)
        # Spark's catalog lists partition columns last, and INSERT matches columns by position.
        return columns_after(info.columns, self._changes, info.partitioning)

    def existing_rows(self) -> Scan | None:
        return self._format.scan(self._table) if self._info is not None else None

    def insert(self, folder: Path, provided: Sequence[str], overwrite: bool) -> None:
        self._rows = _PendingRows(folder, provided, overwrite=overwrite)

    def upsert(self, changes: UpsertChanges, key: Sequence[str]) -> None:
        self._rows = _PendingRows(changes.folder, [column.name for column in self.columns()], key)

    def add_rejects(self, folder: Path) -> None:
        self._rejected = folder

    def publish(self, notes: Mapping[str, str]) -> str | None:
        assert self._rows is not None
        if self._changes.types and self._has_changed():
            return None
        request = self._write_with_schema(self._rows, notes) if self._changes else self._insert(self._rows, notes)
        self._context.run(request)
        if self._rejected:
            publish_rejects(self._context, self._rejected)
        current = self._format.describe(self._table).current
        return current.id if current else ""

    def _location_clause(self) -> str:
        """The LOCATION clause of CREATE TABLE, if the default folder of the table is not free."""
        location = spark_tables(self._format).new_location(self._table)
        return f" LOCATION {spark_text(location)}" if location else ""

    def _insert(self, rows: _PendingRows, notes: Mapping[str, str]) -> QueryRequest:
        """An INSERT into a table whose schema does not change."""
        settings = noted(notes) | {"hoodie.spark.sql.insert.into.operation": self._operation(rows)}
        verb = "INSERT OVERWRITE TABLE" if rows.overwrite else "INSERT INTO"
        sql = f"{verb} {self._table.spark} {statements.rows(self.columns(), rows.provided)}"
        return QueryRequest(sql, arrow=False, files={STAGED: str(rows.folder)}, settings=settings)

    def _write_with_schema(self, rows: _PendingRows, notes: Mapping[str, str]) -> QueryRequest:
        """Write rows and a new schema in one commit; ALTER TABLE would be a separate, earlier one."""
        columns, info = self.columns(), self._format.describe(self._table)
        sql = statements.rows(columns, rows.provided)
        operation = self._operation(rows)
        if rows.overwrite:
            operation = "insert_overwrite_table"
        elif self._changes.types:
            # Files keep the type they were written with, and not every reader converts it: rewrite all rows.
            sql = statements.rows_with_existing(self._table, columns, info.columns, rows.provided, rows.key)
            operation = "insert_overwrite_table"
        write = write_to(info, columns, operation, notes, self._format.capabilities.sync)
        return QueryRequest(sql, arrow=False, files={STAGED: str(rows.folder)}, write=write)

    def _operation(self, rows: _PendingRows) -> str:
        """The Hudi write operation. In a new table every key is new, so Hudi can skip its index lookup."""
        if self._info is None:
            return "bulk_insert"
        return "upsert" if rows.key else "insert"

    def _has_changed(self) -> bool:
        """Whether another writer committed since the ingest began: rewriting all rows would undo that commit."""
        current = self._format.describe(self._table).current
        initial = self._info.current if self._info else None
        return (current.id if current else "") != (initial.id if initial else "")

    def _check_partition_types(self, changes: SchemaChanges) -> None:
        """Hudi reads a partition column from folder names, so all folders must have the same type."""
        assert self._info is not None
        changed = [name for name in changes.types if name in self._info.partitioning]
        if changed:
            raise NotSupportedError(
                f"{self._table} is a Hudi table partitioned by {', '.join(changed)}, whose type cannot change.",
                "Use --contract quarantine to quarantine such rows, or an Iceberg table.",
            )

    def _check_date_and_decimal_types(self, changes: SchemaChanges) -> None:
        """Hudi's writer casts a string back to the former date or decimal, and fails where the cast is impossible."""
        assert self._info is not None
        fixed = {c.name: c.type for c in self._info.columns if c.type.partition("(")[0] in ("date", "decimal")}
        changed = [f"{name} {fixed[name]} -> {new}" for name, new in changes.types.items() if name in fixed]
        if changed:
            raise NotSupportedError(
                f"A Hudi table cannot change the type of a date or a decimal: {', '.join(changed)}.",
                "Use --contract quarantine to quarantine such rows, or an Iceberg table.",
            )


def _check_no_transforms(partition_by: str) -> None:
    if "(" in partition_by:
        raise NotSupportedError(
            f"Hudi partitions by columns, not by transforms: {partition_by}.",
            'Name a column (--partition-by "country"), or use an Iceberg table (--format iceberg).',
        )
