"""Find the rows of an upsert that are new or differ from the table.

DuckDB finds them before anything is written, so an unchanged row costs a read and no write, and an upsert without
updates becomes an append.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from lakehouse.core.dataclass import dataclass
from lakehouse.core.names import TableName
from lakehouse.core.quoting import name as _name
from lakehouse.core.quoting import text as _text
from lakehouse.core.tables import Column, Scan
from lakehouse.engines.duckdb import DuckDB, duckdb_type
from lakehouse.engines.duckdb.types import with_sorted_maps

#: The column of changed rows that is true for inserts and false for updates.
IS_NEW = "_lake_new"


@dataclass(frozen=True)
class UpsertChanges:
    """The rows to write, as a folder of Parquet files, and the counts of the report."""

    folder: Path
    inserted: int
    updated: int
    unchanged: int
    without_key: int
    superseded: int
    """Rows that another row of the files with the same key replaced."""
    rejects: Path | None


@dataclass(frozen=True)
class UpsertInput:
    """Staged rows, the table they go to, and the key that identifies a row."""

    staged: Mapping[Path, tuple[str, int]]
    """Staged files: the name of the source file of each, and the line of its first row available."""
    provided: Sequence[str]
    """The columns that the staged files have; in the others, rows of the table keep their values."""
    table: Sequence[Column]
    """The columns of the table after the schema changes."""
    target: Scan | None
    """The rows of the table before the upsert; None for a new table."""
    key: Sequence[str]
    order_by: str = ""
    """Of several rows with one key, the highest value of this column wins (default: the newest_rows row)."""


def find_changes(duckdb: DuckDB, upsert: UpsertInput, work: Path) -> UpsertChanges:
    """Write new and changed rows to a folder in `work`, and count them."""
    folder, rejects = work / "changes", work / "keyless"
    folder.mkdir()
    files = ", ".join(_text(str(path)) for path in upsert.staged)
    incoming = f"read_parquet([{files}], filename = true, file_row_number = true, union_by_name = true)"
    has_key = " AND ".join(f"{_name(name)} IS NOT NULL" for name in upsert.key)
    order = f"{_name(upsert.order_by)} DESC NULLS LAST, " if upsert.order_by else ""
    key = ", ".join(_name(name) for name in upsert.key)
    newest_rows = (
        f"SELECT * FROM {incoming} WHERE {has_key} QUALIFY row_number() OVER"
        f" (PARTITION BY {key} ORDER BY {order}filename DESC, file_row_number DESC) = 1"
    )
    views: dict[TableName | str, Scan] = {"target": upsert.target} if upsert.target is not None else {}
    output = _text(str(folder / "part.parquet"))
    duckdb.execute(
        f"COPY ({_changed_rows(newest_rows, upsert)}) TO {output} (FORMAT parquet, COMPRESSION lz4_raw)", views
    )
    count = f"SELECT count(*), count(DISTINCT ({key})) FILTER ({has_key}), count(*) FILTER (NOT ({has_key})) FROM {incoming}"
    total, distinct, keyless = duckdb.query(count, {}, "upsert").rows()[0]
    written, new = duckdb.query(
        f"SELECT count(*), count(*) FILTER ({IS_NEW}) FROM read_parquet({output})", {}, "upsert"
    ).rows()[0]
    if keyless:
        rejects.mkdir()
        _write_keyless(duckdb, f"SELECT * FROM {incoming} WHERE NOT ({has_key})", upsert, rejects / "part.parquet")
    return UpsertChanges(
        folder,
        inserted=new,
        updated=written - new,
        unchanged=distinct - written,
        without_key=keyless,
        superseded=total - keyless - distinct,
        rejects=rejects if keyless else None,
    )


def _changed_rows(newest_rows: str, upsert: UpsertInput) -> str:
    """SQL for new rows and rows that differ in a column of the files; other columns keep their values."""
    provided = set(upsert.provided)
    if upsert.target is None:
        select_list = ", ".join(_cast_or_null(column, "s", provided) for column in upsert.table)
        return f"SELECT {select_list}, true AS {IS_NEW} FROM ({newest_rows}) s"
    existing = {column.name for column in upsert.target.columns}
    select_list = ", ".join(
        _cast_or_null(column, "s" if column.name in provided else "t", provided | existing) for column in upsert.table
    )
    types = {column.name: duckdb_type(column.type) for column in upsert.table}
    same_key = " AND ".join(f"s.{_name(name)} = CAST(t.{_name(name)} AS {types[name]})" for name in upsert.key)
    # The table may have a key twice, if these columns were not always its key; write the incoming row once.
    distinct_key = ", ".join(f"s.{_name(name)}" for name in upsert.key)
    compared = [column for column in upsert.table if column.name in provided and column.name not in upsert.key]
    differs = " OR ".join(_differs(column, column.name in existing) for column in compared)
    missing = f"t.{_name(upsert.key[0])} IS NULL"
    return (
        f"SELECT DISTINCT ON ({distinct_key}) {select_list}, {missing} AS {IS_NEW} FROM ({newest_rows}) s LEFT JOIN target t ON {same_key}"
        f" WHERE {missing} OR {differs or 'false'}"
    )


def _differs(column: Column, exists: bool) -> str:
    """SQL for whether a column of the incoming row differs from that of the table."""
    before = f"CAST(t.{_name(column.name)} AS {duckdb_type(column.type)})" if exists else "NULL"
    sides = [
        with_sorted_maps(f"s.{_name(column.name)}", column.type),
        with_sorted_maps(before, column.type) if exists else before,
    ]
    return " IS DISTINCT FROM ".join(sides)


def _cast_or_null(column: Column, side: str, available: set[str]) -> str:
    value = f"{side}.{_name(column.name)}" if column.name in available else "NULL"
    return f"CAST({value} AS {duckdb_type(column.type)}) AS {_name(column.name)}"


def _write_keyless(duckdb: DuckDB, rows: str, upsert: UpsertInput, file: Path) -> None:
    """Write rows without a key as rejected rows; their line number assumes one line per row."""
    paths = ", ".join(_text(str(path)) for path in upsert.staged)
    source_names = ", ".join(_text(name) for name, _ in upsert.staged.values())
    first_lines = ", ".join(str(line) for _, line in upsert.staged.values())
    values = ", ".join(f"{_text(column)}: {_name(column)}" for column in upsert.provided)
    rejects_query = (
        f"SELECT MAP([{paths}], [{source_names}])[filename] AS file, "
        f" MAP([{paths}], [{first_lines}])[filename] + file_row_number AS line, 'null_key' AS reason,"
        f" CAST(to_json({{{values}}}) AS VARCHAR) AS raw FROM ({rows})"
    )
    duckdb.execute(f"COPY ({rejects_query}) TO {_text(str(file))} (FORMAT parquet)")
