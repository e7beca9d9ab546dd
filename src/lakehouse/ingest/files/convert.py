"""Convert one file to Parquet and collect the rows that do not match the types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakehouse.core import quoting
from lakehouse.core.dataclass import dataclass
from lakehouse.engines.duckdb.types import duckdb_type
from lakehouse.ingest.files import duckdb_scan
from lakehouse.ingest.files.casts import MISMATCH, Cast, cast_from, cast_of
from lakehouse.ingest.files.model import LINE_COLUMN, FilePlan, PlannedColumn, ReadPlan, Reject
from lakehouse.ingest.files.rejects import RejectsWriter, locate_rejects, parse_rejects
from lakehouse.ingest.files.workspace import RowQuery, Workspace, rows_of

if TYPE_CHECKING:
    import duckdb

#: Maximum size of a row group, which is in memory while it is written.
_GROUP_BYTES = 64 << 20
#: Each thread has one row group, twice while it is compressed: each may use the memory limit divided by this.
_GROUP_SHARE = 16
_MIN_ROWS, _MAX_ROWS = 2_048, 122_880
#: Maximum length of a value in the reason of a rejected row.
_MAX_QUOTED = 60


class TypeMismatch(Exception):
    """Some values do not match the inferred type of their columns."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        super().__init__(", ".join(names))


@dataclass(frozen=True)
class _Field:
    """A planned column as SQL on the rows of one file."""

    column: PlannedColumn
    text: str
    cast: Cast | None
    known: bool = False
    """The type comes from all rows of the file: a value that does not match it is rejected."""

    @property
    def fixed(self) -> bool:
        return self.column.fixed or self.known

    @property
    def select(self) -> str:
        return f"{self.cast.value if self.cast else self.text} AS {quoting.name(self.column.name)}"


def convert_text(space: Workspace, file: FilePlan, plan: ReadPlan, path: Path, rejects: RejectsWriter) -> int:
    """Convert a CSV or JSON file; returns the number of rows written."""
    while True:
        written = space.scan(file, lambda rows: _copy(space, file, plan, rows, path, strict=True))
        all_match, mismatches = written is not None, 0
        if written is None:
            written = space.scan(file, lambda rows: _copy(space, file, plan, rows, path, strict=False))
        bad, skipped = parse_rejects(space.connection, file, space.prepare(file).path)
        if not all_match:
            mismatches = _count_mismatches(space, file, plan)
        if space.verify_row_count(file, (written or 0) + len(bad) + mismatches):
            break
    rejects.add(sorted([*space.prepare(file).rejects, *bad], key=lambda reject: reject.line))
    if mismatches:
        rejects.add(_mismatches(space, file, plan, skipped))
    return written or 0


def convert_parquet(space: Workspace, file: FilePlan, plan: ReadPlan, path: Path, rejects: RejectsWriter) -> int:
    """Convert a Parquet or Arrow file to the names and types of the plan; returns the number of rows written."""
    table = duckdb_scan.parquet(space.parquet_path(file))
    fields = [_parquet_field(file, column) for column in plan.columns]
    if inferred := _mismatching_columns(
        space, RowQuery(f"SELECT * FROM {table}", str, str), [f for f in fields if not f.fixed]
    ):
        raise TypeMismatch(inferred)
    mismatch = " OR ".join(field.cast.mismatch(field.text) for field in fields if field.cast) or "false"
    numbered = f"SELECT *, row_number() OVER () AS {LINE_COLUMN} FROM {table}"
    bad = space.connection.execute(
        f"SELECT {LINE_COLUMN}, {_reasons(fields)}, to_json(p)::VARCHAR FROM ({numbered}) p WHERE {mismatch}"
    )
    rejects.add(Reject(file.file.name, line, reason, raw) for line, reason, raw in _fetch_batches(bad))
    line = f", {LINE_COLUMN}" if space.options.with_line else ""
    source = f"({numbered})" if line else table
    selected = ", ".join(field.select for field in fields) + line
    return _write(space, f"SELECT {selected} FROM {source} WHERE NOT ({mismatch})", path, _MAX_ROWS)


