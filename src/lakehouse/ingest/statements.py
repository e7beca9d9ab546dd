"""The Spark statements of an ingest."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from lakehouse.core.names import TableName
from lakehouse.core.quoting import spark_text as text
from lakehouse.core.tables import Column
from lakehouse.ingest.files import PlannedColumn, RecordedColumn
from lakehouse.ingest.schema import Evolution

#: Where a table keeps how its files are read.
COLUMNS_PROPERTY = "lake.columns"
STAGED = "lake_staged"


def create(
    table: TableName,
    columns: Sequence[PlannedColumn],
    table_format: str,
    partition_by: str,
    properties: Mapping[str, str],
) -> str:
    """CREATE TABLE, with the files' own headers as comments."""
    listed = ", ".join(
        f"`{column.name}` {column.type}" + (f" COMMENT {text(column.header)}" if column.header else "")
        for column in columns
    )
    parts = f" PARTITIONED BY ({partition_by})" if partition_by else ""
    props = ", ".join(f"{text(key)} = {text(value)}" for key, value in properties.items())
    return f"CREATE TABLE {table} ({listed}) USING {table_format}{parts} TBLPROPERTIES ({props})"


def evolve(table: TableName, changes: Evolution, order: Sequence[str], keep_rows: bool = True) -> Iterator[str]:
    """ALTER TABLE, as often as it takes; `keep_rows` is False where all rows are about to be replaced."""
    if changes.added:
        listed = ", ".join(f"`{column.name}` {column.type} COMMENT {text(column.header)}" for column in changes.added)
        yield f"ALTER TABLE {table} ADD COLUMNS ({listed})"
    for column in changes.widened:
        yield f"ALTER TABLE {table} ALTER COLUMN `{column.name}` TYPE {column.type}"
    for column in changes.rewritten:
        # Iceberg converts no values in place: fill a second column, then let it take the first one's name and place.
        other = f"{column.name}__new"
        while other in order:
            other += "_"
        yield f"ALTER TABLE {table} ADD COLUMNS (`{other}` {column.type} COMMENT {text(column.header)})"
        if keep_rows:
            yield f"UPDATE {table} SET `{other}` = CAST(`{column.name}` AS {column.type})"
        yield f"ALTER TABLE {table} DROP COLUMN `{column.name}`"
        yield f"ALTER TABLE {table} RENAME COLUMN `{other}` TO `{column.name}`"
        place = order.index(column.name)
        where = f"AFTER `{order[place - 1]}`" if place else "FIRST"
        yield f"ALTER TABLE {table} ALTER COLUMN `{column.name}` {where}"


def insert(table: TableName, columns: Sequence[Column], brought: Sequence[str], overwrite: bool = False) -> str:
    """INSERT of the staged rows; columns that they do not have become null."""
    verb = "INSERT OVERWRITE TABLE" if overwrite else "INSERT INTO"
    return f"{verb} {table} {rows(columns, brought)}"


def rows(columns: Sequence[Column], brought: Sequence[str]) -> str:
    """The staged rows, in the table's types; columns that they do not have are null."""
    return f"SELECT {_picked(columns, brought)} FROM {STAGED}"


def rows_with_kept(
    table: TableName, columns: Sequence[Column], held: Sequence[str], brought: Sequence[str], key: Sequence[str]
) -> str:
    """The staged rows and those that the table has, in its new types, except for those that the staged ones replace."""
    types = {column.name: column.type for column in columns}
    same = " AND ".join(f"CAST(t.`{name}` AS {types[name]}) = s.`{name}`" for name in key)
    replaced = f" LEFT ANTI JOIN {STAGED} s ON {same}" if key else ""
    return f"SELECT {_picked(columns, held)} FROM {table} t{replaced} UNION ALL {rows(columns, brought)}"


def merge(table: TableName, columns: Sequence[Column], key: Sequence[str]) -> str:
    """MERGE of rows that are known to be new or different."""
    names = [column.name for column in columns]
    same = " AND ".join(f"t.`{name}` = s.`{name}`" for name in key)
    return (
        f"MERGE INTO {table} t USING (SELECT {_picked(columns, names)} FROM {STAGED}) s ON {same}"
        " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )


def _picked(columns: Sequence[Column], brought: Sequence[str]) -> str:
    return ", ".join(
        f"CAST({f'`{column.name}`' if column.name in brought else 'NULL'} AS {column.type}) AS `{column.name}`"
        for column in columns
    )


def recorded_text(columns: Sequence[PlannedColumn]) -> str:
    """How the files are read, to be kept with the table."""
    return json.dumps([[column.name, column.type, column.header, column.format] for column in columns])


def recorded_from(told: str) -> tuple[RecordedColumn, ...]:
    """What `recorded_text` wrote."""
    return tuple(RecordedColumn(*each) for each in json.loads(told))
