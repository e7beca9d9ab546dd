"""An ingest into a Hudi table, which has no branches: rows and schema are one commit, and that makes them seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lakehouse.core.errors import NotSupportedError
from lakehouse.core.format import spark_tables
from lakehouse.core.quoting import spark_text
from lakehouse.core.requests import IngestRequest, QueryRequest
from lakehouse.core.tables import Column, Scan
from lakehouse.formats.hudi.writer import noted, write_to
from lakehouse.ingest import statements
from lakehouse.ingest.changes import Changes
from lakehouse.ingest.files import PlannedColumn
from lakehouse.ingest.schema import Evolution, evolved, without_times_of_no_zone
from lakehouse.ingest.targets import Place, publish_rejects


@dataclass(frozen=True)
class _Rows:
    """What is to be written."""

    folder: Path
    brought: Sequence[str]
    key: Sequence[str] = ()
    """By which staged rows replace those in the table; none if they are simply added."""
    overwrite: bool = False


class HudiTarget:
    """A Hudi table that is being written to."""

    def __init__(self, place: Place) -> None:
        self._place, self._table, self._info = place, place.table, place.info
        self._format = place.tables.formats["hudi"]
        self._changes = Evolution()
        self._rejected: Path | None = None
        self._rows: _Rows | None = None

    def open(
        self,
        planned: Sequence[PlannedColumn],
        key: Sequence[str],
        wanted: IngestRequest,
        changes: Evolution,
        replace_all: bool,
    ) -> None:
        if self._format.capabilities.sync:
            planned = without_times_of_no_zone(planned)
            changes = replace(changes, added=without_times_of_no_zone(changes.added))
        if self._info is None:
            _refuse_transforms(wanted.partition_by)
            properties = {"primaryKey": ",".join(key)} if key else {"type": "cow"}
            create = statements.create(self._table, planned, "hudi", wanted.partition_by, properties)
            self._place.run(QueryRequest(create + self._elsewhere(), arrow=False))
        elif key and set(key) != set(self._info.key):
            raise NotSupportedError(
                f"{self._table} is a Hudi table with the key {', '.join(self._info.key) or '(none)'}, which cannot change.",
                "Leave --key away, or ingest into a new table.",
            )
        else:
            self._refuse_other_folders(changes)
            self._refuse_text_for_dates(changes)
        self._changes = changes

    def columns(self) -> Sequence[Column]:
        info = self._format.describe(self._table)
        # Spark's catalog keeps the columns of the partitioning at the end, and INSERT goes by place.
        return evolved(info.columns, self._changes, info.partitioning)

    def before(self) -> Scan | None:
        return self._format.scan(self._table) if self._info is not None else None

    def insert(self, folder: Path, brought: Sequence[str], overwrite: bool) -> None:
        self._rows = _Rows(folder, brought, overwrite=overwrite)

    def upsert(self, changes: Changes, key: Sequence[str]) -> None:
        self._rows = _Rows(changes.folder, [column.name for column in self.columns()], key)

    def keep_rejects(self, folder: Path) -> None:
        self._rejected = folder

    def publish(self, notes: Mapping[str, str]) -> str | None:
        assert self._rows is not None
        if self._changes.types and self._has_moved():
            return None
        request = self._evolving(self._rows, notes) if self._changes else self._plain(self._rows, notes)
        self._place.run(request)
        if self._rejected:
            publish_rejects(self._place, self._rejected)
        current = self._format.describe(self._table).current
        return current.id if current else ""

    def discard(self) -> None:
        """There is nothing that would have to be forgotten."""

    def _elsewhere(self) -> str:
        """The end of CREATE TABLE, if the table's usual folder is not free."""
        place = spark_tables(self._format).new_location(self._table)
        return f" LOCATION {spark_text(place)}" if place else ""

    def _plain(self, rows: _Rows, notes: Mapping[str, str]) -> QueryRequest:
        """Rows into a table that has the schema for them."""
        settings = noted(notes) | {"hoodie.spark.sql.insert.into.operation": self._operation(rows)}
        sql = statements.insert(self._table, self.columns(), rows.brought, rows.overwrite)
        return QueryRequest(sql, arrow=False, files={statements.STAGED: str(rows.folder)}, settings=settings)

    def _evolving(self, rows: _Rows, notes: Mapping[str, str]) -> QueryRequest:
        """Rows that bring a new schema with them. ALTER TABLE would be a commit of its own before theirs."""
        columns, info = self.columns(), self._format.describe(self._table)
        sql = statements.rows(columns, rows.brought)
        operation = self._operation(rows)
        if rows.overwrite:
            operation = "insert_overwrite_table"
        elif self._changes.types:
            # Files hold the type that they were written with, and not every reader converts it: all are written anew.
            held = [column.name for column in info.columns]
            sql = statements.rows_with_kept(self._table, columns, held, rows.brought, rows.key)
            operation = "insert_overwrite_table"
        write = write_to(info, columns, operation, notes, self._format.capabilities.sync)
        return QueryRequest(sql, arrow=False, files={statements.STAGED: str(rows.folder)}, write=write)

    def _operation(self, rows: _Rows) -> str:
        """What Hudi must do. Into a new table each key comes once, so it need not look for what it cannot find."""
        if self._info is None:
            return "bulk_insert"
        return "upsert" if rows.key else "insert"

    def _has_moved(self) -> bool:
        """Whether somebody else wrote since the rows were looked at: writing all of them anew would undo that."""
        current = self._format.describe(self._table).current
        seen = self._info.current if self._info else None
        return (current.id if current else "") != (seen.id if seen else "")

    def _refuse_other_folders(self, changes: Evolution) -> None:
        """Hudi reads a partition column from its folders, all of them at once: those of then and now must be one type."""
        assert self._info is not None
        changed = [name for name in changes.types if name in self._info.partitioning]
        if changed:
            raise NotSupportedError(
                f"{self._table} is a Hudi table partitioned by {', '.join(changed)}, whose type cannot change.",
                "Use --contract quarantine to set such rows aside, or an Iceberg table.",
            )

    def _refuse_text_for_dates(self, changes: Evolution) -> None:
        """Hudi's writer turns text back into the date or decimal that the column was, and fails where that cannot be."""
        assert self._info is not None
        stubborn = {c.name: c.type for c in self._info.columns if c.type.partition("(")[0] in ("date", "decimal")}
        changed = [f"{name} {stubborn[name]} -> {new}" for name, new in changes.types.items() if name in stubborn]
        if changed:
            raise NotSupportedError(
                f"A Hudi table cannot change the type of a date or a decimal: {', '.join(changed)}.",
                "Use --contract quarantine to set such rows aside, or an Iceberg table.",
            )


def _refuse_transforms(partition_by: str) -> None:
    if "(" in partition_by:
        raise NotSupportedError(
            f"A Hudi table is partitioned by plain columns, not by a transform: {partition_by}.",
            'Name a column (--partition-by "country"), or use an Iceberg table (--format iceberg).',
        )