def _copy(space: Workspace, file: FilePlan, plan: ReadPlan, rows: RowQuery, path: Path, strict: bool) -> int | None:
    """Copy the rows that match their types.

    If `strict` and a row does not match, raise TypeMismatch for inferred types and return None for fixed ones.
    """
    import duckdb

    fields = _fields(plan, file, rows)
    query, line = rows.query, ""
    if space.options.with_line:
        # DuckDB does not report the line of a row; the row number keeps the order.
        query, line = f"SELECT *, row_number() OVER () AS {LINE_COLUMN} FROM ({rows.query})", f", {LINE_COLUMN}"
    selected = ", ".join(field.select for field in fields) + line
    bad = _any_mismatch(rows, fields)
    # One condition per row: a condition in the expression of every column takes minutes to plan for a wide file.
    good = f"CASE WHEN {bad} THEN error('{MISMATCH}') ELSE true END" if strict else f"NOT ({bad})"
    group_bytes = min(_GROUP_BYTES, space.options.memory_limit // _GROUP_SHARE)
    row_group = min(max(group_bytes // file.dialect.row_bytes, _MIN_ROWS), _MAX_ROWS)
    try:
        return _write(space, f"SELECT {selected} FROM ({query}) WHERE {good}", path, row_group)
    except duckdb.InvalidInputException as exc:
        if MISMATCH not in str(exc):
            raise
    inferred = _mismatching_columns(space, rows, [field for field in fields if not field.fixed])
    if inferred:
        raise TypeMismatch(inferred)
    return None


def _write(space: Workspace, query: str, path: Path, row_group: int) -> int:
    options = f"FORMAT parquet, COMPRESSION lz4_raw, ROW_GROUP_SIZE {row_group}"
    copied = space.connection.execute(f"COPY ({query}) TO {quoting.text(str(path))} ({options})").fetchone()
    return int(copied[0]) if copied else 0


def _fields(plan: ReadPlan, file: FilePlan, rows: RowQuery) -> list[_Field]:
    indexes = {name: index for index, name in enumerate(file.names)}
    fields = []
    for column in plan.columns:
        if column.name not in indexes:
            fields.append(_Field(column, _null(column), None))
            continue
        index = indexes[column.name]
        text, raw, tree = rows.text(index), rows.raw(index), file.trees[index] if file.trees else None
        if tree is None or column.type == "string":
            fields.append(_Field(column, text, cast_of(column, raw, text)))
            continue
        cast = cast_from(tree, column, f"TRY_CAST(CAST({raw} AS JSON) AS {tree.duckdb})")
        # A number beyond the range of its type fails the cast, and its row is rejected.
        value = f"TRY({cast.value})"
        matches = f"({value} IS NOT NULL AND {cast.matches_type})"
        fields.append(_Field(column, text, Cast(matches, value), known=tree.spark == column.type))
    return fields


def _parquet_field(file: FilePlan, column: PlannedColumn) -> _Field:
    if column.name not in file.names:
        return _Field(column, _null(column), None)
    index = file.names.index(column.name)
    first, *inner = file.paths[index]
    value = quoting.name(first)
    for key in inner:
        value = f"struct_extract({value}, {quoting.text(key)})"
    tree = file.trees[index]
    assert tree is not None
    cast = cast_from(tree, column, value)
    # The cast converts what Spark cannot read (nanoseconds, unsigned integers), even if the Spark type is the same.
    return _Field(column, cast.value, None) if cast.matches_type == "true" else _Field(column, value, cast)


def _null(column: PlannedColumn) -> str:
    return f"CAST(NULL AS {duckdb_type(column.type)})"


def _mismatching_columns(space: Workspace, rows: RowQuery, fields: Sequence[_Field]) -> list[str]:
    """The columns with a value that does not match the type."""
    typed = [field for field in fields if field.cast is not None]
    if not typed:
        return []
    counts = ", ".join(f"count(*) FILTER ({field.cast.mismatch(field.text)})" for field in typed if field.cast)
    failed = space.connection.execute(f"SELECT {counts} FROM ({rows.query}) WHERE {rows.good}").fetchone()
    return [field.column.name for field, count in zip(typed, failed or (), strict=True) if count]


def _count_mismatches(space: Workspace, file: FilePlan, plan: ReadPlan) -> int:
    rows = rows_of(file, space.prepare(file), space)
    query = f"SELECT count(*) FROM ({rows.query}) WHERE {_any_mismatch(rows, _fields(plan, file, rows))}"
    counted = space.connection.execute(query).fetchone()
    return int(counted[0]) if counted else 0


def _mismatches(space: Workspace, file: FilePlan, plan: ReadPlan, skipped: frozenset[int]) -> Iterator[Reject]:
    """The rows with a value that does not match its type, with their line in the file."""
    rows = rows_of(file, space.prepare(file), space)
    fields = _fields(plan, file, rows)
    reasons = f"CASE WHEN NOT {rows.good} THEN {rows.reason} ELSE {_reasons(fields)} END"
    bad = space.connection.execute(
        f"""SELECT {LINE_COLUMN}, {reasons} FROM (SELECT *, row_number() OVER () AS {LINE_COLUMN} FROM ({rows.query}))
        WHERE {_any_mismatch(rows, fields)} ORDER BY {LINE_COLUMN}"""
    )
    return locate_rejects(space.prepare(file).path, file, _fetch_batches(bad), skipped)


def _any_mismatch(rows: RowQuery, fields: Sequence[_Field]) -> str:
    unusable = [] if rows.good == "true" else [f"NOT {rows.good}"]
    return " OR ".join([*unusable, *(field.cast.mismatch(field.text) for field in fields if field.cast)]) or "false"


def _reasons(fields: Sequence[_Field]) -> str:
    cases = [
        f"WHEN {field.cast.mismatch(field.text)} THEN "
        + quoting.text(f"{field.column.name}: ")
        + f" || '''' || left(CAST({field.text} AS VARCHAR), {_MAX_QUOTED}) || ''' is not a valid {field.column.type}'"
        for field in fields
        if field.cast
    ]
    return f"CASE {' '.join(cases)} ELSE '' END" if cases else "''"


def _fetch_batches(cursor: duckdb.DuckDBPyConnection) -> Iterator[Any]:
    while batch := cursor.fetchmany(10_000):
        yield from batch
