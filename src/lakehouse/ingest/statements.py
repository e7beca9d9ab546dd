"""Spark SQL statements of an ingest."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from lakehouse.core.names import TableName
from lakehouse.core.quoting import spark_name, spark_type
from lakehouse.core.quoting import spark_text as text
from lakehouse.core.tables import Column
from lakehouse.ingest.files import PlannedColumn, RecordedColumn, fields_of, is_nested
from lakehouse.ingest.schema import SchemaChanges, nested_changes
from lakehouse.tables.spark import STAGED

#: The table property that records how files are read (see `dump_recorded_columns`).
COLUMNS_PROPERTY = "lake.columns"


def create(
    table: TableName,
    columns: Sequence[PlannedColumn],
    table_format: str,
    partition_by: str,
    properties: Mapping[str, str],
) -> str:
    """CREATE TABLE, with the headers of the files as column comments."""
    listed = ", ".join(
        f"`{column.name}` {spark_type(column.type)}" + (f" COMMENT {text(column.header)}" if column.header else "")
        for column in columns
    )
    parts = f" PARTITIONED BY ({partition_by})" if partition_by else ""
    props = ", ".join(f"{text(key)} = {text(value)}" for key, value in properties.items())
    return f"CREATE TABLE {table.spark} ({listed}) USING {table_format}{parts} TBLPROPERTIES ({props})"


def evolve(table: TableName, changes: SchemaChanges, order: Sequence[str], keep_rows: bool = True) -> Iterator[str]:
    """ALTER TABLE statements for the changes; `keep_rows` is False if the ingest replaces all rows."""
    if changes.added:
        listed = ", ".join(
            f"`{column.name}` {spark_type(column.type)} COMMENT {text(column.header)}" for column in changes.added
        )
        yield f"ALTER TABLE {table.spark} ADD COLUMNS ({listed})"
    for column in changes.widened:
        for path, kind, is_new in nested_changes(column.recorded, column.type, (column.name,)) or ():
            listed = ".".join(map(spark_name, path))
            verb = f"ADD COLUMN {listed}" if is_new else f"ALTER COLUMN {listed} TYPE"
            yield f"ALTER TABLE {table.spark} {verb} {spark_type(kind)}"
    for column in changes.rewritten:
        # Iceberg cannot convert values in place: fill a second column, then give it the name and position of the first.
        other = f"{column.name}__new"
        while other in order:
            other += "_"
        yield f"ALTER TABLE {table.spark} ADD COLUMNS (`{other}` {spark_type(column.type)} COMMENT {text(column.header)})"
        if keep_rows:
            yield f"UPDATE {table.spark} SET `{other}` = {_cast(f'`{column.name}`', column.recorded, column.type)}"
        yield f"ALTER TABLE {table.spark} DROP COLUMN `{column.name}`"
        yield f"ALTER TABLE {table.spark} RENAME COLUMN `{other}` TO `{column.name}`"
        index = order.index(column.name)
        position = f"AFTER `{order[index - 1]}`" if index else "FIRST"
        yield f"ALTER TABLE {table.spark} ALTER COLUMN `{column.name}` {position}"


def rows(columns: Sequence[Column], provided: Sequence[str]) -> str:
    """SELECT the staged rows in the types of the table; columns that they lack are NULL."""
    return f"SELECT {_select_list(columns, {c.name: c.type for c in columns if c.name in provided})} FROM {STAGED}"


def rows_with_existing(
    table: TableName, columns: Sequence[Column], existing: Sequence[Column], provided: Sequence[str], key: Sequence[str]
) -> str:
    """SELECT the staged rows and, in the new types, the rows of the table that they do not replace."""
    before = {column.name: column.type for column in existing}
    types = {column.name: column.type for column in columns}
    same_key = " AND ".join(f"CAST(t.`{name}` AS {types[name]}) = s.`{name}`" for name in key)
    anti_join = f" LEFT ANTI JOIN {STAGED} s ON {same_key}" if key else ""
    return f"SELECT {_select_list(columns, before)} FROM {table.spark} t{anti_join} UNION ALL {rows(columns, provided)}"


def _cast(value: str, old: str, new: str, depth: int = 0) -> str:
    """A value in another type. Spark cannot add a field to a struct, and its cast of one to a string leaves out the names.

    Args:
        depth: of the lambdas around it, each of which has variables of its own.
    """
    if old == new or not is_nested(old):
        return f"CAST({value} AS {spark_type(new)})"
    if new == "string":
        return f"to_json({value})"
    before, after = fields_of(old), fields_of(new)
    if old.startswith("struct<"):
        parts = (f"{text(name)}, {_field(value, name, before, kind, depth)}" for name, kind in after.items())
        return f"IF({value} IS NULL, NULL, named_struct({', '.join(parts)}))"
    if old.startswith("array<"):
        return f"transform({value}, e{depth} -> {_cast(f'e{depth}', before['element'], after['element'], depth + 1)})"
    key, item = (_cast(f"{part[0]}{depth}", before[part], after[part], depth + 1) for part in ("key", "value"))
    return f"transform_values(transform_keys({value}, (k{depth}, v{depth}) -> {key}), (k{depth}, v{depth}) -> {item})"


def _field(value: str, name: str, before: Mapping[str, str], kind: str, depth: int) -> str:
    """A field of a struct in another type; NULL if the struct does not have it."""
    inner = f"{value}.{spark_name(name)}"
    return _cast(inner, before[name], kind, depth) if name in before else f"CAST(NULL AS {spark_type(kind)})"


def _select_list(columns: Sequence[Column], types: Mapping[str, str]) -> str:
    """The columns, of rows that have these types; columns that they lack are NULL."""
    return ", ".join(
        _cast(f"`{column.name}`" if column.name in types else "NULL", types.get(column.name, column.type), column.type)
        + f" AS `{column.name}`"
        for column in columns
    )


def dump_recorded_columns(columns: Sequence[PlannedColumn]) -> str:
    """Serialize how the files are read, to store it with the table."""
    return json.dumps([[column.name, column.type, column.header, column.format] for column in columns])


def parse_recorded_columns(serialized: str) -> tuple[RecordedColumn, ...]:
    """Read what `dump_recorded_columns` wrote."""
    return tuple(RecordedColumn(*fields) for fields in json.loads(serialized))
