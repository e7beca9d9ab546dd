"""An ingest: files in, one atomic commit, nothing lost.

Everything happens beside the table until the very end. An Iceberg table is changed on a branch of its own, schema and
rows alike, and published by moving its pointer if that has not moved meanwhile; else the ingest is done again on the
new state. A Hudi table gets one commit of its own making. Whoever is killed before leaves only files nobody points to.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from lakehouse.core.catalog import Catalog
from lakehouse.core.engine import SparkRunner
from lakehouse.core.errors import TableError
from lakehouse.core.files import LOCAL, Files
from lakehouse.core.names import TableName
from lakehouse.core.requests import IngestRequest
from lakehouse.core.source import RemoteFiles
from lakehouse.core.tables import TableInfo
from lakehouse.engines.duckdb import DuckDB
from lakehouse.ingest import native, statements
from lakehouse.ingest.changes import Changes, Upsert, find_changes
from lakehouse.ingest.errors import CommitConflictError, NoSuchColumnError, NothingToLearnFromError
from lakehouse.ingest.files import (
    PlannedColumn,
    ReadPlan,
    RecordedColumn,
    SourceFile,
    StagedFiles,
    StageOptions,
    clean_names,
    content_hash,
    discover,
    fetched,
    plan_files,
    stage_files,
)
from lakehouse.ingest.hudi import HudiTarget
from lakehouse.ingest.model import Report
from lakehouse.ingest.schema import Evolution, as_kept, evolution, with_layout
from lakehouse.ingest.targets import IcebergTarget, Place, Target
from lakehouse.process.locks import locked
from lakehouse.query.tables import Tables

_TRIES = 5
_SHOWN_FILES = 5


@dataclass(frozen=True)
class Ingester:
    """Brings files into tables."""

    tables: Tables
    catalog: Catalog
    duckdb: DuckDB
    spark: SparkRunner
    folder: Path
    """Where files are staged and locks are kept."""
    memory_limit: int
    store: RemoteFiles | None = None
    """Where files with s3:// names are; without one there are only local files."""
    files: Files = LOCAL
    """The warehouse's own."""

    def run(self, wanted: IngestRequest) -> Report:
        """Bring the files in, or only tell what that would do."""
        files = discover(wanted.sources, self.store)
        with self._alone(wanted.table), self._workplace() as work:
            new, skipped = self._not_yet_in(wanted, files, work / "fetched")
            for attempt in range(_TRIES):
                job = _Job(self, wanted, list(new.values()), list(new), work / str(attempt))
                if not new:
                    return Report(wanted.table, job.mode_of_table(), skipped=skipped, dry_run=wanted.dry_run)
                report = job.plan() if wanted.dry_run else job.load()
                if report is not None:
                    return replace(report, skipped=skipped)
        raise CommitConflictError(
            f"{wanted.table} was changed by somebody else {_TRIES} times while this ingest ran.",
            "Nothing was written. Try again when it is quieter.",
        )

    def writing_lock(self, table: TableName) -> Path:
        """Held, wherever Spark is, while one of an ingest's statements runs."""
        return self.folder / f"{table}.writing.lock"

    def _not_yet_in(
        self, wanted: IngestRequest, files: Sequence[SourceFile], into: Path
    ) -> tuple[dict[str, SourceFile], tuple[str, ...]]:
        """The files to bring in, by their content's hash, each content once; and the names of the others."""
        known = set() if wanted.force else self._ledger(wanted.table)
        new: dict[str, SourceFile] = {}
        skipped = [file.name for file in files if file.mark in known]  # without fetching them again
        for file in fetched([file for file in files if file.mark not in known], self.store, into):
            digest = content_hash(file)
            if digest in known or digest in new:
                skipped.append(file.name)
            else:
                new[digest] = file
        return new, tuple(skipped)

    def _ledger(self, table: TableName) -> set[str]:
        """The hashes and marks of everything that is in a table: what a replace or a rollback took out may come again."""
        found = self.tables.find(table)
        history = {snapshot.id: snapshot for snapshot in found.history(table)} if found else {}
        at = next((snapshot for snapshot in history.values() if snapshot.is_current), None)
        hashes: set[str] = set()
        while at is not None:
            for note in ("sha256", "objects"):
                hashes.update(filter(None, at.notes.get(note, "").split(",")))
            # Without a mode it is a rollback or somebody's own statement; an upsert may have had to rewrite all rows.
            if at.notes.get("mode", at.operation) in ("replace", "insert_overwrite"):
                break
            at = history.get(at.parent)
        return hashes

    @contextmanager
    def _alone(self, table: TableName) -> Iterator[None]:
        """One ingest into a table at a time; the others wait. The lock goes with its process, however that ends."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with locked(self.folder / f"{table}.lock"):
            # An ingest that was killed may have left a statement running; what it will have written must be seen.
            with locked(self.writing_lock(table)):
                pass
            yield

    @contextmanager
    def _workplace(self) -> Iterator[Path]:
        """A folder of one's own, locked while in use; those of ingests that were killed are cleared away."""
        import fcntl

        for left_behind in self.folder.glob("work-*"):
            with suppress(OSError), (left_behind / "lock").open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left_behind, ignore_errors=True)
        name = uuid.uuid4().hex[:12]
        making, work = self.folder / f"making-{name}", self.folder / f"work-{name}"
        making.mkdir()
        try:
            with (making / "lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                making.rename(work)  # only now can others see it, and it is locked already
                yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)


