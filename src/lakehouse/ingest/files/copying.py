"""One file into one Parquet file, with the rows that do not fit set aside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakehouse.core import quoting
from lakehouse.engines.duckdb.types import duckdb_type
from lakehouse.ingest.files import duck
from lakehouse.ingest.files.casts import MISFIT, Cast, cast_of, is_nested
from lakehouse.ingest.files.model import LINE_COLUMN, FilePlan, PlannedColumn, ReadPlan, Reject
from lakehouse.ingest.files.rejects import RejectsFile, placed, unparsed
from lakehouse.ingest.files.workspace import Rows, Workspace, rows_of

if TYPE_CHECKING:
    import duckdb

#: How much text goes into one row group: groups are held in memory while they are written.
_GROUP_BYTES = 64 << 20
#: Every thread holds one, twice while it is packed, beside what the reader needs.
_GROUP_SHARE = 16
_FEWEST_ROWS, _MOST_ROWS = 2_048, 122_880
#: A value is quoted in a reason up to here.
_SHOWN = 60


class TypeMismatch(Exception):
    """Columns whose guessed type does not hold some value."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        super().__init__(", ".join(names))


@dataclass(frozen=True)
class _Field:
    """A planned column as SQL on one file's rows."""

    column: PlannedColumn
    text: str
    cast: Cast | None

    @property
    def select(self) -> str:
        return f"{self.cast.value if self.cast else self.text} AS {quoting.name(self.column.name)}"


def copy_text(space: Workspace, file: FilePlan, plan: ReadPlan, path: Path, rejects: RejectsFile) -> int:
    """Stage a CSV or JSON file; how many rows went in."""
    while True:
        written = space.scan(file, lambda rows: _copy(space, file, plan, rows, path, strict=True))
        all_fit, misfits = written is not None, 0
        if written is None:
            written = space.scan(file, lambda rows: _copy(space, file, plan, rows, path, strict=False))
        bad, gone = unparsed(space.connection, file, space.ready(file).path)
        if not all_fit:
            misfits = _count_misfits(space, file, plan)
        if space.count_again(file, (written or 0) + len(bad) + misfits):
            break
    rejects.add(sorted([*space.ready(file).rejects, *bad], key=lambda reject: reject.line))
    if misfits:
        rejects.add(_misfits(space, file, plan, gone))
    return written or 0


def copy_parquet(space: Workspace, file: FilePlan, plan: ReadPlan, path: Path, rejects: RejectsFile) -> int:
    """Stage a Parquet file, which knows its types, under the plan's names and types."""
    table = duck.parquet(duck.reachable(file.file.path, space.folder))
    fields = [_parquet_field(file, column) for column in plan.columns]
    misfit = " OR ".join(field.cast.misfit(field.text) for field in fields if field.cast) or "false"
    numbered = f"SELECT *, row_number() OVER () AS {LINE_COLUMN} FROM {table}"
    bad = space.connection.execute(
        f"SELECT {LINE_COLUMN}, {_reasons(fields)}, to_json(p)::VARCHAR FROM ({numbered}) p WHERE {misfit}"
    )
    rejects.add(Reject(file.file.name, line, reason, raw) for line, reason, raw in _fetched(bad))
    line = f", {LINE_COLUMN}" if space.options.with_line else ""
    source = f"({numbered})" if line else table
    picked = ", ".join(field.select for field in fields) + line
    return _write(space, f"SELECT {picked} FROM {source} WHERE NOT ({misfit})", path, _MOST_ROWS)


