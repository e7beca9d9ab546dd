"""One try at a run: every table made on the run's branch, checked, and the branch published."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from lakehouse.core.errors import BadSettingError
from lakehouse.core.format import spark_tables
from lakehouse.core.names import TableName
from lakehouse.core.refs import Commit
from lakehouse.core.requests import IngestRequest, RunRequest
from lakehouse.formats.iceberg.stamp import stamp
from lakehouse.pipelines.model import FilesTable, Pipeline, Reading, Table
from lakehouse.quality.model import CheckContext
from lakehouse.runs import check
from lakehouse.runs import validate as sift
from lakehouse.runs.build import TableBuild, blocked
from lakehouse.runs.context import RunContext
from lakehouse.runs.model import RunRecord, TableReport
from lakehouse.runs.schedule import run_concurrently, topological_batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakehouse.runs.run import Runner

#: What a report says of a table whose format has no branches.
COMMITTED_LAST = "has no branches: committed by itself, after the others were published"
NOT_COMMITTED = "has no branches: not written, as nothing was to be published"


class Attempt:
    """One try at a run, on what the tables are now or, resumed, on what an earlier try left."""

    def __init__(
        self, runner: Runner, pipeline: Pipeline, asked: RunRequest, record: RunRecord, say: Callable[[str], None]
    ) -> None:
        self.runner, self.pipeline, self.asked, self.say = runner, pipeline, asked, say
        self.branch = record.branch
        self.here = runner.catalog.on(self.branch)
        self.now = now()
        self.commit = _commit(pipeline, record)
        if asked.resume:
            self._clear_unfinished(record)
        else:
            runner.catalog.drop_branch(self.branch)
            runner.catalog.create_branch(self.branch, commit=self.commit)
            record = replace(record, tables=(), outcomes=())
        made = next(ref for ref in runner.catalog.branch_refs() if ref.name == self.branch)
        self.record = runner.log.save(replace(record, started_from=made.state))

    def _clear_unfinished(self, record: RunRecord) -> None:
        """Bring tables that were not done, or not checked, back to where the branch began: they are made anew."""
        done = {TableName.parse(report.table) for report in record.tables}
        done |= {table.rejected for table in done}
        for change in self.runner.catalog.changes(self.branch):
            if change.table not in done and change.after is not None:
                self.here.swap_pointer(change.table, change.after, change.before)

    def run(self) -> RunRecord:
        """The record of what came of it; still `running` if the tables moved meanwhile."""
        wanted = self.pipeline.chosen(self.asked.tables)
        last = [each for each in wanted if isinstance(each, FilesTable) and not self._can_branch(each)]
        with ExitStack() as stack:
            scene = self._scene(stack)
            kept = _Kept(self, scene, [table.name for table in wanted])
            for wave in topological_batches(table for table in wanted if table not in last):
                self._make_all(scene, wave, kept)
            record = self.ended()
            return self._committed_last(scene, last, record) if last else record

    def _make_all(self, scene: LazyRunContext, tables: Sequence[Table | FilesTable], kept: _Kept) -> None:
        def make(table: Table | FilesTable) -> None:
            try:
                kept.reports[table.name] = _joined(kept.reports.get(table.name), self._made(scene, table))
            finally:
                kept.save()

        if len(tables) == 1 or self.asked.light:
            for table in tables:
                make(table)
            return
        # The scene is opened here, before there is more than one who might.
        run_concurrently([partial(make, table) for table in tables], scene().give_up)

    def ended(self) -> RunRecord:
        """Publish, unless asked not to; the record says what came of it: still `running` if the tables moved."""
        if not self.runner.catalog.changes(self.branch):
            self.runner.catalog.drop_branch(self.branch)
            return replace(self.record, state="nothing")
        if not self.asked.publish:
            return replace(self.record, state="kept")
        self.say("Publishing")
        done = self.runner.publisher.publish(self.branch, self.commit, tag=self.branch)
        if done:
            return replace(self.record, state="published", commit=done.entry)
        self.say(f"Others changed {', '.join(map(str, done.conflicts))} meanwhile")
        return self.record

    # ---- tables without branches --------------------------------------------------------------------------------

    def _can_branch(self, table: FilesTable) -> bool:
        found = self.runner.tables.find(table.title)
        kind = found or self.runner.tables.formats.get(str(table.options.get("format") or "iceberg"))
        return kind is None or kind.capabilities.branch

    def _committed_last(self, scene: LazyRunContext, tables: list[FilesTable], record: RunRecord) -> RunRecord:
        """What cannot be on a branch is written when all the rest has been published, and not otherwise."""
        if record.state == "running":
            return record
        reports = list(record.tables)
        for table in tables:
            if record.state == "kept" or not self.asked.publish:
                reports.append(TableReport(table.name, note=f"{table.options.get('format', 'hudi')} {NOT_COMMITTED}"))
                continue
            report = self._ingested(scene, table, on="")
            note = report.note or f"{table.options.get('format', 'hudi')} {COMMITTED_LAST}"
            reports.append(replace(report, note=note))
            if record.state == "nothing" and not report.note:
                record = replace(record, state="published")
        return replace(record, tables=tuple(reports))

    # ---- one table ----------------------------------------------------------------------------------------------

    def _made(self, scene: LazyRunContext, table: Table | FilesTable) -> TableReport:
        self.here.ensure_namespace(table.title.namespace)
        if self.asked.light:
            return self._light(table)
        if isinstance(table, Table):
            return TableBuild(scene(), table).run()
        return self._ingested(scene, table, on=self.branch)

    def _light(self, table: Table | FilesTable) -> TableReport:
        if isinstance(table, FilesTable) or table.light is None:
            return TableReport(table.name, note="needs Spark")
        from pyiceberg.catalog import load_catalog

        self.say(table.name)
        started, before = now(), self.here.pointer(table.title)
        with closing(load_catalog(self.branch, **self.here.pyiceberg_properties())) as catalog:
            rows = table.light(catalog, self.runner.settings.get(self.pipeline.name, {}))
        current = self.runner.tables.on(self.branch).describe(table.title).current
        note = "nothing changed" if self.here.pointer(table.title) == before else ""
        seconds = round((now() - started).total_seconds(), 2)
        return TableReport(table.name, rows=rows, snapshot=current.id if current else "", seconds=seconds, note=note)

    def _ingested(self, scene: LazyRunContext, table: FilesTable, on: str) -> TableReport:
        settings = self.runner.settings.get(self.pipeline.name, {})
        folder = settings.get(table.folder, "")
        if not folder:
            raise BadSettingError(
                f"sources.{self.pipeline.name}.{table.folder} is not set, so there is no folder to watch.",
                f"Set it in lake.toml, or LAKE_SOURCES__{self.pipeline.name.upper()}__{table.folder.upper()}.",
            )
        self.say(f"{table.name}: {folder}")
        started = now()
        done = self.runner.ingester(on).run(IngestRequest((folder,), table.title, **table.options))
        note = "" if done.files else "nothing new"
        if done.files and table.checks:
            looking = CheckContext(scene().rows_of(table.name), scene().rows_of, {}, None, self.now)
            outcomes = check.look(table.name, table.checks, looking)
            scene().outcomes.extend(outcomes)
            if any(outcome.blocks for outcome in outcomes):
                raise blocked(outcomes)
        seconds = round((now() - started).total_seconds(), 2)
        rows = done.inserted + done.updated
        return TableReport(table.name, (), rows, done.rejected, done.snapshot, seconds, note)

    # ---- Spark --------------------------------------------------------------------------------------------------

    def _scene(self, stack: ExitStack) -> LazyRunContext:
        def opened() -> RunContext:
            self.say("Starting Spark")
            spark = stack.enter_context(self.runner.session({**self.here.spark_conf(), **sift.SESSION}))
            tables = self.runner.tables.on(self.branch)

            def rows_of(name: str) -> DataFrame:
                table = TableName.parse(name)
                table_format = tables.format_of(table)
                for statement in spark_tables(table_format).setup(table):
                    spark.sql(statement)
                return spark.sql(f"SELECT * FROM {spark_tables(table_format).rows(table)}")

            return RunContext(
                pipeline=self.pipeline,
                run=self.record.id,
                author=self.commit.author,
                message=self.record.message,
                asked=self.asked.partitions,
                spark=spark,
                iceberg=tables.formats["iceberg"],
                rows_of=rows_of,
                reading=lambda partition, cursor: self._reading(spark, partition, cursor),
                stamp=self._stamp,
                pointer=self.here.pointer,
                now=self.now,
                say=self.say,
            )

        return LazyRunContext(opened)

    def _reading(self, spark: SparkSession, partition: str, cursor: str) -> Reading:
        settings = self.runner.settings.get(self.pipeline.name, {})
        return Reading(
            spark, settings, partition, self.now, self.runner.raw, self.runner.store(settings), cursor, self.say
        )

    def _stamp(self, table: TableName, notes: dict[str, str], start: str | None) -> None:
        pointer = self.here.pointer(table)
        assert pointer is not None
        stamped = stamp(pointer, {f"lake.{key}": value for key, value in notes.items()}, start, self.runner.files)
        self.here.swap_pointer(table, pointer, stamped)


class _Kept:
    """What is written down of a run as it goes on, by one table after the other or by several at once."""

    def __init__(self, attempt: Attempt, scene: LazyRunContext, order: Sequence[str]) -> None:
        self._attempt, self._scene, self._order = attempt, scene, {name: at for at, name in enumerate(order)}
        self._one_at_a_time = threading.Lock()
        self.reports = {report.table: report for report in attempt.record.tables}
        self._earlier = [each for each in attempt.record.outcomes if each.table in self.reports]

    def save(self) -> None:
        """Write down what is there now, in the order of the tables."""
        with self._one_at_a_time:
            found = [*self._earlier, *(self._scene().outcomes if self._scene.open else ())]
            tables = sorted(self.reports.values(), key=lambda each: self._place(each.table))
            outcomes = sorted(found, key=lambda each: self._place(each.table))
            record = replace(self._attempt.record, tables=tuple(tables), outcomes=tuple(outcomes))
            self._attempt.record = self._attempt.runner.log.save(record)

    def _place(self, table: str) -> int:
        return self._order.get(table, len(self._order))


class LazyRunContext:
    """Spark is started when a table needs it: a watched folder may have nothing new, or do without."""

    def __init__(self, opened: Callable[[], RunContext]) -> None:
        self._opened, self._scene = opened, None

    _scene: RunContext | None

    @property
    def open(self) -> bool:
        return self._scene is not None

    def __call__(self) -> RunContext:
        if self._scene is None:
            self._scene = self._opened()
        return self._scene


def _commit(pipeline: Pipeline, record: RunRecord) -> Commit:
    sources = {source.name for table in pipeline.tables if isinstance(table, Table) for source in table.sources}
    return Commit(
        kind="publish",
        author=record.author,
        message=record.message or f"run of {pipeline.name}",
        run=record.id,
        pipeline=pipeline.name,
        source=", ".join(sorted(sources)),
    )


def _joined(earlier: TableReport | None, report: TableReport) -> TableReport:
    """What two tries of a resumed run did to a table: the first did the work, the second found nothing new."""
    return earlier if earlier is not None and report.note == "nothing new" else report


def now() -> datetime:
    return datetime.now(UTC)