class _Job:
    """One attempt at an ingest, against the table as it is now."""

    def __init__(
        self, ingester: Ingester, wanted: IngestRequest, files: list[SourceFile], hashes: list[str], work: Path
    ) -> None:
        self.ingester, self.wanted, self.files, self.hashes, self.work = ingester, wanted, files, hashes, work
        found = ingester.tables.find(wanted.table)
        self.info: TableInfo | None = found.describe(wanted.table) if found else None
        if self.info and wanted.format and wanted.format != self.info.format:
            raise TableError(
                f"{wanted.table} is a {self.info.format} table.", "Leave --format away, or choose another name."
            )
        self.format = self.info.format if self.info else wanted.format or "iceberg"

    # ---- deciding -----------------------------------------------------------------------------------------------

    def plan(self) -> Report:
        """What would be done; nothing is written."""
        plan = self._read_plan(whole=True)
        changes = self._evolution(plan.columns)
        key = self._key(plan.columns)
        return Report(
            self.wanted.table,
            self._mode(key),
            files=tuple(file.name for file in self.files),
            columns=plan.columns,
            changes=changes.words(),
            notes=plan.notes,
            dry_run=True,
        )

    def _read_plan(self, whole: bool = False) -> ReadPlan:
        widen = self.wanted.contract == "evolve"
        replacing = self.wanted.mode == "replace" and widen
        recorded = None if replacing or not self.info else self._recorded(self.info)
        options = StageOptions(memory_limit=self.ingester.memory_limit)
        return plan_files(self.files, self.wanted.read, recorded, widen=widen, whole=whole, options=options)

    def _recorded(self, info: TableInfo) -> Sequence[RecordedColumn]:
        told = info.properties.get(statements.COLUMNS_PROPERTY) or self._noted_columns()
        kept = {column.name: column for column in statements.recorded_from(told)} if told else {}
        # The table's own schema goes before what was written down: somebody may have altered it since.
        return [as_kept(kept.get(c.name, RecordedColumn(c.name, c.type)), c.type) for c in info.columns]

    def _noted_columns(self) -> str:
        found = self.ingester.tables.format_of(self.wanted.table).history(self.wanted.table)
        return next((snapshot.notes["columns"] for snapshot in reversed(found) if "columns" in snapshot.notes), "")

    def mode_of_table(self) -> str:
        """What would be done, as far as that is clear without a file."""
        return self.wanted.mode or ("upsert" if self.wanted.key or (self.info and self.info.key) else "append")

    def _key(self, columns: Sequence[PlannedColumn]) -> tuple[str, ...]:
        """The key's columns by their clean names; asked for by header or name, or the table's own."""
        asked = self.wanted.key
        if not asked:
            return self.info.key if self.info and self.wanted.mode != "append" else ()
        return tuple(_column(each, columns, "key") for each in asked)

    def _mode(self, key: Sequence[str]) -> str:
        mode = self.wanted.mode or ("upsert" if key else "append")
        if mode == "upsert" and not key:
            raise NoSuchColumnError("An upsert needs a key.", "Name the columns that identify a row: --key id")
        return mode

    def _evolution(self, columns: Sequence[PlannedColumn]) -> Evolution:
        if self.info is None:
            return Evolution()
        return with_layout(evolution(columns, self.info.columns, self.wanted.contract), self.info)

    # ---- doing --------------------------------------------------------------------------------------------------

    def load(self) -> Report | None:
        """Stage, write, publish; None if the table moved meanwhile."""
        if self.info is None or self.format == "hudi" or self.wanted.mode == "replace":
            self.ingester.spark.prepare()  # it starts while the files are read; the rest can mostly do without it
        else:
            native.wake()
        plan = self._read_plan()
        if self.wanted.contract == "freeze":
            self._evolution(plan.columns)
        bad = "fail" if self.wanted.contract == "freeze" else "reject"
        options = StageOptions(memory_limit=self.ingester.memory_limit, on_bad=bad)  # type: ignore[arg-type]
        staged = stage_files(plan, self.work / "staged", options)
        if self.info is None and not staged.rows:
            raise NothingToLearnFromError(
                f"There is not one good row in {', '.join(file.name for file in self.files)}, so no types can be told.",
                f"{staged.rejected} rows could not be read: lake ingest … --dry-run shows how the file was understood.",
            )
        key = self._key(staged.plan.columns)
        mode = self._mode(key)
        changes = self._evolution(staged.plan.columns)
        target = self._target(staged, mode, key, changes)
        try:
            done = self._write(target, staged, mode, key)
            snapshot = target.publish(self._notes(staged, mode))
        finally:
            target.discard()
        if snapshot is None:
            return None
        rejected = staged.rejected + (done.without_key if done else 0)
        good = staged.rows - (done.without_key if done else 0)
        return Report(
            self.wanted.table,
            mode,
            files=tuple(file.name for file in self.files),
            rows_read=staged.rows + staged.rejected,
            inserted=done.inserted if done else good,
            updated=done.updated if done else 0,
            unchanged=done.unchanged if done else 0,
            rejected=rejected,
            snapshot=snapshot,
            columns=staged.plan.columns,
            changes=changes.words(),
            notes=staged.plan.notes,
        )

    def _target(self, staged: StagedFiles, mode: str, key: Sequence[str], changes: Evolution) -> Target:
        kind = HudiTarget if self.format == "hudi" else IcebergTarget
        ingester = self.ingester
        lock = str(ingester.writing_lock(self.wanted.table))
        table, info = self.wanted.table, self.info
        place = Place(
            ingester.tables, ingester.catalog, ingester.spark, ingester.duckdb, table, info, lock, ingester.files
        )
        target = kind(place)
        target.open(staged.plan.columns, key, self.wanted, changes, replace_all=mode == "replace")
        return target

    def _write(self, target: Target, staged: StagedFiles, mode: str, key: Sequence[str]) -> Changes | None:
        brought = [column.name for column in staged.plan.columns if not column.missing]
        done: Changes | None = None
        if mode == "upsert":
            upsert = Upsert(
                {
                    file.path: (file.file.name, 2 if read.kind == "csv" and read.dialect.header else 1)
                    for file, read in zip(staged.files, staged.plan.files, strict=True)
                },
                staged.plan.columns,
                target.columns(),
                target.before(),
                key,
                _column(self.wanted.order_by, staged.plan.columns, "order") if self.wanted.order_by else "",
            )
            done = find_changes(self.ingester.duckdb, upsert, self.work)
            target.upsert(done, key)
        else:
            folder = self.work / "staged"
            target.insert(_only_data(staged, folder), brought, overwrite=mode == "replace" and self.info is not None)
        rejects = [file.rejects_path for file in staged.files if file.rejects_path]
        if done and done.rejects:
            rejects += sorted(done.rejects.glob("*.parquet"))
        if rejects:
            target.keep_rejects(_gathered(rejects, self.work / "rejects"))
        return done

    def _notes(self, staged: StagedFiles, mode: str) -> dict[str, str]:
        names = [file.name for file in self.files]
        marks = [file.mark for file in self.files if file.mark]
        more = f" and {len(names) - _SHOWN_FILES} more" if len(names) > _SHOWN_FILES else ""
        return {
            "source": ", ".join(names[:_SHOWN_FILES]) + more,
            "bytes": str(sum(file.size for file in self.files)),
            "sha256": ",".join(self.hashes),
            "mode": mode,
            "columns": statements.recorded_text(staged.plan.columns),
            **({"objects": ",".join(marks)} if marks else {}),
        }


def _column(asked: str, columns: Sequence[PlannedColumn], what_for: str) -> str:
    """A column by its clean name; asked for by that or by its header."""
    by_header = {column.header.lower(): column.name for column in columns}
    name = by_header.get(asked.lower(), clean_names([asked])[0])
    there = [column.name for column in columns]
    if name not in there:
        raise NoSuchColumnError(f"{asked} is not a column to {what_for} by.", f"Columns: {', '.join(there)}.")
    return name


def _only_data(staged: StagedFiles, folder: Path) -> Path:
    """A folder with the staged rows and nothing else: rejected rows lie beside them until here."""
    data = folder / "data"
    data.mkdir()
    for file in staged.files:
        file.path.rename(data / file.path.name)
    return data


def _gathered(files: Sequence[Path], folder: Path) -> Path:
    folder.mkdir()
    for number, file in enumerate(files):
        file.rename(folder / f"{number:05}.parquet")
    return folder
