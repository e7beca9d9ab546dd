"""Infer the types of columns: quickly from the first rows, or exactly from all rows."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from io import BytesIO
from itertools import islice
from pathlib import Path

from lakehouse.core import quoting
from lakehouse.ingest.files import duckdb_scan
from lakehouse.ingest.files.casts import common_type
from lakehouse.ingest.files.column_stats import (
    ColumnStats,
    InferredType,
    infer_type,
    number_sql,
    stats_from_row,
    stats_sql,
)
from lakehouse.ingest.files.dialect import csv_rows
from lakehouse.ingest.files.model import FilePlan, PlannedColumn, ReadPlan
from lakehouse.ingest.files.records import records
from lakehouse.ingest.files.workspace import RowQuery, Workspace

#: How many values the types of the first rows are inferred from; this takes milliseconds.
_SAMPLED_CELLS = 16_000
#: Columns per query, which unnests each value to a row: the query of a wide file stays short.
_COLUMNS_PER_QUERY = 500


def collect_stats(space: Workspace, rows: RowQuery, indexes: Sequence[int]) -> dict[int, ColumnStats]:
    """Statistics of some columns over all rows of a query."""
    stats = {index: ColumnStats() for index in indexes}
    for start in range(0, len(indexes), _COLUMNS_PER_QUERY):
        part = indexes[start : start + _COLUMNS_PER_QUERY]
        numbers = ", ".join(map(str, part))
        raws = ", ".join(rows.raw(index) for index in part)
        texts = ", ".join(rows.text(index) for index in part)
        unnested = f"""SELECT unnest([{numbers}]) AS i, unnest([{raws}]) AS r, unnest([{texts}]) AS t
          FROM ({rows.query}) WHERE {rows.good}"""
        for index, *counted in space.connection.execute(stats_sql(unnested)).fetchall():
            stats[index] = stats_from_row(counted)
    return stats


def stats_of_head(space: Workspace, plan: FilePlan, head: str, whole: bool) -> dict[str, ColumnStats]:
    """Statistics of the first rows of a CSV file."""
    nulls = frozenset(space.settings.null_words)
    cells = [cell for row in _first_rows(plan, head, whole) for cell in enumerate(row) if cell[1] not in nulls]
    # The values are JSON in the query: for other parameters DuckDB imports pandas, which takes longer than the query.
    literal = quoting.text(json.dumps([{"i": index, "t": text} for index, text in cells]))
    listed = f"""unnest(from_json({literal}, '[{{"i": "BIGINT", "t": "VARCHAR"}}]'))"""
    query = stats_sql(
        f"SELECT c.i AS i, {number_sql('c.t', space.settings)} AS r, c.t AS t FROM (SELECT {listed} AS c)"
    )
    stats = {index: stats_from_row(counted) for index, *counted in space.connection.execute(query).fetchall()}
    return {name: stats.get(index, ColumnStats()) for index, name in enumerate(plan.names)}


def _first_rows(plan: FilePlan, head: str, whole: bool) -> Iterator[list[str]]:
    """The first rows without invalid and incomplete ones: the inferred type must not be wider than the exact one."""
    dialect, width = plan.dialect, len(plan.fields)
    stream = BytesIO(head.encode("utf-8", errors="replace"))
    texts = (record.text for record in records(stream, dialect) if record.valid and not record.blank)
    first = list(islice(texts, dialect.header, max(_SAMPLED_CELLS // max(width, 1), 10)))
    if not whole and first:
        first.pop()
    return (row for row in csv_rows(first, dialect) if len(row) == width)


def stats_of_file(space: Workspace, plan: FilePlan, names: Container[str]) -> dict[str, ColumnStats]:
    """Statistics of some columns over all rows of a text file."""
    indexes = [index for index, name in enumerate(plan.names) if name in names and not plan.types[index]]
    if not indexes:
        return {}
    with duckdb_scan.translate_errors(plan.file):
        counted = space.scan(plan, lambda rows: collect_stats(space, rows, indexes))
    return {plan.names[index]: stats for index, stats in counted.items()}


def confirm_types(space: Workspace, plan: ReadPlan, names: Iterable[str]) -> ReadPlan:
    """Infer the types of some columns from all rows of all files."""
    totals = {name: ColumnStats() for name in names}
    for file in plan.files:
        if not file.is_typed:
            for name, stats in stats_of_file(space, file, totals).items():
                totals[name] += stats
    return _with_types(plan, totals)


def confirm_undetermined(space: Workspace, plan: ReadPlan, staged: Sequence[Path]) -> ReadPlan:
    """Infer the types of undetermined columns from the staged files, which are faster to read than the sources."""
    names = [column.name for column in plan.columns if column.undetermined]
    if not names:
        return plan
    files = ", ".join(quoting.text(str(path)) for path in staged)
    selected = ", ".join(f"{quoting.name(name)} AS {duckdb_scan.field(index)}" for index, name in enumerate(names))
    query = f"SELECT {selected} FROM read_parquet([{files}])"
    rows = RowQuery(query, lambda index: number_sql(duckdb_scan.field(index), space.settings), duckdb_scan.field)
    counted = collect_stats(space, rows, range(len(names)))
    return _with_types(plan, {names[index]: stats for index, stats in counted.items()})


def combine_types(stats: ColumnStats, others: Sequence[str]) -> InferredType:
    """The common type of strings with these statistics and of the types of Parquet files and the table."""
    inferred = infer_type(stats)
    if not others:
        return inferred
    known = reduce(common_type, others)
    if not stats.values:
        return InferredType(known)
    type = common_type(known, inferred.type)
    return replace(inferred, type=type, format="" if type == "string" else inferred.format, undetermined=False)


def file_types(files: Iterable[FilePlan], name: str) -> list[str]:
    """The types that a column has in the files that know them: Parquet, and nested values of JSON."""
    return [kind for file in files if name in file.names and (kind := file.types[file.names.index(name)])]


def truncation_notes(columns: Iterable[PlannedColumn]) -> list[str]:
    """Notes on columns whose times lose their nanoseconds."""
    return [f"{column.name}: times are truncated to microseconds." for column in columns if column.truncated]


def _with_types(plan: ReadPlan, totals: Mapping[str, ColumnStats]) -> ReadPlan:
    columns = tuple(_confirmed(plan, column, totals) if column.name in totals else column for column in plan.columns)
    return replace(plan, columns=columns, notes=tuple(dict.fromkeys([*plan.notes, *truncation_notes(columns)])))


def _confirmed(plan: ReadPlan, column: PlannedColumn, totals: Mapping[str, ColumnStats]) -> PlannedColumn:
    if column.fixed:
        return replace(column, confirmed=True, undetermined=False)
    recorded = [column.recorded] if column.recorded else []
    inferred = combine_types(totals[column.name], [*file_types(plan.files, column.name), *recorded])
    return replace(
        column,
        type=inferred.type,
        format=inferred.format,
        truncated=inferred.truncated,
        confirmed=True,
        undetermined=False,
    )
