"""Plan how to read a set of files: their dialects, common columns and types."""

from __future__ import annotations

from collections.abc import Sequence

from lakehouse.core.requests import ReadOptions
from lakehouse.ingest.files.column_stats import ColumnStats, InferredType
from lakehouse.ingest.files.discover import SourceFile
from lakehouse.ingest.files.inference import combine_types, confirm_types, file_types, truncation_notes
from lakehouse.ingest.files.inspection import FileInspection, inspect_file
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
    """Inspect the files and plan how to read them.

    Types come from the first rows, and staging confirms or corrects them; with `whole` (for a dry run) they come from
    all rows. A value that does not match the type of a `recorded` column rejects its row, or with `widen` widens the
    type.
    """
    settings, known = settings or ReadOptions(), tuple(recorded or ())
    with workspace(options or StageOptions(), settings) as space:
        inspections = [inspect_file(space, file, known) for file in files]
        columns = _columns(inspections, known, widen, settings.all_text)
        notes = [*(note for inspection in inspections for note in inspection.notes), *truncation_notes(columns)]
        plan = ReadPlan(columns, tuple(inspection.plan for inspection in inspections), settings, tuple(notes))
        if whole and not plan.confirmed:
            plan = confirm_types(space, plan, [column.name for column in plan.columns if not column.confirmed])
        return plan


def _columns(
    inspections: Sequence[FileInspection], known: Sequence[RecordedColumn], widen: bool, all_text: bool
) -> tuple[PlannedColumn, ...]:
    """The columns of the table in its order, then new columns in file order."""
    headers: dict[str, str] = {}
    for inspection in inspections:
        for name, header in zip(inspection.plan.names, inspection.plan.fields, strict=True):
            headers.setdefault(name, header)
    table = [
        _recorded(column, headers[column.name], inspections, widen) if column.name in headers else _missing(column)
        for column in known
    ]
    names = {column.name for column in known}
    new = [_new(name, headers[name], inspections, all_text, bool(known)) for name in headers if name not in names]
    return (*table, *new)


def _missing(known: RecordedColumn) -> PlannedColumn:
    return PlannedColumn(known.name, known.header, known.type, known.format, recorded=known.type, missing=True)


def _recorded(known: RecordedColumn, header: str, inspections: Sequence[FileInspection], widen: bool) -> PlannedColumn:
    inferred = _infer(known.name, inspections)
    return PlannedColumn(
        known.name,
        known.header or header,
        known.type,
        format=known.format or (inferred.format if inferred.type == known.type else ""),
        recorded=known.type,
        confirmed=not widen,
        fixed=not widen,
    )


def _new(name: str, header: str, inspections: Sequence[FileInspection], all_text: bool, new: bool) -> PlannedColumn:
    if all_text:
        return PlannedColumn(name, header, "string", new=new)
    inferred = _infer(name, inspections)
    confirmed = all(inspection.whole for inspection in inspections if name in inspection.plan.names)
    return PlannedColumn(
        name,
        header,
        inferred.type,
        inferred.format,
        inferred.truncated,
        new=new,
        confirmed=confirmed,
        undetermined=inferred.undetermined and not confirmed,
    )


def _infer(name: str, inspections: Sequence[FileInspection]) -> InferredType:
    stats = sum((inspection.stats[name] for inspection in inspections if name in inspection.stats), ColumnStats())
    return combine_types(stats, file_types([inspection.plan for inspection in inspections], name))
