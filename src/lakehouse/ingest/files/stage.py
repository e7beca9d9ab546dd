"""Stage files as typed Parquet: one pass if the inferred types hold, another where they do not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from lakehouse.core.progress import followed
from lakehouse.ingest.files import duckdb_scan
from lakehouse.ingest.files.convert import TypeMismatch, convert_parquet, convert_text
from lakehouse.ingest.files.inference import confirm_types, confirm_undetermined
from lakehouse.ingest.files.model import FilePlan, ReadPlan, Reject, StagedFile, StagedFiles, StageOptions
from lakehouse.ingest.files.rejects import RejectsWriter
from lakehouse.ingest.files.workspace import Workspace, workspace


def stage_files(plan: ReadPlan, into: Path, options: StageOptions | None = None) -> StagedFiles:
    """Write every file of the plan as Parquet to `into`, with types that all values match.

    If a value does not match an inferred type, the type is inferred from all values and the files are staged again.
    """
    into.mkdir(parents=True, exist_ok=True)
    with workspace(options or StageOptions(), plan.settings, beside=into) as space:
        while True:
            try:
                staged = tuple(_stage_all(space, plan, into))
            except TypeMismatch as mismatch:
                # A later file may have other mismatches, so with several files all inferred types are checked.
                single = len(plan.files) == 1
                plan = confirm_types(
                    space, plan, mismatch.names if single else [c.name for c in plan.columns if not c.confirmed]
                )
                continue
            confirmed = confirm_undetermined(space, plan, [file.path for file in staged])
            if confirmed.same_types(plan):
                columns = tuple(replace(column, confirmed=True, undetermined=False) for column in confirmed.columns)
                return StagedFiles(replace(confirmed, columns=columns, notes=_notes(space, confirmed)), staged)
            plan = confirmed


def read_rejects(staged: StagedFiles, limit: int | None = None) -> Iterator[Reject]:
    """The rejected rows of all files, at most `limit` of them."""
    from itertools import islice

    return islice(_all_rejects(staged), limit)


def _all_rejects(staged: StagedFiles) -> Iterator[Reject]:
    from pyarrow import parquet

    for file in staged.files:
        if file.rejects_path is not None:
            with parquet.ParquetFile(file.rejects_path) as rejects:
                for batch in rejects.iter_batches(batch_size=1000):
                    yield from (Reject(**row) for row in batch.to_pylist())


def _stage_all(space: Workspace, plan: ReadPlan, into: Path) -> Iterator[StagedFile]:
    """Stage the files, and report their bytes."""
    done, total = 0, sum(file.file.size for file in plan.files)
    for at, file in enumerate(plan.files):
        with followed(space.fraction_done, done, file.file.size, total, "bytes"):
            yield _stage(space, file, plan, into / f"{at:05}")
        done += file.file.size


def _stage(space: Workspace, file: FilePlan, plan: ReadPlan, stem: Path) -> StagedFile:
    path = stem.with_suffix(".parquet")
    rejects = RejectsWriter(stem.with_suffix(".rejects.parquet"), space.options.on_bad)
    convert = convert_parquet if file.is_typed else convert_text
    try:
        with duckdb_scan.translate_errors(file.file):
            rows = convert(space, file, plan, path, rejects)
    finally:
        rejects_path = rejects.close()
    return StagedFile(file.file, path, rows, rejects.count, rejects_path)


def _notes(space: Workspace, plan: ReadPlan) -> tuple[str, ...]:
    """Notes of the plan, and those that only a scan of the whole file gives."""
    late = [
        f"{file.file.name}: its encoding is {encoding}."
        for file in plan.files
        if (encoding := space.encoding(file)) not in ("", file.dialect.encoding)
    ]
    return (*plan.notes, *late)
