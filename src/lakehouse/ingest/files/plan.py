"""How a set of files will be read: their dialects, one list of clean columns, and types."""

from __future__ import annotations

from collections.abc import Sequence

from lakehouse.core.requests import ReadOptions
from lakehouse.ingest.files.discover import SourceFile
from lakehouse.ingest.files.features import Decision, Features
from lakehouse.ingest.files.infer import combine, cut_notes, parquet_types, settle
from lakehouse.ingest.files.look import Looked, look_at
from lakehouse.ingest.files.model import PlannedColumn, ReadPlan, RecordedColumn, StageOptions
from lakehouse.ingest.files.workspace import workspace


def plan_files(
    files: Sequence[SourceFile],
    settings: ReadOptions | None = None,
    recorded: Sequence[RecordedColumn] | None = None,
    widen: bool = False,
    whole: bool = False,
    options: StageOptions | None = None,
) -> ReadPlan:
    """Look at the files and decide how to read them.

    Types are a guess from the first rows, which staging proves or corrects, unless `whole` asks for certainty now
    (for a dry run). With `recorded` columns the files are read by those: a value that does not fit makes a rejected
    row, or with `widen` a wider type.
    """
    settings, known = settings or ReadOptions(), tuple(recorded or ())
    with workspace(options or StageOptions(), settings) as space:
        looked = [look_at(space, file, known) for file in files]
        columns = _columns(looked, known, widen, settings.all_text)
        notes = [*(note for one in looked for note in one.notes), *cut_notes(columns)]
        plan = ReadPlan(columns, tuple(one.plan for one in looked), settings, tuple(notes))
        if whole and not plan.settled:
            plan = settle(space, plan, [column.name for column in plan.columns if not column.settled])
        return plan


def _columns(
    looked: Sequence[Looked], known: Sequence[RecordedColumn], widen: bool, all_text: bool
) -> tuple[PlannedColumn, ...]:
    """The table's columns in its order, then those that it does not have yet in the order of the files."""
    headers: dict[str, str] = {}
    for one in looked:
        for name, header in zip(one.plan.names, one.plan.fields, strict=True):
            headers.setdefault(name, header)
    table = [
        _recorded(column, headers[column.name], looked, widen) if column.name in headers else _missing(column)
        for column in known
    ]
    names = {column.name for column in known}
    new = [_new(name, headers[name], looked, all_text, bool(known)) for name in headers if name not in names]
    return (*table, *new)


def _missing(known: RecordedColumn) -> PlannedColumn:
    return PlannedColumn(known.name, known.header, known.type, known.format, recorded=known.type, missing=True)


def _recorded(known: RecordedColumn, header: str, looked: Sequence[Looked], widen: bool) -> PlannedColumn:
    guess = _guess(known.name, looked)
    return PlannedColumn(
        known.name,
        known.header or header,
        known.type,
        format=known.format or (guess.format if guess.type == known.type else ""),
        recorded=known.type,
        settled=not widen,
        fixed=not widen,
    )


def _new(name: str, header: str, looked: Sequence[Looked], all_text: bool, new: bool) -> PlannedColumn:
    if all_text:
        return PlannedColumn(name, header, "string", new=new)
    guess = _guess(name, looked)
    sure = all(one.whole for one in looked if name in one.plan.names)
    is_open = guess.open and not sure
    return PlannedColumn(name, header, guess.type, guess.format, guess.cut, new=new, settled=sure, open=is_open)


def _guess(name: str, looked: Sequence[Looked]) -> Decision:
    seen = sum((one.features[name] for one in looked if name in one.features), Features())
    return combine(seen, parquet_types([one.plan for one in looked], name))