def _copy(space: Workspace, file: FilePlan, plan: ReadPlan, rows: Rows, path: Path, strict: bool) -> int | None:
    """Copy the rows that fit; if `strict`, TypeMismatch if a guessed type does not hold, None if one that stands does not."""
    import duckdb

    fields = _fields(plan, file, rows)
    query, line = rows.query, ""
    if space.options.with_line:
        # DuckDB cannot say in which line a row stands; its number among the rows keeps their order, which is what counts.
        query, line = f"SELECT *, row_number() OVER () AS {LINE_COLUMN} FROM ({rows.query})", f", {LINE_COLUMN}"
    picked = ", ".join(field.select for field in fields) + line
    bad = _any_misfit(rows, fields)
    # One condition for the whole row: the same in every column's own expression takes minutes to plan in a wide file.
    good = f"CASE WHEN {bad} THEN error('{MISFIT}') ELSE true END" if strict else f"NOT ({bad})"
    bytes_held = min(_GROUP_BYTES, space.options.memory_limit // _GROUP_SHARE)
    group = min(max(bytes_held // file.dialect.row_bytes, _FEWEST_ROWS), _MOST_ROWS)
    try:
        return _write(space, f"SELECT {picked} FROM ({query}) WHERE {good}", path, group)
    except duckdb.InvalidInputException as exc:
        if MISFIT not in str(exc):
            raise
    guessed = _misfitting(space, rows, [field for field in fields if not field.column.fixed])
    if guessed:
        raise TypeMismatch(guessed)
    return None


def _write(space: Workspace, query: str, path: Path, group: int) -> int:
    options = f"FORMAT parquet, COMPRESSION lz4_raw, ROW_GROUP_SIZE {group}"
    copied = space.connection.execute(f"COPY ({query}) TO {quoting.text(str(path))} ({options})").fetchone()
    return int(copied[0]) if copied else 0


def _fields(plan: ReadPlan, file: FilePlan, rows: Rows) -> list[_Field]:
    places = {name: place for place, name in enumerate(file.names)}
    fields = []
    for column in plan.columns:
        if column.name not in places:
            fields.append(_Field(column, _nothing(column), None))
            continue
        place = places[column.name]
        text = rows.text(place)
        fields.append(_Field(column, text, cast_of(column, rows.raw(place), text)))
    return fields


def _parquet_field(file: FilePlan, column: PlannedColumn) -> _Field:
    if column.name not in file.names:
        return _Field(column, _nothing(column), None)
    place = file.names.index(column.name)
    text = quoting.name(file.fields[place])
    if file.types[place] == column.type:
        # Casting to its own type still turns what Spark cannot read (nanoseconds, unsigned numbers) into what it can.
        value = text if is_nested(column.type) else f"CAST({text} AS {duckdb_type(column.type)})"
        return _Field(column, value, None)
    value = f"TRY_CAST({text} AS {duckdb_type(column.type)})"
    return _Field(column, text, Cast(f"({value} IS NOT NULL)", value))


def _nothing(column: PlannedColumn) -> str:
    return f"CAST(NULL AS {column.type if is_nested(column.type) else duckdb_type(column.type)})"


def _misfitting(space: Workspace, rows: Rows, fields: Sequence[_Field]) -> list[str]:
    """The columns in which some value does not fit."""
    tried = [field for field in fields if field.cast is not None]
    if not tried:
        return []
    counts = ", ".join(f"count(*) FILTER ({field.cast.misfit(field.text)})" for field in tried if field.cast)
    found = space.connection.execute(f"SELECT {counts} FROM ({rows.query}) WHERE {rows.good}").fetchone()
    return [field.column.name for field, count in zip(tried, found or (), strict=True) if count]


def _count_misfits(space: Workspace, file: FilePlan, plan: ReadPlan) -> int:
    rows = rows_of(file, space.ready(file), space)
    query = f"SELECT count(*) FROM ({rows.query}) WHERE {_any_misfit(rows, _fields(plan, file, rows))}"
    found = space.connection.execute(query).fetchone()
    return int(found[0]) if found else 0


def _misfits(space: Workspace, file: FilePlan, plan: ReadPlan, gone: frozenset[int]) -> Iterator[Reject]:
    """The rows with a value that does not fit, with their place in the file."""
    rows = rows_of(file, space.ready(file), space)
    fields = _fields(plan, file, rows)
    reasons = f"CASE WHEN NOT {rows.good} THEN {rows.why} ELSE {_reasons(fields)} END"
    bad = space.connection.execute(
        f"""SELECT {LINE_COLUMN}, {reasons} FROM (SELECT *, row_number() OVER () AS {LINE_COLUMN} FROM ({rows.query}))
        WHERE {_any_misfit(rows, fields)} ORDER BY {LINE_COLUMN}"""
    )
    return placed(space.ready(file).path, file, _fetched(bad), gone)


def _any_misfit(rows: Rows, fields: Sequence[_Field]) -> str:
    unusable = [] if rows.good == "true" else [f"NOT {rows.good}"]
    return " OR ".join([*unusable, *(field.cast.misfit(field.text) for field in fields if field.cast)]) or "false"


def _reasons(fields: Sequence[_Field]) -> str:
    cases = [
        f"WHEN {field.cast.misfit(field.text)} THEN "
        + quoting.text(f"{field.column.name}: ")
        + f" || '''' || left(CAST({field.text} AS VARCHAR), {_SHOWN}) || ''' is no {field.column.type}'"
        for field in fields
        if field.cast
    ]
    return f"CASE {' '.join(cases)} ELSE '' END" if cases else "''"


def _fetched(cursor: duckdb.DuckDBPyConnection) -> Iterator[Any]:
    while batch := cursor.fetchmany(10_000):
        yield from batch
