"""Types of columns from their values: quickly from the first rows, or for certain from all of them."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from io import BytesIO
from itertools import islice
from pathlib import Path

from lakehouse.core import quoting
from lakehouse.ingest.files import duck
from lakehouse.ingest.files.casts import common_type
from lakehouse.ingest.files.dialect import csv_rows
from lakehouse.ingest.files.features import Decision, Features, decide, features_of, features_sql
from lakehouse.ingest.files.model import FilePlan, PlannedColumn, ReadPlan
from lakehouse.ingest.files.records import records
from lakehouse.ingest.files.workspace import Rows, Workspace

#: How many values types are guessed from: it takes some milliseconds.
_CELLS = 16_000
#: Columns looked at in one query: each value becomes a row of it, so that a wide file makes no longer query.
_AT_ONCE = 500


def count_features(space: Workspace, rows: Rows, places: Sequence[int]) -> dict[int, Features]:
    """The features of some fields over all rows of a query."""
    found = {place: Features() for place in places}
    for start in range(0, len(places), _AT_ONCE):
        part = places[start : start + _AT_ONCE]
        numbers = ", ".join(map(str, part))
        raws = ", ".join(rows.raw(place) for place in part)
        texts = ", ".join(rows.text(place) for place in part)
        long = f"""SELECT unnest([{numbers}]) AS i, unnest([{raws}]) AS r, unnest([{texts}]) AS t
          FROM ({rows.query}) WHERE {rows.good}"""
        for place, *counted in space.connection.execute(features_sql(long)).fetchall():
            found[place] = features_of(counted)
    return found


def features_of_head(space: Workspace, plan: FilePlan, head: str, whole: bool) -> dict[str, Features]:
    """What the first rows of a CSV file show."""
    nulls = frozenset(space.settings.null_words)
    cells = [cell for row in _first_rows(plan, head, whole) for cell in enumerate(row) if cell[1] not in nulls]
    # As JSON in the query: handed over in any other way, DuckDB imports pandas, which takes longer than all the rest.
    given = quoting.text(json.dumps([{"i": place, "t": text} for place, text in cells]))
    listed = f"""unnest(from_json({given}, '[{{"i": "BIGINT", "t": "VARCHAR"}}]'))"""
    query = features_sql(f"SELECT c.i AS i, c.t AS r, c.t AS t FROM (SELECT {listed} AS c)")
    found = {place: features_of(counted) for place, *counted in space.connection.execute(query).fetchall()}
    return {name: found.get(place, Features()) for place, name in enumerate(plan.names)}


def _first_rows(plan: FilePlan, head: str, whole: bool) -> Iterator[list[str]]:
    """Rows to guess types from: only sound and whole ones, since a guess must not be wider than the truth."""
    dialect, width = plan.dialect, len(plan.fields)
    stream = BytesIO(head.encode("utf-8", errors="replace"))
    sound = (record.text for record in records(stream, dialect) if record.sound and not record.blank)
    first = list(islice(sound, dialect.header, max(_CELLS // max(width, 1), 10)))
    if not whole and first:
        first.pop()
    return (row for row in csv_rows(first, dialect) if len(row) == width)


def features_of_all(space: Workspace, plan: FilePlan, names: Container[str]) -> dict[str, Features]:
    """What all rows of a text file show in these columns."""
    places = [place for place, name in enumerate(plan.names) if name in names]
    if not places:
        return {}
    with duck.translated(plan.file):
        counted = space.scan(plan, lambda rows: count_features(space, rows, places))
    return {plan.names[place]: seen for place, seen in counted.items()}


def settle(space: Workspace, plan: ReadPlan, names: Iterable[str]) -> ReadPlan:
    """The plan with the types of these columns decided over all rows of all files."""
    totals = {name: Features() for name in names}
    for file in plan.files:
        if file.kind != "parquet":
            for name, seen in features_of_all(space, file, totals).items():
                totals[name] += seen
    return _decided(plan, totals)


def settle_open(space: Workspace, plan: ReadPlan, staged: Sequence[Path]) -> ReadPlan:
    """The same for open columns, which were staged as text: the staged files are much quicker to read again."""
    names = [column.name for column in plan.columns if column.open]
    if not names:
        return plan
    files = ", ".join(quoting.text(str(path)) for path in staged)
    picked = ", ".join(f"{quoting.name(name)} AS {duck.field(place)}" for place, name in enumerate(names))
    rows = Rows(f"SELECT {picked} FROM read_parquet([{files}])", duck.field, duck.field)
    counted = count_features(space, rows, range(len(names)))
    return _decided(plan, {names[place]: seen for place, seen in counted.items()})


def combine(seen: Features, others: Sequence[str]) -> Decision:
    """One type for what the texts show and what is known otherwise (by Parquet files, by the table)."""
    decision = decide(seen)
    if not others:
        return decision
    known = reduce(common_type, others)
    if not seen.values:
        return Decision(known)
    type = common_type(known, decision.type)
    return replace(decision, type=type, format="" if type == "string" else decision.format, open=False)


def parquet_types(files: Iterable[FilePlan], name: str) -> list[str]:
    """What the Parquet files among them say that a column is."""
    return [file.types[file.names.index(name)] for file in files if file.kind == "parquet" and name in file.names]


def cut_notes(columns: Iterable[PlannedColumn]) -> list[str]:
    return [f"{column.name}: what is finer than a microsecond is cut off." for column in columns if column.cut]


def _decided(plan: ReadPlan, totals: Mapping[str, Features]) -> ReadPlan:
    columns = tuple(_settled(plan, column, totals) if column.name in totals else column for column in plan.columns)
    return replace(plan, columns=columns, notes=tuple(dict.fromkeys([*plan.notes, *cut_notes(columns)])))


def _settled(plan: ReadPlan, column: PlannedColumn, totals: Mapping[str, Features]) -> PlannedColumn:
    if column.fixed:
        return replace(column, settled=True, open=False)
    recorded = [column.recorded] if column.recorded else []
    whole = combine(totals[column.name], [*parquet_types(plan.files, column.name), *recorded])
    return replace(column, type=whole.type, format=whole.format, cut=whole.cut, settled=True, open=False)
