"""An ingest: files in, one atomic commit, nothing lost.

Everything happens beside the table until the very end. An Iceberg table is changed on a branch of its own, schema and
rows alike, and published by moving its pointer if that has not moved meanwhile; else the ingest is done again on the
new state. A Hudi table gets one commit of its own making. Whoever is killed before leaves only files nobody points to.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from lakehouse.core.errors import Retryable, TableError
from lakehouse.core.names import TableName
from lakehouse.core.ports import SparkEngine, TableInfo
from lakehouse.engines.duckdb import DuckDB
from lakehouse.ingest import statements
from lakehouse.ingest.changes import Changes, Upsert, find_changes
from lakehouse.ingest.model import Report, Wanted
from lakehouse.ingest.schema import Evolution, evolution
from lakehouse.ingest.targets import HudiTarget, IcebergTarget, Target
from lakehouse.serve.tables import Tables
from lakehouse.sources.files import (
    PlannedColumn,
    ReadPlan,
    RecordedColumn,
    SourceFile,
    StagedFiles,
    StageOptions,
    clean_names,
    content_hash,
    discover,
    plan_files,
    stage_files,
)

_TRIES = 5
_SHOWN_FILES = 5


class CommitConflictError(Retryable, TableError):
    """Somebody else changed the table again and again while it was being written to."""

    code = "commit_conflict"


class Branches(Protocol):
    """The part of a catalog that publishing needs."""

    def fork(self, branch: str, tables: Sequence[TableName]) -> dict[TableName, str | None]: ...
    def publish(self, branch: str, base: Mapping[TableName, str | None]) -> bool: ...
    def discard(self, branch: str) -> None: ...


@dataclass(frozen=True)
class Ingester:
    """Brings files into tables."""

    tables: Tables
    catalog: Branches
    duckdb: DuckDB
    spark: SparkEngine
    folder: Path
    """Where files are staged and locks are kept."""
    memory_limit: int

    def run(self, wanted: Wanted, dry_run: bool = False) -> Report:
        """Bring the files in, or only tell what that would do."""
        files = discover(wanted.sources)
        with self._alone(wanted.table), self._workplace() as work:
            hashes = {file: content_hash(file) for file in files}
            known = set() if wanted.force else self._ledger(wanted.table)
            new = [file for file in files if hashes[file] not in known]
            skipped = tuple(file.name for file in files if hashes[file] in known)
            if not new:
                return Report(wanted.table, wanted.mode or "append", skipped=skipped, dry_run=dry_run)
            for attempt in range(_TRIES):
                job = _Job(self, wanted, new, [hashes[file] for file in new], work / str(attempt))
                report = job.plan() if dry_run else job.load()
                if report is not None:
                    return replace(report, skipped=skipped)
        raise CommitConflictError(
            f"{wanted.table} was changed by somebody else {_TRIES} times while this ingest ran.",
            "Nothing was written. Try again when it is quieter.",
        )

    def _ledger(self, table: TableName) -> set[str]:
        """The content hashes of everything that was ingested into a table."""
        found = self.tables.find(table)
        if found is None:
            return set()
        noted = (snapshot.notes.get("sha256", "") for snapshot in found.history(table))
        return {each for note in noted for each in note.split(",") if each}

    @contextmanager
    def _alone(self, table: TableName) -> Iterator[None]:
        """One ingest into a table at a time; the others wait. The lock goes with its process, however that ends."""
        import fcntl

        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / f"{table}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    @contextmanager
    def _workplace(self) -> Iterator[Path]:
        """A folder of one's own, locked while in use; those of ingests that were killed are cleared away."""
        import fcntl

        for left_behind in self.folder.glob("work-*"):
            with suppress(OSError), (left_behind / "lock").open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left_behind, ignore_errors=True)
        work = self.folder / f"work-{uuid.uuid4().hex[:12]}"
        work.mkdir()
        try:
            with (work / "lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)


class _Job:
    """One attempt at an ingest, against the table as it is now."""

    def __init__(
        self, ingester: Ingester, wanted: Wanted, files: list[SourceFile], hashes: list[str], work: Path
    ) -> None:
        self.rooms, self.wanted, self.files, self.hashes, self.work = ingester, wanted, files, hashes, work
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
        options = StageOptions(memory_limit=self.rooms.memory_limit)
        return plan_files(self.files, self.wanted.read, recorded, widen=widen, whole=whole, options=options)

    def _recorded(self, info: TableInfo) -> Sequence[RecordedColumn]:
        told = info.properties.get(statements.COLUMNS_PROPERTY) or self._noted_columns()
        kept = {column.name: column for column in statements.recorded_from(told)} if told else {}
        # The table's own schema goes before what was written down: somebody may have altered it since.
        return [replace(kept.get(c.name, RecordedColumn(c.name, c.type)), type=c.type) for c in info.columns]

    def _noted_columns(self) -> str:
        found = self.rooms.tables.format_of(self.wanted.table).history(self.wanted.table)
        return next((snapshot.notes["columns"] for snapshot in reversed(found) if "columns" in snapshot.notes), "")

    def _key(self, columns: Sequence[PlannedColumn]) -> tuple[str, ...]:
        """The key's columns by their clean names; asked for by header or name, or the table's own."""
        asked = self.wanted.key
        if not asked:
            return self.info.key if self.info and self.wanted.mode != "append" else ()
        by_header = {column.header.lower(): column.name for column in columns}
        names = [by_header.get(each.lower(), clean_names([each])[0]) for each in asked]
        there = [column.name for column in columns]
        if missing := [each for each, name in zip(asked, names, strict=True) if name not in there]:
            raise TableError(f"{', '.join(missing)} is not a column to key by.", f"Columns: {', '.join(there)}.")
        return tuple(names)

    def _mode(self, key: Sequence[str]) -> str:
        mode = self.wanted.mode or ("upsert" if key else "append")
        if mode == "upsert" and not key:
            raise TableError("An upsert needs a key.", "Name the columns that identify a row: --key id")
        return mode

    def _evolution(self, columns: Sequence[PlannedColumn]) -> Evolution:
        return evolution(columns, self.info.columns, self.wanted.contract) if self.info else Evolution()

    # ---- doing --------------------------------------------------------------------------------------------------

    def load(self) -> Report | None:
        """Stage, write, publish; None if the table moved meanwhile."""
        plan = self._read_plan()
        if self.wanted.contract == "freeze":
            self._evolution(plan.columns)
        bad = "fail" if self.wanted.contract == "freeze" else "reject"
        options = StageOptions(memory_limit=self.rooms.memory_limit, on_bad=bad)  # type: ignore[arg-type]
        staged = stage_files(plan, self.work / "staged", options)
        key = self._key(staged.plan.columns)
        mode = self._mode(key)
        changes = self._evolution(staged.plan.columns)
        target = self._target(staged, mode, key, changes)
        try:
            done = self._write(target, staged, mode, key)
            snapshot = target.publish(self._notes(staged))
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
        target = kind(self.rooms.tables, self.rooms.catalog, self.rooms.spark, self.wanted.table, self.info)
        target.open(staged.plan.columns, key, self.wanted, changes, replace_all=mode == "replace")
        return target

    def _write(self, target: Target, staged: StagedFiles, mode: str, key: Sequence[str]) -> Changes | None:
        brought = [column.name for column in staged.plan.columns if not column.missing]
        done: Changes | None = None
        if mode == "upsert":
            upsert = Upsert(
                {file.path: file.file.name for file in staged.files},
                staged.plan.columns,
                target.columns(),
                target.before(),
                key,
                clean_names([self.wanted.order_by])[0] if self.wanted.order_by else "",
            )
            done = find_changes(self.rooms.duckdb, upsert, self.work)
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

    def _notes(self, staged: StagedFiles) -> dict[str, str]:
        names = [file.name for file in self.files]
        more = f" and {len(names) - _SHOWN_FILES} more" if len(names) > _SHOWN_FILES else ""
        return {
            "source": ", ".join(names[:_SHOWN_FILES]) + more,
            "bytes": str(sum(file.size for file in self.files)),
            "sha256": ",".join(self.hashes),
            "columns": statements.recorded_text(staged.plan.columns),
        }


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
