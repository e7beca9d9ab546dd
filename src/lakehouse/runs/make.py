"""One table of a run: which partitions it needs, its rows made, checked and written on the run's branch."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lakehouse.core.errors import BadDeclarationError, BadPartitionError, RunBlockedError
from lakehouse.core.names import TableName
from lakehouse.core.ports import Snapshot, TableFormat
from lakehouse.pipelines.model import Batch, Pipeline, Reading, Source, Table
from lakehouse.pipelines.partitions import with_neighbours
from lakehouse.quality.model import Looking, Outcome
from lakehouse.runs import check
from lakehouse.runs.model import TableReport
from lakehouse.runs.sift import Keys, Sifted, rejected_rows, sifted
from lakehouse.runs.slices import changed_since, fingerprints_of, inputs_of, lineage, noted
from lakehouse.runs.write import Layout, Writer

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

#: More partitions than that are read as the range they span: Spark plans a list of thousands for minutes.
_LONGEST_LIST = 400


@dataclass
class Scene:
    """All that the tables of one run share."""

    pipeline: Pipeline
    run: str
    author: str
    message: str
    asked: tuple[str, ...]
    """Partitions that were asked for by name."""
    spark: SparkSession
    iceberg: TableFormat
    """Iceberg's tables as the run's branch has them."""
    rows_of: Callable[[str], DataFrame]
    """Any table of the lake, as the run's branch has it."""
    reading: Callable[[str, str], Reading]
    """A source's view of the world, for a partition and a cursor."""
    stamp: Callable[[TableName, dict[str, str], str | None], None]
    """Write notes into the newest snapshot of a table; the pointer that the table had before says which one that is."""
    pointer: Callable[[TableName], str | None]
    now: datetime
    say: Callable[[str], None]
    outcomes: list[Outcome] = field(default_factory=list)


