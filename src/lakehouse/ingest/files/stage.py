"""Files into typed Parquet: once through the data if the plan's guesses hold, again only where they do not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from lakehouse.ingest.files import duck
from lakehouse.ingest.files.copying import TypeMismatch, copy_parquet, copy_text
from lakehouse.ingest.files.infer import settle, settle_open
from lakehouse.ingest.files.model import FilePlan, ReadPlan, Reject, Staged, StagedFiles, StageOptions
from lakehouse.ingest.files.rejects import RejectsFile
from lakehouse.ingest.files.workspace import Workspace, workspace


def stage_files(plan: ReadPlan, into: Path, options: StageOptions | None = None) -> StagedFiles:
    """Every file of the plan as Parquet in `into`, with the types that hold for all of the data.

    Guesses that some value contradicts are settled by a look at all values, and everything is staged again.
    """
    into.mkdir(parents=True, exist_ok=True)
    with workspace(options or StageOptions(), plan.settings, near=into) as space:
        while True:
            try:
                staged = tuple(_stage(space, file, plan, into / f"{at:05}") for at, file in enumerate(plan.files))
            except TypeMismatch as misfit:
                # One file knows all its misfits; of several, the next may bring others, so all guesses are settled.
                single = len(plan.files) == 1
                plan = settle(space, plan, misfit.names if single else [c.name for c in plan.columns if not c.settled])
                continue
            settled = settle_open(space, plan, [file.path for file in staged])
            if settled.same_types(plan):
                columns = tuple(replace(column, settled=True, open=False) for column in settled.columns)
                return StagedFiles(replace(settled, columns=columns, notes=_notes(space, settled)), staged)
            plan = settled


def read_rejects(staged: StagedFiles, most: int | None = None) -> Iterator[Reject]:
    """The rejected rows, file by file; not more than `most`."""
    from itertools import islice

    return islice(_all_rejects(staged), most)


def _all_rejects(staged: StagedFiles) -> Iterator[Reject]:
    from pyarrow import parquet

    for file in staged.files:
        if file.rejects_path is not None:
            with parquet.ParquetFile(file.rejects_path) as rejects:
                for batch in rejects.iter_batches(batch_size=1000):
                    yield from (Reject(**row) for row in batch.to_pylist())


def _stage(space: Workspace, file: FilePlan, plan: ReadPlan, stem: Path) -> Staged:
    path = stem.with_suffix(".parquet")
    rejects = RejectsFile(stem.with_suffix(".rejects.parquet"), space.options.on_bad)
    copy = copy_parquet if file.kind == "parquet" else copy_text
    try:
        with duck.translated(file.file):
            rows = copy(space, file, plan, path, rejects)
    finally:
        rejects_path = rejects.close()
    return Staged(file.file, path, rows, rejects.count, rejects_path)


def _notes(space: Workspace, plan: ReadPlan) -> tuple[str, ...]:
    """What was only seen on the way through the whole file."""
    late = [
        f"{file.file.name}: its encoding is {seen}."
        for file in plan.files
        if (seen := space.encoding(file)) not in ("", file.dialect.encoding)
    ]
    return (*plan.notes, *late)
