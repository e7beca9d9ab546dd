"""Build one table of a run: plan its partitions, transform, validate, write and check its rows."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from lakehouse.core.errors import BadDeclarationError, NeedsSparkError, RunBlockedError
from lakehouse.core.format import spark_tables
from lakehouse.core.names import listed
from lakehouse.core.tables import Snapshot
from lakehouse.pipelines.model import Batch, Source, Table
from lakehouse.quality.checks import run_check
from lakehouse.quality.model import Check, Outcome, Rule, SparkCheckContext
from lakehouse.runs.context import RunContext, read_batch
from lakehouse.runs.lineage import changed_since, latest_note, lineage
from lakehouse.runs.model import TableReport
from lakehouse.runs.plan import PartitionPlan, TablePlan, layout_of
from lakehouse.runs.reads import MAX_ROWS, Part, SmallCheckContext
from lakehouse.runs.schedule import run_concurrently
from lakehouse.runs.validate import MAX_ROWS as MAX_FEW_ROWS
from lakehouse.runs.validate import Keys, ValidationResult, rejected_rows, validated, validated_few
from lakehouse.tables.spark import FrameWriter, Layout, in_partitions
from lakehouse.tables.write import PartitionKeys

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: The partitions that a step covers; None: the table has none.
Partitions = list[str] | None


class TableBuild:
    """The build of one table of the pipeline."""

    def __init__(self, context: RunContext, table: Table) -> None:
        self.context, self.table, self.name = context, table, table.table_name
        self.rejected = self.name.rejected
        self.column = context.pipeline.partition_column(table)
        self.before = lineage(context.iceberg, self.name)
        self.plan = PartitionPlan(context, table, self.before)

    @property
    def writer(self) -> FrameWriter:
        return FrameWriter(self.context.spark, self.context.iceberg)

    def build(self) -> Callable[[], TableReport]:
        """Build the partitions that changed, or the whole table; returns what checks the table and reports.

        Checks come after all tables of a batch are built: they may read another one of them.
        """
        started = time.monotonic()
        planned = self.plan.plan()
        if planned.is_empty:
            return self._skip(planned)
        partitions = list(planned.partitions) if self.column else None
        reasons = ", ".join(dict.fromkeys([*planned.partitions.values(), *filter(None, [planned.reason])]))
        keys = f": {listed(partitions)}" if partitions else ""
        self.context.progress(f"{self.table.name}{keys} ({reasons})")
        rejected = sum(self._build(group) for group in self._groups(partitions))
        self._record_code(planned, partitions)
        if partitions is not None:
            self.context.built[self.table.name] = tuple(partitions)
        after = lineage(self.context.iceberg, self.name)
        self._refuse_other_partitions(partitions, after)
        new, built_in = self._new(after), time.monotonic() - started

        def finish() -> TableReport:
            checked = time.monotonic()
            self._check(partitions, after)
            return TableReport(
                self.table.name,
                partitions=tuple(partitions or ()),
                rows=_rows_added(new),
                rejected=rejected,
                snapshot=after[0].id if after else "",
                seconds=round(built_in + time.monotonic() - checked, 2),
                note="" if new else "nothing changed",
            )

        return finish

    def _skip(self, planned: TablePlan) -> Callable[[], TableReport]:
        """Report that there is nothing to build; changed code is recorded if it is accepted."""
        if planned.accepts_code:
            self._record_code(planned, [] if self.column else None)
            self.context.progress(f"{self.table.name}: changed code is accepted without a rebuild")
            return lambda: TableReport(self.table.name, note="code accepted")
        self._report_nothing_new()
        return lambda: TableReport(self.table.name, note="nothing new")

    def _record_code(self, planned: TablePlan, partitions: Partitions) -> None:
        """Note the code of now where the snapshots do not say it: it is accepted, or a merge changed no row."""
        snapshots = lineage(self.context.iceberg, self.name)
        if not snapshots:
            return
        if planned.accepts_code:
            self.context.note(self.name, self.plan.accepted_notes())
        elif partitions is None and latest_note(snapshots, "code") != self.plan.code:
            self.context.note(self.name, self.plan.code_notes(None))

    def _report_nothing_new(self) -> None:
        path = self.context.source_context("", "").settings.get("path") if self.table.sources else ""
        if path:
            self.context.progress(f"{self.table.name}: nothing new in {path}")

    def _keys(self, partitions: Sequence[str]) -> PartitionKeys:
        return self.context.partition_keys(self.column, partitions)

    # ---- building -----------------------------------------------------------------------------------------------

    def _groups(self, partitions: Partitions) -> list[Partitions]:
        if partitions is None or not (self.table.snapshot_per_partition or self.plan.gone):
            return [partitions]
        existing = [key for key in partitions if key not in self.plan.gone]
        groups = [[key] for key in existing] if self.table.snapshot_per_partition else [existing]
        return [*filter(None, groups), *filter(None, [sorted(self.plan.gone)])]

    def _build(self, partitions: Partitions) -> int:
        """Transform, validate and write some partitions, or the whole table; returns the number of rejected rows."""
        table = self.table
        if partitions and set(partitions) <= self.plan.gone:
            return self._remove(partitions)
        inputs, batch = self._inputs(partitions)
        rows = table.transform(*inputs)
        if partitions is not None and table.lookback:
            rows = rows.where(in_partitions(self._keys(partitions)))
        # A source may be a busy database: its rows are sorted rather than read a second time for duplicates.
        keys = Keys(table.key, table.newest, sort=bool(table.sources)) if table.key and table.newest else None
        with ExitStack() as cached:
            if table.rules and self._has_few_rows(partitions, batch):
                result = validated_few(table.name, rows, table.rules, keys, cached)
            else:
                result = cached.enter_context(validated(table.name, rows, table.rules, keys))
            return self._write_result(result, partitions, batch)

    def _remove(self, partitions: list[str]) -> int:
        """Remove the rows of partitions that the source no longer has, and their rejected rows."""
        notes = self._notes(partitions, None)
        for name in (self.name, self.rejected):
            if not self.context.iceberg.has(name):
                continue
            if self.column in [column.name for column in self.context.iceberg.describe(name).columns]:
                rows = self.context.rows_of(str(name)).where("false")
                self.writer.replace(name, rows, self._keys(partitions), notes)
        return 0

    def _has_few_rows(self, partitions: Partitions, batch: Batch | None) -> bool:
        """Whether the table is built from few rows; False if that is not known without Spark."""
        reads = self.context.reads
        if self.table.sources or not reads.is_installed:
            return batch is not None and batch.row_count is not None and batch.row_count <= MAX_FEW_ROWS
        parts = [self.context.part(name, partitions, self.table.lookback) for name in self.table.upstream]
        return sum(reads.count(part) for part in parts) <= MAX_FEW_ROWS

    def _write_result(self, result: ValidationResult, partitions: Partitions, batch: Batch | None) -> int:
        self.context.outcomes.extend(result.outcomes)
        raise_if_blocked(self.context.run, result.outcomes)
        write = partial(self._write, result.valid, partitions, batch)
        invalid = result.invalid
        broken = {outcome.name for outcome in result.outcomes if outcome.broken}
        rules = [rule for rule in self.table.rules if rule.severity == "quarantine" and rule.name in broken]
        if invalid is None or not (rules or self._had_rejected(invalid, partitions)):
            write()
            return 0
        rejected: list[int] = []
        quarantine = partial(self._quarantine, invalid, rules, partitions)
        # Two tables: while one is planned or committed, the tasks of the other run.
        run_concurrently([write, lambda: rejected.append(quarantine())], self.context.session.cancel)
        return rejected[0]

    def _had_rejected(self, invalid: DataFrame, partitions: Partitions) -> bool:
        """Whether rows of these partitions were rejected by an earlier run, and are to be removed now."""
        if partitions is None or self.column not in invalid.columns or not self.context.iceberg.has(self.rejected):
            return False
        part = replace(self.context.part(self.table.name, partitions), table=str(self.rejected))
        return not self.context.reads.is_installed or self.context.reads.count(part) > 0

    def _inputs(self, partitions: Partitions) -> tuple[list[DataFrame], Batch | None]:
        frames: list[DataFrame] = []
        batch = None
        for source in self.table.inputs:
            if isinstance(source, Source):
                batch = read_batch(self.context, source, partitions, latest_note(self.before, "cursor"))
                frames.append(batch.rows)
            else:
                frames.append(self.context.rows_in(source, partitions, self.table.lookback))
        return frames, batch

    # ---- writing ------------------------------------------------------------------------------------------------

    def _write(self, rows: DataFrame, partitions: Partitions, batch: Batch | None) -> None:
        table = self.table
        self.writer.prepare(self.name, rows.schema, Layout(table.partition_by, table.key, table.description))
        self._change_layout()
        notes = self._notes(partitions, batch)
        merges = self._merges(partitions)
        if merges and not table.key:
            raise BadDeclarationError(f"{table.name} is to be merged, but has no key.", "Give it one: key=('id',)")
        if not merges:
            self.writer.replace(self.name, rows, self._keys(partitions) if partitions is not None else None, notes)
            return
        start = self.context.pointer(self.name)
        if self.writer.merge(self.name, rows, table.key, batch.present if batch else None):
            self.context.annotate(self.name, notes, start)

    def _change_layout(self) -> None:
        """Have new files follow a changed `partition_by`; the files of partitions that are not rebuilt stay as they are."""
        declared, current = layout_of(self.table), self.context.iceberg.describe(self.name).partitioning
        name = spark_tables(self.context.iceberg).name(self.name)
        for field in current if current != declared else ():
            self.context.spark.sql(f"ALTER TABLE {name} DROP PARTITION FIELD {field}")
        for field in declared if current != declared else ():
            self.context.spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD {field}")

    def _merges(self, partitions: Partitions) -> bool:
        """Whether rows are merged by key into the whole table instead of replacing partitions."""
        return self.table.merge or (partitions is None and bool(self.table.sources) and bool(self.table.key))

    def _refuse_other_partitions(self, partitions: Partitions, after: Sequence[Snapshot]) -> None:
        """Rows outside of the replaced partitions would be duplicated by the next run."""
        if partitions is None or self._merges(partitions):
            return
        changed = changed_since(after, self.before[0].id if self.before else "", self.column)
        if changed is None:  # the metadata does not list the partitions: there are too many, or they have other names
            changed = self._grown_partitions(partitions)
        others = sorted(changed - set(partitions))
        if others:
            raise BadDeclarationError(
                f"{self.table.name} was to build {listed(partitions)} and returned rows of {listed(others)} too.",
                f"Carry {self.column} along from its input, or declare the table with merge=True and a key.",
            )

    def _grown_partitions(self, built: Sequence[str]) -> set[str]:
        """The partitions outside of those built that have more rows than before: a replace only adds rows to them."""
        part = Part(self.table.name, self.column)
        now = self.context.rows_by_key(part)
        others = now.keys() - set(built)
        before = self.context.rows_by_key(part, self.before[0].id) if others and self.before else {}
        return {key for key in others if now[key] > before.get(key, 0)}

    def _quarantine(self, invalid: DataFrame, rules: Sequence[Rule], partitions: Partitions) -> int:
        columns = [self.column] if partitions is not None and self.column in invalid.columns else []
        rows = rejected_rows(invalid, rules, columns, self.context.run, self.context.now)
        self.writer.prepare(self.rejected, rows.schema, Layout(", ".join(columns)))
        notes = self._signature()
        if partitions is not None and columns:
            self.writer.replace(self.rejected, rows, self._keys(partitions), notes)
        else:
            self.writer.append(self.rejected, rows, notes)
        current = self.context.iceberg.describe(self.rejected).current
        return (current.rows_added or 0) if current else 0

    def _notes(self, partitions: Partitions, batch: Batch | None) -> dict[str, str]:
        notes = {**self._signature(), "inputs": json.dumps(self.plan.inputs())}
        if partitions is not None:
            notes["partitions"] = listed(partitions)
            notes["fingerprints"] = json.dumps(self.plan.fingerprints(partitions))
        notes |= self.plan.code_notes(partitions)
        if batch is not None:
            notes |= dict(batch.notes)
            notes |= {"cursor": batch.cursor} if batch.cursor else {}
            notes |= {"fingerprint": batch.fingerprint} if batch.fingerprint else {}
        return notes

    def _signature(self) -> dict[str, str]:
        """The run, its author and its message, for every snapshot."""
        run = self.context
        notes = {"run": run.run, "pipeline": run.pipeline.name, "author": run.author, "message": run.message}
        return {key: value for key, value in notes.items() if value}

    # ---- checking -----------------------------------------------------------------------------------------------

    def _check(self, partitions: Partitions, after: Sequence[Snapshot]) -> None:
        if not self.table.checks or not after:
            return
        outcomes = [self._outcome(check, partitions, after) for check in self.table.checks]
        self.context.outcomes.extend(outcomes)
        raise_if_blocked(self.context.run, outcomes)

    def _outcome(self, check: Check, partitions: Partitions, after: Sequence[Snapshot]) -> Outcome:
        """Evaluate a check without Spark if it can be, and if the run wrote few enough rows."""
        facts: dict[str, Any] = {
            "before": {"rows": self.before[0].rows_total} if self.before else {},
            "total": after[0].rows_total,
            "now": self.context.now,
        }
        if check.portable and self.context.reads.is_installed and _rows_added(self._new(after)) <= MAX_ROWS:
            small = SmallCheckContext(
                self.context.reads, lambda name: self._part(name, partitions), self.table.name, **facts
            )
            with suppress(NeedsSparkError):
                return run_check(self.table.name, check, small)
        rows = self.context.rows_of(self.table.name)
        if partitions is not None and not self.table.merge:
            rows = rows.where(in_partitions(self._keys(partitions)))
        inputs = partial(self.context.rows_in, keys=partitions, lookback=self.table.lookback)
        return run_check(self.table.name, check, SparkCheckContext(rows, inputs, **facts))

    def _part(self, name: str, partitions: Partitions) -> Part:
        """What a check is to read of a table."""
        if name != self.table.name:
            return self.context.part(name, partitions, self.table.lookback)
        return self.context.part(name, None if self.table.merge else partitions)

    def _new(self, after: Sequence[Snapshot]) -> list[Snapshot]:
        """The snapshots of this build."""
        known = {snapshot.id for snapshot in self.before}
        return [snapshot for snapshot in after if snapshot.id not in known]


def _rows_added(snapshots: Sequence[Snapshot]) -> int:
    return sum(snapshot.rows_added or 0 for snapshot in snapshots)


def raise_if_blocked(run: str, outcomes: Sequence[Outcome]) -> None:
    """Raise RunBlockedError with the rules and checks that block the run, if any does."""
    broken = [outcome for outcome in outcomes if outcome.blocks]
    if broken:
        details = "; ".join(
            f"{outcome.table}: {outcome.name} ({outcome.detail or f'{outcome.broken} rows'})" for outcome in broken
        )
        raise RunBlockedError(
            f"Nothing was published, because this does not hold: {details}.", f"Details: lake runs show {run}"
        )
