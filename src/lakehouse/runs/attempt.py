"""One attempt at a run: build every table on the run's branch, check it, publish the branch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from lakehouse.core.engine import job_group
from lakehouse.core.errors import BadSettingError
from lakehouse.core.format import spark_tables
from lakehouse.core.names import MAIN, TableName
from lakehouse.core.progress import reporter
from lakehouse.core.refs import Commit
from lakehouse.core.requests import IngestRequest, RunRequest
from lakehouse.pipelines.model import FilesTable, Pipeline, SourceContext, Table
from lakehouse.quality.checks import run_checks
from lakehouse.quality.model import Outcome, SparkCheckContext
from lakehouse.runs import recovery, validate
from lakehouse.runs.build import TableBuild, raise_if_blocked
from lakehouse.runs.context import LazySession, RunContext, RunServices
from lakehouse.runs.failure import located
from lakehouse.runs.light import LightBuild
from lakehouse.runs.model import RunRecord, TableReport
from lakehouse.runs.plan import NEW_FILES, PartitionPlan, TablePlan
from lakehouse.runs.reads import BranchReads
from lakehouse.runs.schedule import independent_batches, run_concurrently
from lakehouse.tables.fork import add_notes, annotate, set_pointer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Notes of tables whose format has no branches.
COMMITTED_LAST = "has no branches: committed by itself, after the others were published"
NOT_COMMITTED = "has no branches: not written, as nothing was to be published"


class Attempt:
    """One attempt at a run, on a new branch of main or, resumed, on the branch of an earlier attempt."""

    def __init__(
        self,
        services: RunServices,
        pipeline: Pipeline,
        request: RunRequest,
        record: RunRecord,
        progress: Callable[[str], None],
    ) -> None:
        self.services, self.pipeline, self.request, self.progress = services, pipeline, request, progress
        self.branch = record.branch
        self.branch_catalog = services.catalog.on(self.branch)
        self.now = now()
        self.commit = _commit(pipeline, record)
        if request.resume:
            self._reset_unfinished(record)
        else:
            recovery.create_branch(services.catalog, self.branch, self.commit)
            record = replace(record, tables=(), outcomes=())
        ref = next(ref for ref in services.catalog.branch_refs() if ref.name == self.branch)
        self.record = services.log.save(replace(record, started_from=ref.state))

    def _reset_unfinished(self, record: RunRecord) -> None:
        """Reset tables that were not finished or not checked to the start of the branch: they are rebuilt."""
        finished = {TableName.parse(report.table) for report in record.tables}
        finished |= {table.rejected for table in finished}
        for change in self.services.catalog.changes(self.branch):
            if change.table in finished or change.after is None:
                continue
            set_pointer(self.branch_catalog, change.table, change.after, change.before)

    def run(self) -> RunRecord:
        """Build and publish; the record is still `running` if others changed the tables meanwhile."""
        tables = self.pipeline.select(self.request.tables)
        last = [table for table in tables if isinstance(table, FilesTable) and not self._can_branch(table)]
        with ExitStack() as stack:
            context = self._context(stack)
            reports = _Reports(self, context, [table.name for table in tables])
            for batch in independent_batches(table for table in tables if table not in last):
                self._build_batch(context, batch, reports)
            record = self.publish()
            return self._commit_last(context, last, record) if last else record

    def _build_batch(self, context: RunContext, tables: Sequence[Table | FilesTable], reports: _Reports) -> None:
        """Build tables that do not depend on each other, then check them: a check may read another one of them."""
        finishing: dict[str, Callable[[], TableReport]] = {}

        def build(table: Table | FilesTable) -> None:
            finishing[table.name] = self._build(context, table, reports.outcomes)

        def finish(table: Table | FilesTable) -> None:
            reports.add(finishing[table.name]())

        one_by_one = len(tables) == 1 or self.request.light
        try:
            for table in tables if one_by_one else ():
                build(table)
                finish(table)
                reports.save()
            for step in () if one_by_one else (build, finish):
                run_concurrently([partial(step, table) for table in tables], context.session.cancel)
        finally:
            reports.save()

    def publish(self) -> RunRecord:
        """Publish the branch unless the request says not to; still `running` if others changed the tables."""
        if not self.services.catalog.changes(self.branch):
            self.services.catalog.drop_branch(self.branch)
            return replace(self.record, state="nothing")
        if not self.request.publish:
            return replace(self.record, state="kept")
        self.progress("Publishing")
        done = self.services.publisher.publish(self.branch, self.commit, tag=self.branch)
        if done:
            return replace(self.record, state="published", commit=done.entry)
        self.progress(f"Others changed {', '.join(map(str, done.conflicts))} meanwhile")
        return self.record

    # ---- tables without branches --------------------------------------------------------------------------------

    def _can_branch(self, table: FilesTable) -> bool:
        existing = self.services.tables.find(table.table_name)
        kind = existing or self.services.tables.formats.get(str(table.options.get("format") or "iceberg"))
        return kind is None or kind.capabilities.branch

    def _commit_last(self, context: RunContext, tables: list[FilesTable], record: RunRecord) -> RunRecord:
        """Write tables without branches, once all others are published."""
        if record.state == "running":
            return record
        reports = list(record.tables)
        for table in tables:
            table_format = table.options.get("format", "hudi")
            if record.state == "kept" or not self.request.publish:
                reports.append(TableReport(table.name, note=f"{table_format} {NOT_COMMITTED}"))
                continue
            report = self._ingest(context, table, branch="")
            reports.append(replace(report, note=report.note or f"{table_format} {COMMITTED_LAST}"))
            if record.state == "nothing" and not report.note:
                record = replace(record, state="published")
        return replace(record, tables=tuple(reports))

    # ---- one table ----------------------------------------------------------------------------------------------

    def _build(
        self, context: RunContext, table: Table | FilesTable, outcomes: list[Outcome]
    ) -> Callable[[], TableReport]:
        """Build a table; returns what checks it and reports."""
        self.branch_catalog.ensure_namespace(table.table_name.namespace)
        if self.request.light:
            report = self._build_light(table, outcomes)
        elif isinstance(table, Table):
            return self._build_on_spark(context, table)
        else:
            report = self._ingest(context, table, branch=self.branch)
        return lambda: report

    def _build_on_spark(self, context: RunContext, table: Table) -> Callable[[], TableReport]:
        with located(table.name, table.transform):
            finish = TableBuild(context, table).build()

        def checked() -> TableReport:
            with located(table.name, table.transform):
                return finish()

        return checked

    def _build_light(self, table: Table | FilesTable, outcomes: list[Outcome]) -> TableReport:
        if isinstance(table, FilesTable) or table.light is None:
            return TableReport(table.name, note="needs Spark")
        self.progress(table.name)
        settings = self.services.settings.get(self.pipeline.name, {})
        reads = BranchReads(self.services.tables.on(self.branch), self.services.duckdb, max_rows=inf)
        build = LightBuild(self.branch_catalog, reads, table, settings, self.commit, self.now, outcomes)
        with located(table.name, table.light):
            return build.run()

    def _ingest(self, context: RunContext, table: FilesTable, branch: str) -> TableReport:
        # Imported here: only tables of files need it, and it takes longer than to find that there is nothing to do.
        from lakehouse.core.errors import EmptyGlobError, NoDataFilesError

        settings = self.services.settings.get(self.pipeline.name, {})
        folder = settings.get(table.folder, "")
        if not folder:
            raise BadSettingError(
                f"sources.{self.pipeline.name}.{table.folder} is not set, so there is no folder to watch.",
                f"Set it in lake.toml, or LAKE_SOURCES__{self.pipeline.name.upper()}__{table.folder.upper()}.",
            )
        self.progress(f"{table.name}: {folder}")
        started = now()
        try:
            done = self.services.ingester(branch).run(IngestRequest((folder,), table.table_name, **table.options))
        except (NoDataFilesError, EmptyGlobError):
            self.progress(f"{table.name}: no files in {folder} yet")
            return TableReport(table.name, note="nothing new")
        if done.files and table.checks:
            checked = SparkCheckContext(context.rows_of(table.name), context.rows_of, {}, None, self.now)
            outcomes = run_checks(table.name, table.checks, checked)
            context.outcomes.extend(outcomes)
            raise_if_blocked(self.record.id, outcomes)
        seconds = round((now() - started).total_seconds(), 2)
        note = "" if done.files else "nothing new"
        return TableReport(table.name, (), done.inserted + done.updated, done.rejected, done.snapshot, seconds, note)

    # ---- Spark --------------------------------------------------------------------------------------------------

    def _context(self, stack: ExitStack) -> RunContext:
        tables = self.services.tables.on(self.branch)
        session = LazySession(partial(self._open_session, stack), job_group())

        def rows_of(name: str) -> DataFrame:
            table = TableName.parse(name)
            table_format = tables.format_of(table)
            for statement in spark_tables(table_format).setup(table):
                session().sql(statement)
            return session().sql(f"SELECT * FROM {spark_tables(table_format).rows(table)}")

        return RunContext(
            pipeline=self.pipeline,
            run=self.record.id,
            author=self.commit.author,
            message=self.record.message,
            requested=self.request.partitions,
            named=self.request.tables,
            accepts_code=self.request.accept_code,
            tables=tables,
            session=session,
            iceberg=tables.formats["iceberg"],
            rows_of=rows_of,
            reads=BranchReads(tables, self.services.duckdb),
            source_context=partial(self._source_context, session),
            annotate=self._annotate,
            note=self._note,
            pointer=self.branch_catalog.pointer,
            now=self.now,
            progress=self.progress,
        )

    def _open_session(self, stack: ExitStack) -> SparkSession:
        self.progress("Starting Spark")
        self.services.duckdb.begin()  # for the small reads that follow
        conf = {**self.branch_catalog.spark_conf(), **validate.SESSION}
        return stack.enter_context(self.services.session(conf, self.request.isolated))

    def _source_context(self, open_spark: Callable[[], SparkSession], partition: str, cursor: str) -> SourceContext:
        services, settings = self.services, self.services.settings.get(self.pipeline.name, {})
        store = services.store(settings)
        return SourceContext(open_spark, settings, partition, self.now, services.raw, store, cursor, self.progress)

    def _annotate(self, table: TableName, notes: dict[str, str], start: str | None) -> None:
        annotate(self.branch_catalog, table, notes, start, self.services.files)

    def _note(self, table: TableName, notes: dict[str, str]) -> None:
        add_notes(self.branch_catalog, table, notes, self.services.files)


class Preview(Attempt):
    """What a run would build, from the state of main; it creates no branch and writes nothing."""

    def __init__(
        self, services: RunServices, pipeline: Pipeline, request: RunRequest, progress: Callable[[str], None]
    ) -> None:
        self.services, self.pipeline, self.request, self.progress = services, pipeline, request, progress
        self.branch, self.branch_catalog, self.now = MAIN, services.catalog, now()
        self.record = RunRecord("", pipeline.name, "running", MAIN, self.now.isoformat())
        self.commit = _commit(pipeline, self.record)

    def plans(self) -> list[TablePlan]:
        """The plan of each table; a table that is rebuilt counts as changed for those that read it."""
        plans = []
        with ExitStack() as stack:
            context = self._context(stack)
            for table in self.pipeline.select(self.request.tables):
                if isinstance(table, Table):
                    planned = PartitionPlan(context, table, context.lineage(table.name)).plan()
                else:
                    planned = TablePlan(table.name, reason=NEW_FILES)
                plans.append(planned)
                if not planned.is_empty and isinstance(table, Table):
                    context.built[table.name] = tuple(planned.partitions)
        return plans


class _Reports:
    """The reports and outcomes of a run so far, saved after each table, also by several threads."""

    def __init__(self, attempt: Attempt, context: RunContext, order: Sequence[str]) -> None:
        self._attempt, self._context = attempt, context
        self._order = {name: position for position, name in enumerate(order)}
        self._lock = threading.Lock()
        self._reports = {report.table: report for report in attempt.record.tables}
        self._finished: set[str] = set()
        self._tell = reporter()
        self.outcomes = [outcome for outcome in attempt.record.outcomes if outcome.table in self._reports]
        """Those of an earlier attempt, and of tables built without Spark."""

    def add(self, report: TableReport) -> None:
        """Add a table's report. If a resumed run has nothing new for it, the report of the earlier attempt stays."""
        if report.note not in ("nothing new", "code accepted") or report.table not in self._reports:
            self._reports[report.table] = report
        self._finished.add(report.table)
        self._tell(len(self._finished), len(self._order), "tables")

    def save(self) -> None:
        """Write the record, with tables in their declared order."""
        with self._lock:
            unsorted = [*self.outcomes, *self._context.outcomes]
            tables = sorted(self._reports.values(), key=lambda report: self._position(report.table))
            outcomes = sorted(unsorted, key=lambda outcome: self._position(outcome.table))
            record = replace(self._attempt.record, tables=tuple(tables), outcomes=tuple(outcomes))
            self._attempt.record = self._attempt.services.log.save(record)

    def _position(self, table: str) -> int:
        return self._order.get(table, len(self._order))


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


def now() -> datetime:
    return datetime.now(UTC)
