"""Upsert Arrow rows into an Iceberg table with PyIceberg: evolve the schema, compare, change it in one commit."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import NeedsSparkError, SourceError
from lakehouse.core.names import TableName
from lakehouse.core.properties import new_table_properties
from lakehouse.core.quoting import name as quoted
from lakehouse.core.tables import Column
from lakehouse.formats.iceberg.metadata import spark_type
from lakehouse.pipelines import arrow
from lakehouse.tables.native import NativeWriter
from lakehouse.tables.write import StagedRows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

    from lakehouse.engines.duckdb import DuckDB

_DELETED = "_lake_deleted"


@dataclass(frozen=True)
class Upsert:
    """Rows to insert or update, and the keys of the rows that stay."""

    types: Mapping[str, tuple[str, str]]
    """Each column's type in the lake and in the source."""
    rows: pa.Table
    present: pa.Table
    """The keys that the source has: rows with any other key are deleted."""
    key: Sequence[str]
    read: str
    """Which rows were read."""
    notes: Mapping[str, str]
    """Properties of the snapshot."""


@dataclass(frozen=True)
class UpsertReport:
    """The changes of an upsert."""

    table: str
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    columns: tuple[str, ...] = ()
    """The columns that were added."""
    snapshot: int | None = None
    """The current snapshot, which is the previous one if nothing differed."""
    read: str = ""
    """Which rows were read."""


def find_table(catalog: Catalog, name: TableName) -> Table | None:
    """A table; None if it does not exist."""
    from pyiceberg.exceptions import NoSuchTableError

    try:
        return catalog.load_table((name.namespace, name.table))
    except NoSuchTableError:
        return None


def create_table(catalog: Catalog, name: TableName, batch: Upsert) -> Table:
    """Create the table for an upsert."""
    catalog.create_namespace_if_not_exists(name.namespace)
    properties = {**new_table_properties(), "lake.key": ",".join(batch.key)}
    return catalog.create_table((name.namespace, name.table), schema=batch.rows.schema, properties=properties)


def last_cursor(table: Table) -> str:
    """The cursor of the latest ancestor snapshot that has one."""
    snapshot = table.current_snapshot()
    while snapshot is not None:
        cursor = snapshot.summary.additional_properties.get("lake.cursor") if snapshot.summary else None
        if cursor:
            return str(cursor)
        snapshot = table.snapshot_by_id(snapshot.parent_snapshot_id) if snapshot.parent_snapshot_id else None
    return ""


def upsert(table: Table, name: TableName, batch: Upsert, duckdb: DuckDB) -> UpsertReport:
    """Change a table to the batch's rows: one snapshot, or none if nothing differs."""
    key = list(batch.key)
    with table.transaction() as transaction:
        new_columns = _evolve(transaction, name, batch.types)
    writer = NativeWriter.of(duckdb, name, table, batch.notes)
    schema = table.schema().as_arrow()
    existing, rows = _conform(table.scan().to_arrow(), schema), _conform(batch.rows, schema)
    changes = _compare(existing, rows, _conform_keys(batch.present, schema), key)
    if changes.changed.num_rows or changes.deleted.num_rows:
        try:
            _write(writer, table, changes, key)
        except NeedsSparkError:
            # A table that fits in memory can be written anew, whatever its layout and delete files are.
            table.overwrite(changes.apply_to(existing, key), snapshot_properties=dict(batch.notes))
    current = table.current_snapshot()
    return UpsertReport(
        table=str(name),
        inserted=changes.changed.num_rows - changes.replaced.num_rows,
        updated=changes.replaced.num_rows,
        deleted=changes.deleted.num_rows,
        columns=new_columns,
        snapshot=current.snapshot_id if current else None,
        read=batch.read,
    )


def _write(writer: NativeWriter, table: Table, changes: _Changes, key: Sequence[str]) -> None:
    """Append or merge changed rows, and remove deleted ones."""
    import pyarrow as pa
    from pyarrow import parquet

    columns = [Column(field.name, spark_type(str(field.field_type))) for field in table.schema().fields]
    removes = changes.replaced.num_rows or changes.deleted.num_rows
    changed = changes.changed.append_column(_DELETED, pa.repeat(pa.scalar(False), changes.changed.num_rows))
    deleted = changes.deleted.append_column(_DELETED, pa.repeat(pa.scalar(True), changes.deleted.num_rows))
    with tempfile.TemporaryDirectory(prefix="lake_upsert_") as scratch:
        folder = Path(scratch) / "rows"
        folder.mkdir()
        parquet.write_table(pa.concat_tables([changed, deleted], promote_options="default"), folder / "0.parquet")
        rows = StagedRows(folder, table.schema().column_names, deleted=_DELETED if removes else "")
        if removes:
            writer.merge(rows, columns, key)
        else:
            writer.append(rows, columns)


