"""One table of a run: which partitions it needs, its rows made, checked and written on the run's branch."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakehouse.core.errors import BadDeclarationError, RunBlockedError
from lakehouse.core.tables import Snapshot
from lakehouse.pipelines.model import Batch, Source, Table
from lakehouse.quality.model import CheckContext, Outcome
from lakehouse.runs import check
from lakehouse.runs.context import RunContext
from lakehouse.runs.lineage import changed_since, lineage, noted
from lakehouse.runs.model import TableReport
from lakehouse.runs.plan import PartitionPlan
from lakehouse.runs.validate import Keys, ValidationResult, rejected_rows, sifted
from lakehouse.runs.write import Layout, Writer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class TableBuild:
    """A table of the pipeline, being made."""

    def __init__(self, scene: RunContext, table: Table) -> None:
        self.scene, self.table, self.name = scene, table, table.title
        self.rejected = self.name.rejected
        self.column = scene.pipeline.slice_of(table)
        self.before = lineage(scene.iceberg, self.name)
        self.due = PartitionPlan(scene, table, self.before)
        self.writer = Writer(scene.spark, scene.iceberg)

    def run(self) -> TableReport:
        """Make what has to be made."""
        started = time.monotonic()
        slices = self.due.slices() if self.column else None
        if slices == [] or (slices is None and not self.table.sources and not self.due.inputs_moved()):
            return TableReport(self.table.name, note="nothing new")
        self.scene.say(f"{self.table.name}{_told(slices)}")
        rejected = sum(self._make(group) for group in self._groups(slices))
        after = lineage(self.scene.iceberg, self.name)
        new = after[: len(after) - len(self.before)] if self._continues(after) else after
        self._kept_inside(slices, after)
        self._look(slices, after)
        return TableReport(
            self.table.name,
            partitions=tuple(slices or ()),
            rows=sum(snapshot.rows_added or 0 for snapshot in new),
            rejected=rejected,
            snapshot=after[0].id if after else "",
            seconds=round(time.monotonic() - started, 2),
            note="" if new else "nothing changed",
        )

    def _continues(self, after: Sequence[Snapshot]) -> bool:
        return not self.before or any(snapshot.id == self.before[0].id for snapshot in after)

    # ---- making -------------------------------------------------------------------------------------------------

    def _groups(self, slices: list[str] | None) -> list[list[str] | None]:
        if slices is None or not self.table.one_snapshot_each:
            return [slices]
        return [[each] for each in slices]

    def _make(self, slices: list[str] | None) -> int:
        """Make, check and write some partitions, or the whole table; says how many rows were put aside."""
        frames, batch = self._frames(slices)
        made = self.table.make(*frames)
        if slices is not None and self.table.lookback:
            made = made.where(self.scene.within(self.column, slices))
        table = self.table
        # A source may be a database at work: its rows are not asked for once more only to find out what is double.
        keys = Keys(table.key, table.newest, sort=bool(table.sources)) if table.key and table.newest else None
        with sifted(table.name, made, table.rules, keys) as rows:
            return self._write_and_put_aside(rows, slices, batch)

    def _write_and_put_aside(self, rows: ValidationResult, slices: list[str] | None, batch: Batch | None) -> int:
        self.scene.outcomes.extend(rows.outcomes)
        if any(outcome.blocks for outcome in rows.outcomes):
            raise blocked(rows.outcomes)
        self._write(rows.good, slices, batch)
        some = any(outcome.broken for outcome in rows.outcomes if outcome.severity == "quarantine")
        if rows.broken is None or not (some or self.scene.iceberg.has(self.rejected)):
            return 0
        return self._put_aside(rows.broken, slices)

    def _frames(self, slices: list[str] | None) -> tuple[list[DataFrame], Batch | None]:
        frames: list[DataFrame] = []
        batch = None
        for each in self.table.inputs:
            if isinstance(each, Source):
                batch = self._read(each, slices)
                frames.append(batch.rows)
            else:
                frames.append(self.scene.rows_in(each, slices, self.table.lookback))
        return frames, batch

    def _read(self, source: Source, slices: list[str] | None) -> Batch:
        cursor = noted(self.before, "cursor")
        read = [_batch(source.read(self.scene.reading(key, cursor))) for key in slices or [""]]
        rows = read[0].rows
        for more in read[1:]:
            rows = rows.unionByName(more.rows, allowMissingColumns=True)
        notes = {key: ", ".join(dict.fromkeys(b.notes[key] for b in read if key in b.notes)) for key in read[0].notes}
        return Batch(rows, read[0].cursor, read[0].present, notes)

    # ---- writing ------------------------------------------------------------------------------------------------

    def _write(self, rows: DataFrame, slices: list[str] | None, batch: Batch | None) -> None:
        table = self.table
        self.writer.prepare(self.name, rows.schema, Layout(table.partition_by, table.key, table.description))
        notes = self._notes(slices, batch)
        merging = self._merging(slices)
        if merging and not table.key:
            raise BadDeclarationError(f"{table.name} is to be merged, but has no key.", "Give it one: key=('id',)")
        if not merging:
            where = self.scene.within(self.column, slices) if slices is not None else None
            self.writer.replace(self.name, rows, where, notes)
            return
        start = self.scene.pointer(self.name)
        if self.writer.merge(self.name, rows, table.key, batch.present if batch else None):
            self.scene.stamp(self.name, notes, start)

    def _merging(self, slices: list[str] | None) -> bool:
        """Whether rows are merged by key into the whole table, and do not replace partitions."""
        return self.table.merge or (slices is None and bool(self.table.sources) and bool(self.table.key))

    def _kept_inside(self, slices: list[str] | None, after: Sequence[Snapshot]) -> None:
        """Rows outside of the partitions that were replaced would be there twice after the next run."""
        if slices is None or self._merging(slices):
            return
        told = changed_since(after, self.before[0].id if self.before else "", self.column)
        outside = sorted((told or set()) - set(slices))
        if outside:
            raise BadDeclarationError(
                f"{self.table.name} was asked for {_listed(slices)} and made rows of {_listed(outside)} too.",
                f"Carry {self.column} along from its input, or declare the table with merge=True and a key.",
            )

    def _put_aside(self, broken: DataFrame, slices: list[str] | None) -> int:
        kept = [self.column] if slices is not None and self.column in broken.columns else []
        if not any(rule.severity == "quarantine" for rule in self.table.rules):
            return 0
        rows = rejected_rows(broken, self.table.rules, kept, self.scene.run, self.scene.now)
        self.writer.prepare(self.rejected, rows.schema, Layout(", ".join(kept)))
        notes = self._signature()
        if slices is not None and kept:
            self.writer.replace(self.rejected, rows, self.scene.within(self.column, slices), notes)
        else:
            self.writer.append(self.rejected, rows, notes)
        current = self.scene.iceberg.describe(self.rejected).current
        return (current.rows_added or 0) if current else 0

    def _notes(self, slices: list[str] | None, batch: Batch | None) -> dict[str, str]:
        notes = {**self._signature(), "inputs": json.dumps(self.due.inputs())}
        if slices is not None:
            notes["partitions"] = _listed(slices)
            notes["fingerprints"] = json.dumps(self.due.fingerprints(slices))
        if batch is not None:
            notes |= dict(batch.notes)
            notes |= {"cursor": batch.cursor} if batch.cursor else {}
        return notes

    def _signature(self) -> dict[str, str]:
        """Who did it and what for, in every snapshot."""
        scene = self.scene
        told = {"run": scene.run, "pipeline": scene.pipeline.name, "author": scene.author, "message": scene.message}
        return {key: value for key, value in told.items() if value}

    # ---- looking ------------------------------------------------------------------------------------------------

    def _look(self, slices: list[str] | None, after: Sequence[Snapshot]) -> None:
        if not self.table.checks or not after:
            return
        before = {"rows": self.before[0].rows_total} if self.before else {}
        rows = self.scene.rows_of(self.table.name)
        at = CheckContext(
            rows=rows.where(self.scene.within(self.column, slices))
            if slices is not None and not self.table.merge
            else rows,
            table=lambda name: self.scene.rows_in(name, slices, self.table.lookback),
            before=before,
            total=after[0].rows_total,
            now=self.scene.now,
        )
        outcomes = check.look(self.table.name, self.table.checks, at)
        self.scene.outcomes.extend(outcomes)
        if any(outcome.blocks for outcome in outcomes):
            raise blocked(outcomes)


def blocked(outcomes: Sequence[Outcome]) -> RunBlockedError:
    """The error that names what was broken."""
    broken = [outcome for outcome in outcomes if outcome.blocks]
    told = "; ".join(f"{each.table}: {each.name} ({each.told or f'{each.broken} rows'})" for each in broken)
    return RunBlockedError(f"Nothing was published, because this does not hold: {told}.", "lake runs show tells more.")


def _batch(read: DataFrame | Batch) -> Batch:
    return read if isinstance(read, Batch) else Batch(read)


def _listed(keys: Sequence[str], most: int = 5) -> str:
    more = f" and {len(keys) - most} more" if len(keys) > most else ""
    return ", ".join(list(keys)[:most]) + more


def _told(slices: list[str] | None) -> str:
    return f": {_listed(slices)}" if slices else ""
