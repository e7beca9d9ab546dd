"""One attempt at an ingest, based on the current state of the table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from lakehouse.core.errors import NoRowsError, NoSuchColumnError, NotSupportedError, TableError
from lakehouse.core.names import listed
from lakehouse.core.requests import IngestRequest
from lakehouse.core.tables import Column, Scan, TableInfo
from lakehouse.ingest import layout, statements
from lakehouse.ingest.files import (
    PlannedColumn,
    ReadPlan,
    RecordedColumn,
    SourceFile,
    StagedFiles,
    StageOptions,
    clean_names,
    plan_files,
    stage_files,
)
from lakehouse.ingest.hudi_target import HudiTarget
from lakehouse.ingest.iceberg_target import iceberg_target
from lakehouse.ingest.report import IngestReport
from lakehouse.ingest.schema import (
    SchemaChanges,
    columns_after,
    merge_recorded,
    plan_schema_changes,
    with_layout_changes,
)
from lakehouse.ingest.target import Target, TargetContext
from lakehouse.tables import native
from lakehouse.tables.changes import UpsertChanges, UpsertInput, find_changes
from lakehouse.tables.write import needs_spark

_FORMAT_NAMES = {"iceberg": "an Iceberg", "hudi": "a Hudi"}


class IngestAttempt:
    """Plans, stages, writes and publishes files; the caller starts a new attempt if the table changed meanwhile."""

    def __init__(
        self,
        context: TargetContext,
        request: IngestRequest,
        files: Mapping[str, SourceFile],
        work: Path,
        memory_limit: int,
    ) -> None:
        self.context, self.request, self.work, self.memory_limit = context, request, work, memory_limit
        self.hashes, self.files = list(files), list(files.values())
        self.info: TableInfo | None = context.info
        if self.info and request.format and request.format != self.info.format:
            kind = _FORMAT_NAMES.get(self.info.format, f"of format {self.info.format}, not a {request.format}")
            raise TableError(f"{request.table} is {kind} table.", "Omit --format, or choose another table name.")
        if self.info:
            _check_types(self.info)
        self.format = self.info.format if self.info else request.format or "iceberg"

    # ---- planning -----------------------------------------------------------------------------------------------

    def plan(self) -> IngestReport:
        """Report what the ingest would do; nothing is written."""
        plan = self._read_plan(whole=True)
        key, mode = self._validate(plan.columns)
        self._check_key(plan, key, mode)
        changes = self._schema_changes(plan.columns)
        report = IngestReport(
            self.request.table,
            mode,
            files=tuple(file.name for file in self.files),
            columns=plan.columns,
            changes=changes.describe(),
            notes=plan.notes,
            dry_run=True,
        )
        return self._with_counts(report, plan, key, changes) if any(file.names for file in plan.files) else report

    def _with_counts(
        self, report: IngestReport, plan: ReadPlan, key: Sequence[str], changes: SchemaChanges
    ) -> IngestReport:
        """How many rows would be read, written and rejected: the files are staged and compared with the table."""
        staged = stage_files(plan, self.work / "staged", self._stage_options())
        report = replace(
            report, rows_read=staged.rows + staged.rejected, inserted=staged.rows, rejected=staged.rejected
        )
        if report.mode != "upsert" or not staged.rows:
            return report
        if self.info is None:
            after: Sequence[Column] = [Column(column.name, column.type) for column in staged.plan.columns]
            existing = None
        else:
            after = columns_after(self.info.columns, changes)
            existing = self.context.tables.format_of(self.request.table).scan(self.request.table)
        upserted = find_changes(self.context.duckdb, self._upsert_input(staged, key, after, existing), self.work)
        return replace(
            report,
            inserted=upserted.inserted,
            updated=upserted.updated,
            unchanged=upserted.unchanged,
            rejected=staged.rejected + upserted.without_key,
            superseded=upserted.superseded,
        )

    def _stage_options(self) -> StageOptions:
        is_frozen = self.request.contract == "freeze"
        return StageOptions(memory_limit=self.memory_limit, on_bad="fail" if is_frozen else "reject")

    def default_mode(self) -> str:
        """The mode as far as it can be known without reading a file."""
        return self.request.mode or ("upsert" if self.request.key or (self.info and self.info.key) else "append")

    def _read_plan(self, whole: bool = False) -> ReadPlan:
        widen = self.request.contract == "evolve"
        replaces_schema = self.request.mode == "replace" and widen
        recorded = None if replaces_schema or not self.info else self._recorded_columns(self.info)
        options = StageOptions(memory_limit=self.memory_limit)
        return plan_files(self.files, self.request.read, recorded, widen=widen, whole=whole, options=options)

    def _recorded_columns(self, info: TableInfo) -> Sequence[RecordedColumn]:
        serialized = info.properties.get(statements.COLUMNS_PROPERTY) or self._columns_in_history()
        recorded = (
            {column.name: column for column in statements.parse_recorded_columns(serialized)} if serialized else {}
        )
        # The table's schema takes precedence: it may have been altered since the columns were recorded.
        return [merge_recorded(recorded.get(c.name, RecordedColumn(c.name, c.type)), c.type) for c in info.columns]

    def _columns_in_history(self) -> str:
        history = self.context.tables.format_of(self.request.table).history(self.request.table)
        return next((snapshot.notes["columns"] for snapshot in reversed(history) if "columns" in snapshot.notes), "")

    def _key(self, columns: Sequence[PlannedColumn]) -> tuple[str, ...]:
        """The key columns by their clean names: as requested, or those of the table."""
        if not self.request.key:
            return self.info.key if self.info and self.request.mode != "append" else ()
        return tuple(_resolve_column(column, columns, "key") for column in self.request.key)

    def _mode(self, key: Sequence[str]) -> str:
        mode = self.request.mode or ("upsert" if key else "append")
        if mode == "upsert" and not key:
            raise NoSuchColumnError("An upsert needs a key.", "Name the columns that identify a row: --key id")
        return mode

    def _schema_changes(self, columns: Sequence[PlannedColumn]) -> SchemaChanges:
        if self.info is None:
            return SchemaChanges()
        return with_layout_changes(plan_schema_changes(columns, self.info.columns, self.request.contract), self.info)

    def _validate(self, columns: Sequence[PlannedColumn]) -> tuple[tuple[str, ...], str]:
        """Check the options that name columns; returns the key and the mode."""
        if self.info is None:
            names = [column.name for column in columns]
            layout.check_layout("--partition-by", self.request.partition_by, names)
            layout.check_layout("--sort-by", self.request.sort_by, names)
        if self.request.order_by:
            _resolve_column(self.request.order_by, columns, "order")
        key = self._key(columns)
        return key, self._mode(key)

    def _check_key(self, plan: ReadPlan, key: Sequence[str], mode: str) -> None:
        """Refuse a file without the key of an upsert: all of its rows would be rejected."""
        for file in plan.files if mode == "upsert" else ():
            if missing := [name for name in key if name not in file.names]:
                raise NoSuchColumnError(
                    f"{file.file.name} has no column {', '.join(missing)}, which is the key of {self.request.table}.",
                    f"Its columns: {', '.join(file.names)}. Correct its header, or add the rows with --mode append.",
                )

    # ---- loading ------------------------------------------------------------------------------------------------

    def load(self) -> IngestReport | None:
        """Stage, write and publish the files; None if another writer changed the table meanwhile."""
        if self.request.light and self.format == "hudi":
            raise needs_spark("Writing to a Hudi table")
        on_spark = self.info is None or self.format == "hudi"
        if on_spark and not self.request.light:
            self.context.spark.prepare()  # Spark starts while DuckDB reads the files
        else:
            native.preload()
        plan = self._read_plan()
        staged = self._stage(plan) if any(file.names for file in plan.files) else None
        if staged is None or not (staged.rows or staged.rejected):
            return self._nothing_to_do(plan)
        columns = staged.plan.columns
        key, mode = self._validate(columns)
        changes = self._schema_changes(columns)
        with self._open_target() as target:
            target.open(columns, key, self.request, changes, replace_all=mode == "replace")
            upserted = self._write(target, staged, mode, key)
            snapshot = target.publish(self._notes(staged, mode))
        if snapshot is None:
            return None
        without_key = upserted.without_key if upserted else 0
        return IngestReport(
            self.request.table,
            mode,
            files=tuple(file.name for file in self.files),
            rows_read=staged.rows + staged.rejected,
            inserted=upserted.inserted if upserted else staged.rows,
            updated=upserted.updated if upserted else 0,
            unchanged=upserted.unchanged if upserted else 0,
            rejected=staged.rejected + without_key,
            superseded=upserted.superseded if upserted else 0,
            snapshot=snapshot,
            columns=columns,
            changes=changes.describe(),
            notes=staged.plan.notes,
        )

    def _open_target(self) -> AbstractContextManager[Target]:
        return nullcontext(HudiTarget(self.context)) if self.format == "hudi" else iceberg_target(self.context)

    def _nothing_to_do(self, plan: ReadPlan) -> IngestReport:
        """The report on files without rows, which change nothing: a snapshot would only say that it is empty."""
        names = tuple(file.name for file in self.files)
        note = f"There are no rows in {', '.join(names)}: nothing was changed."
        return IngestReport(self.request.table, self.default_mode(), files=names, notes=(*plan.notes, note))

    def _stage(self, plan: ReadPlan) -> StagedFiles:
        self._check_key(plan, *self._validate(plan.columns))  # fail before the files are staged
        if self.request.contract == "freeze":
            self._schema_changes(plan.columns)
        staged = stage_files(plan, self.work / "staged", self._stage_options())
        if self.info is None and staged.rejected and not staged.rows:
            rejected = "1 row was" if staged.rejected == 1 else f"{staged.rejected} rows were"
            raise NoRowsError(
                f"There is no valid row in {', '.join(file.name for file in self.files)} to infer types from.",
                f"{rejected} rejected. Show how the files are read: lake ingest … --dry-run",
            )
        return staged

    def _write(self, target: Target, staged: StagedFiles, mode: str, key: Sequence[str]) -> UpsertChanges | None:
        upserted: UpsertChanges | None = None
        if mode == "upsert":
            given = self._upsert_input(staged, key, target.columns(), target.existing_rows())
            upserted = find_changes(self.context.duckdb, given, self.work)
            target.upsert(upserted, key)
        else:
            provided = [column.name for column in staged.plan.columns if not column.missing]
            # Rejected rows are staged in the same folder, and the target inserts whole folders.
            data = _move({file.path: file.path.name for file in staged.files}, self.work / "staged" / "data")
            target.insert(data, provided, overwrite=mode == "replace" and self.info is not None)
        rejects = [file.rejects_path for file in staged.files if file.rejects_path]
        if upserted and upserted.rejects:
            rejects += sorted(upserted.rejects.glob("*.parquet"))
        if rejects:
            numbered = {file: f"{number:05}.parquet" for number, file in enumerate(rejects)}
            target.add_rejects(_move(numbered, self.work / "rejects"))
        return upserted

    def _upsert_input(
        self, staged: StagedFiles, key: Sequence[str], after: Sequence[Column], existing: Scan | None
    ) -> UpsertInput:
        sources = {
            file.path: (file.file.name, 2 if read.kind == "csv" and read.dialect.header else 1)
            for file, read in zip(staged.files, staged.plan.files, strict=True)
        }
        columns, order_by = staged.plan.columns, self.request.order_by
        newest = _resolve_column(order_by, columns, "order") if order_by else ""
        provided = [column.name for column in columns if not column.missing]
        return UpsertInput(sources, provided, after, existing, key, newest)

    def _notes(self, staged: StagedFiles, mode: str) -> dict[str, str]:
        """Provenance that is stored with the snapshot."""
        names = [file.name for file in self.files]
        fingerprints = [file.fingerprint for file in self.files if file.fingerprint]
        return {
            "source": listed(names),
            "bytes": str(sum(file.size for file in self.files)),
            "sha256": ",".join(self.hashes),
            "mode": mode,
            "columns": statements.dump_recorded_columns(staged.plan.columns),
            **({"objects": ",".join(fingerprints)} if fingerprints else {}),
        }


def _check_types(info: TableInfo) -> None:
    """Refuse a table with a type that only other programs write."""
    for column in info.columns:
        if re.search(r"\btime\b", column.type):
            raise NotSupportedError(
                f"{info.name} has the column {column.name} of the type {column.type}, and neither Spark nor an ingest writes a time.",
                "Write to it with the program that created it, or ingest into another table, where a time is text.",
            )


def _resolve_column(name: str, columns: Sequence[PlannedColumn], purpose: str) -> str:
    """The clean name of a column that is given by that name or by its header."""
    by_header = {column.header.lower(): column.name for column in columns}
    clean = by_header.get(name.lower(), clean_names([name])[0])
    known = [column.name for column in columns]
    if clean not in known:
        raise NoSuchColumnError(f"There is no column {name} to {purpose} by.", f"Columns: {', '.join(known)}.")
    return clean


def _move(files: Mapping[Path, str], folder: Path) -> Path:
    """Move files into a new folder under the given names."""
    folder.mkdir()
    for file, name in files.items():
        file.rename(folder / name)
    return folder