def _evolve(transaction: Any, name: TableName, types: Mapping[str, tuple[str, str]]) -> tuple[str, ...]:
    """Add missing columns and widen types; returns the names of the new columns."""
    from pyiceberg.exceptions import ResolveError
    from pyiceberg.schema import promote

    def can_promote(narrow: Any, wide: Any) -> bool:
        try:
            promote(narrow, wide)
        except ResolveError:
            return False
        return True

    existing = {field.name: field.field_type for field in transaction.table_metadata.schema().fields}
    with transaction.update_schema() as update:
        for column, (kind, declared) in types.items():
            new, old = _iceberg_type(kind), existing.get(column)
            if old is None:
                update.add_column(column, new)
            elif old != new and not can_promote(new, old):
                if not can_promote(old, new):
                    raise SourceError(
                        f"{name}.{column} is a {old}, and the database has a {declared} there now.",
                        "Iceberg only widens types: rename the column in the database or in the table.",
                    )
                update.update_column(column, new)
    return tuple(column for column in types if column not in existing)


@dataclass(frozen=True)
class _Changes:
    changed: pa.Table
    """New and different rows."""
    replaced: pa.Table
    """The keys of the different rows."""
    deleted: pa.Table
    """The keys that the source no longer has."""

    def removed_keys(self, key: Sequence[str]) -> pa.Table:
        import pyarrow as pa

        return pa.concat_tables([self.replaced.select(list(key)), self.deleted.select(list(key))])

    def apply_to(self, existing: pa.Table, key: Sequence[str]) -> pa.Table:
        """The whole table after the changes."""
        import pyarrow as pa

        sql = f"FROM existing ANTI JOIN removed USING ({', '.join(quoted(column) for column in key)})"
        unchanged = arrow.query(sql, existing=existing, removed=self.removed_keys(key)).cast(existing.schema)
        return pa.concat_tables([unchanged, self.changed])


def _compare(existing: pa.Table, rows: pa.Table, present: pa.Table, key: Sequence[str]) -> _Changes:
    keys = f"SELECT {', '.join(quoted(column) for column in key)} FROM"
    # EXCEPT treats two nulls, and two NaNs, as equal.
    changed = arrow.query("FROM rows EXCEPT FROM existing", rows=rows, existing=existing).cast(rows.schema)
    replaced = arrow.query(f"{keys} changed INTERSECT {keys} existing", changed=changed, existing=existing)
    deleted = arrow.query(f"{keys} existing EXCEPT {keys} present", existing=existing, present=present)
    return _Changes(changed, replaced.cast(present.schema), deleted.cast(present.schema))


def _conform(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows in the table's columns and types; missing columns are null."""
    import pyarrow as pa

    columns = [
        rows[field.name].cast(field.type) if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _conform_keys(present: pa.Table, schema: pa.Schema) -> pa.Table:
    import pyarrow as pa

    return present.cast(pa.schema([schema.field(name) for name in present.column_names]))


def arrow_type(kind: str) -> pa.DataType:
    """The Arrow type of a type of the lake, such as bigint or decimal(10,2)."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    return schema_to_pyarrow(_iceberg_type(kind))


def _iceberg_type(kind: str) -> Any:
    from pyiceberg import types as T

    if kind.startswith("decimal("):
        precision, scale = kind.removeprefix("decimal(").removesuffix(")").split(",")
        return T.DecimalType(int(precision), int(scale))
    named = {
        "boolean": T.BooleanType,
        "int": T.IntegerType,
        "bigint": T.LongType,
        "float": T.FloatType,
        "double": T.DoubleType,
        "string": T.StringType,
        "binary": T.BinaryType,
        "date": T.DateType,
        "timestamp": T.TimestamptzType,
    }
    return named[kind]()