class Making:
    """A table of the pipeline, being made."""

    def __init__(self, scene: Scene, table: Table) -> None:
        self.scene, self.table, self.name = scene, table, table.title
        self.rejected = self.name.rejected
        self.column = scene.pipeline.slice_of(table)
        self.before = lineage(scene.iceberg, self.name)
        self.writer = Writer(scene.spark, scene.iceberg)
        self._fingerprints: dict[str, str] = {}

    def run(self) -> TableReport:
        """Make what has to be made."""
        started = time.monotonic()
        slices = self._slices() if self.column else None
        if slices == [] or (slices is None and not self.table.sources and not self._inputs_moved()):
            return TableReport(self.table.name, note="nothing new")
        self.scene.say(f"{self.table.name}{_told(slices)}")
        rejected = sum(self._make(group) for group in self._groups(slices))
        after = lineage(self.scene.iceberg, self.name)
        new = after[: len(after) - len(self.before)] if self._continues(after) else after
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

    # ---- which partitions ---------------------------------------------------------------------------------------

    def _groups(self, slices: list[str] | None) -> list[list[str] | None]:
        if slices is None or not self.table.one_snapshot_each:
            return [slices]
        return [[each] for each in slices]

    def _slices(self) -> list[str]:
        """The partitions to make: those asked for, those whose source changed, those whose inputs did."""
        found: set[str] = set()
        for source in self.table.sources:
            found |= self._from_source(source)
        for upstream in self.table.upstream:
            found |= self._from_input(upstream)
        if found and self.table.upstream:
            found |= set(self.scene.asked)
        return sorted(found)

    def _from_source(self, source: Source) -> set[str]:
        published: dict[str, str] = {}
        if source.available is not None:
            published = dict(source.available(self.scene.reading("", "")))
        elif not self.scene.asked:
            raise BadPartitionError(
                f"{source.name} cannot say which partitions it has.", "Name some: --partition, or --from and --to."
            )
        known = fingerprints_of(self.before)
        wanted = set(self.scene.asked) or {key for key, mark in published.items() if known.get(key) != mark}
        self._fingerprints |= {key: published[key] for key in wanted if key in published}
        return wanted

    def _from_input(self, upstream: str) -> set[str]:
        """The partitions of an input that changed since this table was made from it, and the later ones that look back."""
        their_table = self._of_pipeline(upstream)
        if their_table is None:
            return set()  # a table of another pipeline is read as a whole, whenever this one has something to do
        column = self.scene.pipeline.slice_of(their_table)
        seen = inputs_of(self.before).get(upstream, "")
        changed = changed_since(lineage(self.scene.iceberg, their_table.title), seen, column)
        if changed is None:
            every = self.scene.rows_of(upstream).select(column).distinct().collect()
            return {str(row[0]) for row in every}
        return changed | self._looking_back_at(changed)

    def _looking_back_at(self, changed: set[str]) -> set[str]:
        partitions = self.scene.pipeline.partitions
        assert partitions is not None
        if not self.table.lookback or not changed or not self.scene.iceberg.has(self.name):
            return set()
        later = with_neighbours(partitions, sorted(changed), after=self.table.lookback)
        mine = self.scene.rows_of(self.table.name).where(self._in(self.column, later))
        return {str(row[0]) for row in mine.select(self.column).distinct().collect()}

    def _of_pipeline(self, name: str) -> Table | None:
        found = next((table for table in self.scene.pipeline.tables if table.name == name), None)
        return found if isinstance(found, Table) else None

    def _inputs_moved(self) -> bool:
        return self._input_snapshots() != inputs_of(self.before)

    def _input_snapshots(self) -> dict[str, str]:
        found = {}
        for name in self.table.upstream:
            chain = lineage(self.scene.iceberg, TableName.parse(name))
            found[name] = chain[0].id if chain else ""
        return found

    # ---- making -------------------------------------------------------------------------------------------------

    def _make(self, slices: list[str] | None) -> int:
        """Make, check and write some partitions, or the whole table; says how many rows were put aside."""
        frames, batch = self._frames(slices)
        made = self.table.make(*frames)
        if slices is not None and self.table.lookback:
            made = made.where(self._in(self.column, slices))
        table = self.table
        # A source may be a database at work: its rows are not asked for once more only to find out what is double.
        keys = Keys(table.key, table.newest, sort=bool(table.sources)) if table.key and table.newest else None
        with sifted(table.name, made, table.rules, keys) as rows:
            return self._write_and_put_aside(rows, slices, batch)

    def _write_and_put_aside(self, rows: Sifted, slices: list[str] | None, batch: Batch | None) -> int:
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
                frames.append(self._input_rows(each, slices))
        return frames, batch

    def _read(self, source: Source, slices: list[str] | None) -> Batch:
        cursor = noted(self.before, "cursor")
        read = [_batch(source.read(self.scene.reading(key, cursor))) for key in slices or [""]]
        rows = read[0].rows
        for more in read[1:]:
            rows = rows.unionByName(more.rows, allowMissingColumns=True)
        notes = {key: ", ".join(dict.fromkeys(b.notes[key] for b in read if key in b.notes)) for key in read[0].notes}
        return Batch(rows, read[0].cursor, read[0].present, notes)

    def _input_rows(self, name: str, slices: list[str] | None) -> DataFrame:
        rows, their_table = self.scene.rows_of(name), self._of_pipeline(name)
        partitions = self.scene.pipeline.partitions
        if slices is None or their_table is None or partitions is None:
            return rows
        wanted = with_neighbours(partitions, slices, before=self.table.lookback)
        return rows.where(self._in(self.scene.pipeline.slice_of(their_table), wanted))

    # ---- writing ------------------------------------------------------------------------------------------------

    def _write(self, rows: DataFrame, slices: list[str] | None, batch: Batch | None) -> None:
        table = self.table
        self.writer.prepare(self.name, rows.schema, Layout(table.partition_by, table.key, table.description))
        notes = self._notes(slices, batch)
        merging = table.merge or (slices is None and bool(table.sources) and bool(table.key))
        if merging and not table.key:
            raise BadDeclarationError(f"{table.name} is to be merged, but has no key.", "Give it one: key=('id',)")
        if not merging:
            where = self._in(self.column, slices) if slices is not None else None
            self.writer.replace(self.name, rows, where, notes)
            self._kept_inside(slices)
            return
        start = self.scene.pointer(self.name)
        if self.writer.merge(self.name, rows, table.key, batch.present if batch else None):
            self.scene.stamp(self.name, notes, start)

    def _kept_inside(self, slices: list[str] | None) -> None:
        """Rows outside of the partitions that were replaced would be there twice after the next run."""
        newest = lineage(self.scene.iceberg, self.name)
        told = changed_since(newest[:2], newest[1].id if len(newest) > 1 else "", self.column) if slices else None
        outside = sorted((told or set()) - set(slices or ()))
        if outside:
            raise BadDeclarationError(
                f"{self.table.name} was asked for {_listed(slices or [])} and made rows of {_listed(outside)} too.",
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
            self.writer.replace(self.rejected, rows, self._in(self.column, slices), notes)
        else:
            self.writer.append(self.rejected, rows, notes)
        current = self.scene.iceberg.describe(self.rejected).current
        return (current.rows_added or 0) if current else 0

    def _notes(self, slices: list[str] | None, batch: Batch | None) -> dict[str, str]:
        notes = {**self._signature(), "inputs": json.dumps(self._input_snapshots())}
        if slices is not None:
            notes["partitions"] = _listed(slices)
            notes["fingerprints"] = json.dumps(self._marks(slices))
        if batch is not None:
            notes |= dict(batch.notes)
            notes |= {"cursor": batch.cursor} if batch.cursor else {}
        return notes

    def _signature(self) -> dict[str, str]:
        """Who did it and what for, in every snapshot."""
        scene = self.scene
        told = {"run": scene.run, "pipeline": scene.pipeline.name, "author": scene.author, "message": scene.message}
        return {key: value for key, value in told.items() if value}

    def _marks(self, slices: Sequence[str]) -> dict[str, str]:
        """What the source looked like for each partition; asked again for those that only reading brought here."""
        if not set(slices) <= set(self._fingerprints):
            for source in self.table.sources:
                found = source.available(self.scene.reading("", "")) if source.available else {}
                self._fingerprints |= {key: mark for key, mark in found.items() if key not in self._fingerprints}
        return {key: self._fingerprints[key] for key in slices if key in self._fingerprints}

    # ---- looking ------------------------------------------------------------------------------------------------

    def _look(self, slices: list[str] | None, after: Sequence[Snapshot]) -> None:
        if not self.table.checks or not after:
            return
        before = {"rows": self.before[0].rows_total} if self.before else {}
        rows = self.scene.rows_of(self.table.name)
        at = Looking(
            rows=rows.where(self._in(self.column, slices)) if slices is not None and not self.table.merge else rows,
            table=lambda name: self._input_rows(name, slices),
            before=before,
            total=after[0].rows_total,
            now=self.scene.now,
        )
        outcomes = check.look(self.table.name, self.table.checks, at)
        self.scene.outcomes.extend(outcomes)
        if any(outcome.blocks for outcome in outcomes):
            raise blocked(outcomes)

    def _in(self, column: str, slices: Sequence[str]) -> Column:
        from pyspark.sql import functions as F

        partitions = self.scene.pipeline.partitions
        assert partitions is not None
        kind = partitions.sql_type()
        if len(slices) > _LONGEST_LIST:
            return F.col(column).between(F.lit(min(slices)).cast(kind), F.lit(max(slices)).cast(kind))
        # Equal to a literal, not to a list of strings: Iceberg's overwrite by condition understands only plain ones.
        return F.col(column).isin([_typed(each, kind) for each in slices])


def blocked(outcomes: Sequence[Outcome]) -> RunBlockedError:
    """The error that names what was broken."""
    broken = [outcome for outcome in outcomes if outcome.blocks]
    told = "; ".join(f"{each.table}: {each.name} ({each.told or f'{each.broken} rows'})" for each in broken)
    return RunBlockedError(f"Nothing was published, because this does not hold: {told}.", "lake runs show tells more.")


def _batch(read: DataFrame | Batch) -> Batch:
    return read if isinstance(read, Batch) else Batch(read)


def _typed(key: str, kind: str) -> Any:
    from datetime import date

    return date.fromisoformat(key) if kind == "date" else key


def _listed(keys: Sequence[str], most: int = 5) -> str:
    more = f" and {len(keys) - most} more" if len(keys) > most else ""
    return ", ".join(list(keys)[:most]) + more


def _told(slices: list[str] | None) -> str:
    return f": {_listed(slices)}" if slices else ""
