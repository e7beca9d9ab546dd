"""An upsert's real changes: of the rows that came, those that are new to the table or differ from what it holds.

DuckDB finds them before Spark is asked to write anything, so unchanged rows cost a read and no write, and a batch
without updates becomes a plain append.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lakehouse.core.names import TableName
from lakehouse.core.quoting import name as _name
from lakehouse.core.quoting import text as _text
from lakehouse.core.tables import Column, Scan
from lakehouse.engines.duckdb import DuckDB, duckdb_type
from lakehouse.ingest.files import PlannedColumn

NEW = "_lake_new"


@dataclass(frozen=True)
class Changes:
    """The rows to write, in a folder of Parquet, and the counts that people are told."""

    folder: Path
    inserted: int
    updated: int
    unchanged: int
    without_key: int
    rejects: Path | None


@dataclass(frozen=True)
class Upsert:
    """What came, what it meets, and by which columns they are the same row."""

    staged: Mapping[Path, tuple[str, int]]
    """The staged files: which file each came from, and on which line of that its first row stands."""
    planned: Sequence[PlannedColumn]
    table: Sequence[Column]
    """The table's columns as they will be."""
    target: Scan | None
    """The table's rows as they are; None for a table that is not there yet."""
    key: Sequence[str]
    order_by: str = ""


def find_changes(duckdb: DuckDB, upsert: Upsert, work: Path) -> Changes:
    """Write the changed rows to a folder below `work`."""
    folder, rejects = work / "changes", work / "keyless"
    folder.mkdir()
    files = ", ".join(_text(str(path)) for path in upsert.staged)
    came = f"read_parquet([{files}], filename = true, file_row_number = true, union_by_name = true)"
    has_key = " AND ".join(f"{_name(name)} IS NOT NULL" for name in upsert.key)
    newest = f"{_name(upsert.order_by)} DESC NULLS LAST, " if upsert.order_by else ""
    key = ", ".join(_name(name) for name in upsert.key)
    last = (
        f"SELECT * FROM {came} WHERE {has_key} QUALIFY row_number() OVER"
        f" (PARTITION BY {key} ORDER BY {newest}filename DESC, file_row_number DESC) = 1"
    )
    views: dict[TableName | str, Scan] = {"target": upsert.target} if upsert.target is not None else {}
    part = _text(str(folder / "part.parquet"))
    duckdb.run(f"COPY ({_changed(last, upsert)}) TO {part} (FORMAT parquet, COMPRESSION lz4_raw)", views, "upsert")
    count = (
        f"SELECT count(*), count(DISTINCT ({key})) FILTER ({has_key}), count(*) FILTER (NOT ({has_key})) FROM {came}"
    )
    _, distinct, keyless = duckdb.run(count, {}, "upsert").rows()[0]
    written, new = duckdb.run(
        f"SELECT count(*), count(*) FILTER ({NEW}) FROM read_parquet({part})", {}, "upsert"
    ).rows()[0]
    if keyless:
        rejects.mkdir()
        _keep_keyless(duckdb, f"SELECT * FROM {came} WHERE NOT ({has_key})", upsert, rejects / "part.parquet")
    return Changes(folder, new, written - new, distinct - written, keyless, rejects if keyless else None)


def _changed(last: str, upsert: Upsert) -> str:
    """New rows, and rows that differ in a column that the files have. What they do not have stays as it is."""
    brought = {column.name for column in upsert.planned if not column.missing}
    if upsert.target is None:
        picked = ", ".join(_picked(column, "s", brought) for column in upsert.table)
        return f"SELECT {picked}, true AS {NEW} FROM ({last}) s"
    held = {column.name for column in upsert.target.columns}
    picked = ", ".join(
        _picked(column, "s" if column.name in brought else "t", brought | held) for column in upsert.table
    )
    types = {column.name: duckdb_type(column.type) for column in upsert.table}
    same = " AND ".join(f"s.{_name(name)} = CAST(t.{_name(name)} AS {types[name]})" for name in upsert.key)
    # A table may hold a key twice (it was not always one); what came is written once all the same.
    once = ", ".join(f"s.{_name(name)}" for name in upsert.key)
    compared = [column for column in upsert.table if column.name in brought and column.name not in upsert.key]
    differs = " OR ".join(
        f"s.{_name(column.name)} IS DISTINCT FROM "
        + (f"CAST(t.{_name(column.name)} AS {duckdb_type(column.type)})" if column.name in held else "NULL")
        for column in compared
    )
    missing = f"t.{_name(upsert.key[0])} IS NULL"
    return (
        f"SELECT DISTINCT ON ({once}) {picked}, {missing} AS {NEW} FROM ({last}) s LEFT JOIN target t ON {same}"
        f" WHERE {missing} OR {differs or 'false'}"
    )


def _picked(column: Column, side: str, there: set[str]) -> str:
    value = f"{side}.{_name(column.name)}" if column.name in there else "NULL"
    return f"CAST({value} AS {duckdb_type(column.type)}) AS {_name(column.name)}"


def _keep_keyless(duckdb: DuckDB, rows: str, upsert: Upsert, file: Path) -> None:
    """Rows that no key identifies, in the form of rejected rows. Their line is counted by rows."""
    paths = ", ".join(_text(str(path)) for path in upsert.staged)
    came_from = ", ".join(_text(name) for name, _ in upsert.staged.values())
    first_lines = ", ".join(str(line) for _, line in upsert.staged.values())
    values = ", ".join(f"{_text(c.name)}: {_name(c.name)}" for c in upsert.planned if not c.missing)
    told = (
        f"SELECT MAP([{paths}], [{came_from}])[filename] AS file, "
        f" MAP([{paths}], [{first_lines}])[filename] + file_row_number AS line, 'null_key' AS reason,"
        f" CAST(to_json({{{values}}}) AS VARCHAR) AS raw FROM ({rows})"
    )
    duckdb.run(f"COPY ({told}) TO {_text(str(file))} (FORMAT parquet)", {}, "upsert")
