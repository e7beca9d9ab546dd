"""A lake: what `open_lake()` returns and every entry point calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from lakehouse.core.dataclass import dataclass
from lakehouse.core.engine import Engine
from lakehouse.core.errors import TableError
from lakehouse.core.format import spark_tables
from lakehouse.core.names import MAIN, TableName
from lakehouse.core.refs import Commit
from lakehouse.core.requests import DiffRequest, IngestRequest, MaintainRequest, QueryRequest, RunRequest
from lakehouse.core.result import Explain, ListedRows, Result
from lakehouse.core.tables import Column, Drop, Snapshot, TableInfo
from lakehouse.core.when import new_id
from lakehouse.lake.interface import LakeInterface, Progress, check_runs_from_main, silent
from lakehouse.lake.table import History, Table, describe_or_problem
from lakehouse.query.route import QueryRouter
from lakehouse.tables.directory import Tables

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import SparkSession

    from lakehouse.agent import AgentSettings
    from lakehouse.agent.answer import Answer
    from lakehouse.agent.ask import Asker, LakeReader
    from lakehouse.copies.backup import BackupReport
    from lakehouse.copies.clone import CloneReport
    from lakehouse.copies.findings import VerifyReport
    from lakehouse.copies.restore import CopyReport
    from lakehouse.core.inspection import MetadataFile, MetadataNode
    from lakehouse.engines.duckdb import DuckDB
    from lakehouse.engines.spark.session import LocalSession
    from lakehouse.ingest.report import IngestReport
    from lakehouse.ingest.run import Ingester
    from lakehouse.lake.copies import LakeCopies
    from lakehouse.lake.run_events import Observer
    from lakehouse.maintenance.health import TableHealth
    from lakehouse.maintenance.maintain import Maintainer
    from lakehouse.maintenance.report import MaintenanceReport
    from lakehouse.pipelines import Pipeline
    from lakehouse.query.route import CheckedStatement
    from lakehouse.runs.model import RunLogLine, RunRecord
    from lakehouse.runs.plan import TablePlan
    from lakehouse.runs.run import Runner
    from lakehouse.tables.diff import Diff
    from lakehouse.tables.report import TableReport
    from lakehouse.versioning.branches import Refs


#: Statements with one of these names may be calls of maintenance procedures.
_MAINTENANCE = re.compile(r"\b(?:rewrite_data_files|rewrite_manifests|expire_snapshots)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Components:
    """The parts that a lake is assembled from, by `lake.assemble`; what is rarely needed is built when it is first called for."""

    ingester: Callable[[str], Ingester]
    """Opens an ingester for the tables of a branch."""
    runner: Callable[[], Runner]
    observer: Callable[[], Observer]
    """Reports runs and ingests as events."""
    refs: Callable[[], Refs]
    maintainer: Callable[[], Maintainer]
    pipelines: Callable[[], Mapping[str, Pipeline]]
    copies: Callable[[], LakeCopies]
    folder: Path
    tables: Tables
    duckdb: DuckDB
    queries: QueryRouter
    session: LocalSession
    default_engine: str
    arrow: bool
    """Results are for programs; False saves loading Arrow."""
    time_zone: str
    semantics: Path
    """The file of the semantic layer, which need not exist."""
    agent: AgentSettings
    dbt_project: Path
    """The folder of the dbt project, which need not exist."""


class Lake(LakeInterface):
    """An open lakehouse, on one branch. Use it as a context manager, or call `close()`.

    >>> with open_lake(home="other") as other:
    ...     other.sql("select 1 + 1 as two").dicts()
    [{'two': 2}]
    """

    def __init__(self, components: Components, branch: str = MAIN) -> None:
        self._components = components
        self._branch = branch

    def _tables(self, branch: str = "") -> Tables:
        return self._components.tables.on_existing(branch or self._branch)

    @property
    def spark(self) -> SparkSession:
        """A PySpark session with the lake's catalogs: in the warm Spark if one stands by, else in a Spark of this process.

        Runs of this lake use the same Spark. Ask for it anew after a long pause: a Spark that has ended is replaced.

        >>> lake.spark.table("crm.leads").count()
        3
        """
        return self._components.session.spark

    # ---- SQL ----------------------------------------------------------------------------------------------------

    def query(self, request: QueryRequest, engine: str | None = None) -> Result:
        """Run a typed request; `sql` builds one. A call of a maintenance procedure on main does what `maintain` does.

        >>> lake.query(QueryRequest("select count(*) as leads from crm.leads")).dicts()
        [{'leads': 3}]
        """
        request = self._on_branch(request)
        if (done := self._maintenance_result(request)) is not None:
            return done
        return self._components.queries.run(request, engine or self._components.default_engine)

    def check(self, request: QueryRequest, engine: str | None = None) -> CheckedStatement:
        """Parse a statement, without running it: what it does and which tables it names; raises what the guard refuses.

        >>> checked = lake.check(QueryRequest("delete from crm.leads where id = 1"))
        >>> checked.statement.kind, [str(use.name) for use in checked.statement.uses]
        ('write', ['crm.leads'])
        """
        return self._components.queries.check(self._on_branch(request), engine or self._components.default_engine)

    def run_checked(self, checked: CheckedStatement) -> Result:
        """Run a statement that `check` returned; it is not parsed again.

        >>> lake.run_checked(lake.check(QueryRequest("select max(score) from crm.leads"))).rows()
        [(95,)]
        """
        if (done := self._maintenance_result(checked.request)) is not None:
            return done
        return self._components.queries.run_checked(checked)

    def _on_branch(self, request: QueryRequest) -> QueryRequest:
        branch = self._tables(request.branch).branch
        arrow = request.arrow and self._components.arrow
        return replace(request, branch="" if branch == MAIN else branch, arrow=arrow)

    def reading_with(self, engine: Engine) -> Self:
        """The same lake, with another engine in the place of DuckDB.

        >>> small = DuckDBEngine(DuckDB(memory_limit=500_000_000, spill=Path("spill")))
        >>> other = lake.reading_with(small)
        >>> other.sql("select count(*) from crm.leads").rows()
        [(3,)]
        """
        components = replace(self._components, queries=self._components.queries.reading_with(engine))
        return type(self)(components, self._branch)

    def _maintenance_result(self, request: QueryRequest) -> Result | None:
        """Run a call of a maintenance procedure on main as `maintain` does; None if the statement is another one."""
        if request.branch or not _MAINTENANCE.search(request.sql):
            return None
        from lakehouse.maintenance.procedures import parse_call

        call = parse_call(request.sql)
        if call is None:
            return None
        maintainer = self._components.maintainer()
        return _as_result(self.maintain_tables(call.request(maintainer.policy, maintainer.now())))

    # ---- questions ----------------------------------------------------------------------------------------------

    def ask(self, question: str, conversation: Sequence[str] = (), run: bool = True, write: bool = False) -> Answer:
        """Answer a question in plain words, or say why it cannot be answered; nothing is guessed and main is never changed.

        Args:
            question: as one types it, such as "revenue by payment type in January 2026".
            conversation: the questions before it, which it may refer to: "and by month?", "only cash".
            run: False reads the question and writes the statement, without running it.
            write: it asks for a change, such as "delete the leads in London", which is made on a new branch. The answer has the
                changed rows, and in `choices` the commands that merge or drop the branch.

        >>> lake.ask("how many leads").rows
        ((3,),)
        >>> lake.ask("how many unicorns").reason
        'I do not know the word "unicorns".'
        """
        if not write:
            return self.asker().ask(question, conversation, run)
        from lakehouse.lake.questions import check_may_change, local_writer

        check_may_change(self._branch)
        return self.asker().change(question, local_writer(self), run)

    def asker(self, reader: LakeReader | None = None, now: datetime | None = None) -> Asker:
        """What answers questions.

        Args:
            reader: reads the tables within the rights of a caller (default: this lake).
            now: the moment that "yesterday" refers to (default: now).

        >>> lake.asker().ask("highest score of leads", run=False).sql
        'SELECT max(score) AS max_score\\nFROM crm.leads'
        """
        from lakehouse.agent.ask import Clock
        from lakehouse.lake.questions import LocalReader, open_asker

        parts = self._components
        clock = Clock(parts.time_zone, now)
        return open_asker(
            reader or LocalReader(self), self.semantics_file, clock, parts.agent, lambda: parts.observer().model_used
        )

    @property
    def semantics_file(self) -> Path:
        """The file of the semantic layer, which need not exist.

        >>> lake.semantics_file.name
        'semantics.toml'
        """
        return self._components.semantics

    @property
    def dbt_project(self) -> Path:
        """The folder of the lake's dbt project, which need not exist.

        >>> lake.dbt_project.name
        'dbt'
        """
        return self._components.dbt_project

    # ---- tables -------------------------------------------------------------------------------------------------

    def tables(self, names: Sequence[str] | None = None) -> list[TableInfo]:
        """Every table, or those with these names; one that cannot be read has the reason in `problem`.

        >>> [(str(table.name), table.format, table.key) for table in lake.tables(["crm.leads"])]
        [('crm.leads', 'iceberg', ('id',))]
        """
        wanted, tables = None if names is None else set(names), self._tables()
        listed = [(name, form.name) for name, form in tables.all() if wanted is None or str(name) in wanted]
        with suppress(TableError):  # one that the catalog cannot read has its own problem below
            tables = tables.pinned([name for name, _ in listed])
        return [describe_or_problem(name, tables.formats[form]) for name, form in listed]

    def table_names(self) -> list[str]:
        """The names of all tables, sorted, without reading any of them.

        >>> "crm.leads" in lake.table_names()
        True
        """
        return list(self.table_formats())

    def table_formats(self) -> dict[str, str]:
        """The format of every table by its name, sorted, without reading any of them.

        >>> lake.table_formats()["crm.leads"]
        'iceberg'
        """
        return {str(name): table_format.name for name, table_format in self._tables().all()}

    def views(self) -> list[str]:
        """The names of all views, sorted. Spark creates and reads them; a branch has none.

        >>> lake.views()
        []
        """
        return [str(name) for name in self._tables().views()]

    def table(self, name: str) -> Table:
        """A handle on one table; NoSuchTableError suggests similar names.

        >>> lake.table("crm.leads").read(limit=1).names
        ['id', 'name', 'score']
        """
        parsed = TableName.parse(name)
        self._tables().format_of(parsed)
        return Table(self, parsed)

    def snapshot_at(self, name: str, when: str) -> str:
        """The id of a table's snapshot at a WHEN; empty for the current one.

        >>> lake.snapshot_at("crm.leads", "now") == lake.history("crm.leads")[-1].id
        True
        """
        return self._tables().snapshot_at(TableName.parse(name), when)

    def describe(self, name: str) -> TableInfo:
        """Schema, partitioning, key and current snapshot of a table.

        >>> [f"{column.name} {column.type}" for column in lake.describe("crm.leads").columns]
        ['id bigint', 'name string', 'score bigint']
        """
        return self._tables().describe(TableName.parse(name))

    def inspect(
        self, name: str, when: str = "", layer: str = "manifests", manifest: str = "", limit: int = 20
    ) -> MetadataNode:
        """The metadata of a table as a tree: what a commit wrote, file by file.

        Args:
            when: only the snapshot at this WHEN (default: the newest ones, and below the current one what it consists of).
            layer: how deep: `snapshots`, `manifests` or `files`. A Hudi table has file slices below its instants.
            manifest: only this manifest of the snapshot, by its path or the name of its file.
            limit: the most nodes of each layer; `left_out` of a node says how many are missing.

        >>> tree = lake.inspect("crm.leads", layer="files")
        >>> tree.kind, [child.kind for child in tree.children]
        ('metadata', ['schema', 'snapshot', 'snapshot'])
        >>> manifests = tree.children[1].children[0]
        >>> [(file.kind, file.facts["rows"]) for file in manifests.children[0].children][:1]
        [('data', 3)]
        """
        from lakehouse.core.inspection import InspectRequest
        from lakehouse.tables.inspect import inspect_table

        request = InspectRequest(layer, manifest=manifest, limit=limit)
        return inspect_table(self._tables(), TableName.parse(name), when, request)

    def inspect_file(self, name: str, path: str, when: str = "", manifest: str = "") -> MetadataFile:
        """The content of one file of a table's metadata as text; of a data file its footer. Other files are refused.

        Args:
            path: as `inspect` returns it, or the name of the file.
            when: the snapshot that a manifest or data file belongs to (default: the current one).
            manifest: the manifest that names a data file, which saves searching all of them.

        >>> file = lake.inspect_file("crm.leads", lake.inspect("crm.leads").path)
        >>> file.kind, '"table-uuid"' in file.text
        ('metadata', True)
        """
        from lakehouse.core.inspection import InspectRequest
        from lakehouse.tables.inspect import inspect_file

        return inspect_file(self._tables(), TableName.parse(name), path, when, InspectRequest(manifest=manifest))

    # ---- time ---------------------------------------------------------------------------------------------------

    def history(self, name: str) -> History:
        """Every snapshot of a table, oldest first.

        >>> [(snapshot.operation, snapshot.rows_total) for snapshot in lake.history("crm.leads")]
        [('append', 3), ('overwrite', 3)]
        """
        parsed = TableName.parse(name)
        return History(self._tables().format_of(parsed).history(parsed))

    def compare(self, request: DiffRequest) -> Diff:
        """Run a typed request; `diff` builds one.

        >>> first = lake.history("crm.leads")[0].id
        >>> lake.compare(DiffRequest(TableName.parse("crm.leads"), first, key=("id",))).changed
        1
        """
        from lakehouse.tables.diff import diff_table

        return diff_table(self._tables(), self._components.duckdb, request)

    def report(self, name: str, start: str = "", end: str = "") -> TableReport:
        """How a table grew, snapshot by snapshot, and what its rules and checks found, run by run.

        Two moments are compared; `start` and `end` default to the first and last snapshot.

        >>> report = lake.report("crm.leads")
        >>> [snapshot.rows_total for snapshot in report.snapshots]
        [3, 3]
        """
        from lakehouse.runs.records import quality_runs
        from lakehouse.tables.report import report_table

        parsed = TableName.parse(name)
        quality = quality_runs(self.runs(), str(parsed))
        return report_table(self._tables(), self._components.duckdb, parsed, start, end, quality)

    def rollback(self, name: str, when: str) -> Snapshot:
        """Restore a table to a WHEN. Its history stays, so a rollback can be rolled back.

        >>> restored = lake.rollback("crm.leads", lake.history("crm.leads")[0].id)
        >>> lake.sql("select score from crm.leads where name = 'Cy'").rows()
        [(90,)]
        """
        parsed = TableName.parse(name)
        table_format = self._tables().format_of(parsed)
        snapshot = self._tables().snapshot_at(parsed, when)
        statement = spark_tables(table_format).rollback_sql(parsed, snapshot)
        catalog = self._components.refs().branches.catalog.on(self._branch)
        before = catalog.pointer(parsed)
        self.sql(statement, engine="spark")
        if statement.startswith("CALL"):  # an INSERT is logged by its engine
            catalog.record_statement(parsed, before, Commit("rollback", message=f"{name} to snapshot {snapshot}"))
        return next(snapshot for snapshot in table_format.history(parsed) if snapshot.is_current)

    def drop(self, name: str) -> None:
        """Drop a table softly: its files stay until maintenance, so `undrop` can restore it.

        >>> lake.drop("crm.leads")
        >>> "crm.leads" in lake.table_names()
        False
        """
        self._tables().drop(TableName.parse(name))

    def undrop(self, name: str, drop: str = "") -> TableInfo:
        """Restore the table that was dropped last under a name, or by the drop of an id (`drops` lists them).

        >>> lake.drop("crm.leads")
        >>> str(lake.undrop("crm.leads").name)
        'crm.leads'
        """
        parsed = TableName.parse(name)
        return self._tables().undrop(parsed, drop).describe(parsed)

    def dropped(self) -> list[str]:
        """The tables that `undrop` can restore.

        >>> lake.drop("crm.leads")
        >>> "crm.leads" in lake.dropped()
        True
        """
        return [str(name) for name in self._tables().dropped()]

    def drops(self) -> list[Drop]:
        """All that `undrop` can restore: table, id and time of each drop, so that of two tables of one name either can be restored.

        >>> lake.drop("crm.leads")
        >>> drop = max((drop for drop in lake.drops() if str(drop.table) == "crm.leads"), key=lambda drop: drop.at)
        >>> str(lake.undrop("crm.leads", drop.id).name)
        'crm.leads'
        """
        return self._tables().drops()

    # ---- files ---------------------------------------------------------------------------------------------------

    def ingest_files(self, request: IngestRequest) -> IngestReport:
        """Run a typed request; `ingest` builds one.

        >>> _ = Path("more.csv").write_text("id,name,score\\n4,Di,20\\n")
        >>> request = IngestRequest(("more.csv",), TableName.parse("crm.leads"), key=("id",))
        >>> lake.ingest_files(request).inserted
        1
        """
        return self._ingest(request, lambda ingester: ingester.run(request))

    def _ingest_rows_file(self, file: Path, request: IngestRequest) -> IngestReport:
        from lakehouse.core.errors import NeedsSparkError

        def run(ingester: Ingester) -> IngestReport:
            try:
                return ingester.run(request)
            except NeedsSparkError:  # nothing was written
                return ingester.run(replace(request, light=False))

        return self._ingest(request, run)

    def _ingest(self, request: IngestRequest, work: Callable[[Ingester], IngestReport]) -> IngestReport:
        tables = self._tables(request.branch)
        branch = "" if tables.branch == MAIN else tables.branch
        ingester = self._components.ingester(branch)
        if request.dry_run:
            return work(ingester)
        tables.check_writable()
        observed = replace(request, branch=branch)
        return self._components.observer().ingest(observed, new_id(), lambda: work(ingester))

    def export(self, name: str, file: str | Path, as_of: str = "", branch: str = "") -> int:
        """Write a table to a CSV, JSON lines, Parquet or Arrow file, chosen by its suffix; returns the row count.

        >>> lake.export("crm.leads", "leads.csv")
        3
        >>> Path("leads.csv").read_text().splitlines()[0]
        'id,name,score'
        """
        from lakehouse.tables.export import export_scan

        table, tables = TableName.parse(name), self._tables(branch)
        scan = tables.format_of(table).scan(table, tables.snapshot_at(table, as_of))
        return export_scan(self._components.duckdb, scan, Path(file))

    # ---- pipelines ----------------------------------------------------------------------------------------------

    def pipelines(self) -> Mapping[str, Pipeline]:
        """Every pipeline by name: the built-in ones, and those of the modules that the settings name.

        >>> sorted(lake.pipelines())
        ['files', 'market', 'social', 'taxi']
        """
        return self._components.pipelines()

    def run_pipeline(self, pipeline: str | Pipeline, request: RunRequest, progress: Progress = silent) -> RunRecord:
        """Run a typed request; `run` builds one.

        >>> def best(leads):
        ...     return leads.where("score >= 70")
        >>> pipeline = Pipeline("best", [Table("crm.best", best, inputs=["crm.leads"])])
        >>> lake.run_pipeline(pipeline, RunRequest(publish=False, message="try it")).state
        'kept'
        """
        return self._run_observed(self._declared(pipeline), request, progress)

    def plan(self, pipeline: str | Pipeline, request: RunRequest | None = None) -> list[TablePlan]:
        """What a run would rebuild, table by table, and why; nothing is changed.

        >>> def best(leads):
        ...     return leads.where("score >= 70")
        >>> pipeline = Pipeline("best", [Table("crm.best", best, inputs=["crm.leads"])])
        >>> [(plan.table, plan.reason) for plan in lake.plan(pipeline)]
        [('crm.best', 'not built yet')]
        """
        return self._components.runner().plan(self._declared(pipeline), request or RunRequest())

    def _declared(self, pipeline: str | Pipeline) -> Pipeline:
        from lakehouse.pipelines.registry import by_name

        return by_name(self.pipelines(), pipeline) if isinstance(pipeline, str) else pipeline

    def _run_observed(
        self,
        pipeline: Pipeline,
        request: RunRequest,
        progress: Progress,
        work: Callable[[SparkSession, str], None] | None = None,
    ) -> RunRecord:
        """Run a pipeline, or `work` under its name."""
        check_runs_from_main(self._branch)
        runner, identified = self._components.runner(), replace(request, id=request.id or new_id())

        def run(noted: Progress) -> RunRecord:
            if work is not None:
                return runner.transact(pipeline.name, work, identified, noted)
            return runner.run(pipeline, identified, noted)

        return self._components.observer().run(pipeline, identified, run, progress)

    def transact(
        self,
        name: str,
        work: Callable[[SparkSession, str], None],
        request: RunRequest | None = None,
        progress: Progress = silent,
    ) -> RunRecord:
        """Run any Spark code as a transaction: `work` gets a session on a new branch, and the branch's name.

        >>> def raise_scores(spark, branch):
        ...     spark.sql("update crm.leads set score = score + 1")
        >>> lake.transact("scores", raise_scores).state
        'published'
        """
        from lakehouse.pipelines import Pipeline

        return self._run_observed(Pipeline(name, ()), request or RunRequest(), progress, work)

    def runs(self) -> list[RunRecord]:
        """Every run, newest first.

        >>> [record.id for record in lake.runs() if record.state == "failed"]
        []
        """
        return self._components.runner().records()

    def run_record(self, run: str) -> RunRecord:
        """The record of a run, by its id or a unique prefix of it.

        >>> def best(leads):
        ...     return leads.where("score >= 70")
        >>> record = lake.run(Pipeline("best", [Table("crm.best", best, inputs=["crm.leads"])]))
        >>> lake.run_record(record.id).tables[0].rows
        2
        """
        return self._components.runner().record(run)

    def run_log(self, run: str) -> list[RunLogLine]:
        """The log of a run, oldest line first: its steps, and what Spark logged from its start to its end.

        Spark's log does not say for which run a line is: of two runs at the same time, each shows the lines of both.

        >>> def best(leads):
        ...     return leads.where("score >= 70")
        >>> record = lake.run(Pipeline("best", [Table("crm.best", best, inputs=["crm.leads"])]))
        >>> [line.source for line in lake.run_log(record.id) if line.source != "spark"][0]
        'run_started'
        """
        from lakehouse.lake.run_log import run_log

        return run_log(self.run_record(run), self._components.observer().log, self.folder / "logs" / "spark.log")

    def resume(self, run: str, progress: Progress = silent) -> RunRecord:
        """Continue a run that failed or was killed, from the tables it had finished.

        >>> try:
        ...     lake.resume("20260101_000000_000ab12")
        ... except LakeError as error:
        ...     print(error.code)
        no_such_run
        """
        from lakehouse.runs.recovery import resume_request

        record = self.run_record(run)
        return self._run_observed(self._declared(record.pipeline), resume_request(record), progress)

    # ---- branches -----------------------------------------------------------------------------------------------

    def branch(self, name: str) -> Lake:
        """This lake on a branch: everything done with the returned lake stays on that branch.

        >>> lake.refs.branches.create("trial")
        'trial'
        >>> with lake.branch("trial") as trial:
        ...     trial.ingest_rows([{"id": 4, "name": "Di", "score": 20}], into="crm.leads", key=["id"]).inserted
        ...     trial.sql("select count(*) from crm.leads").rows()
        1
        [(4,)]
        >>> lake.sql("select count(*) from crm.leads").rows()
        [(3,)]
        """
        return _BranchLake(self._components, self._components.tables.on_existing(name).branch)

    def branches(self) -> list[str]:
        """The branches besides main.

        >>> lake.refs.branches.create("trial")
        'trial'
        >>> "trial" in lake.branches()
        True
        """
        return list(self._components.tables.branches())

    @property
    def refs(self) -> Refs:
        """Branches, tags and the log: `lake.refs.branches.create("exp")`, `lake.refs.log.lines()`, …

        >>> lake.refs.branches.create("trial")
        'trial'
        >>> lake.refs.log.lines(limit=1)[0].tables
        ('crm.leads',)
        """
        return self._components.refs()

    # ---- maintenance ---------------------------------------------------------------------------------------------

    def health(self, *tables: str, deep: bool = False) -> list[TableHealth]:
        """The score of tables from 0 to 100 with reasons, the worst first.

        Args:
            tables: default: all tables.
            deep: also read manifests and list files: partitions, sort order, bytes by what holds them.

        >>> [(health.table, health.files, health.problem) for health in lake.health("crm.leads")]
        [('crm.leads', 1, '')]
        """
        maintainer = self._components.maintainer()
        names = tuple(TableName.parse(name) for name in tables)
        known = self._tables().pinned(names)  # one read of the catalog for all of them
        for name in names:
            known.format_of(name)
        healths = maintainer.health().tables(names)
        return maintainer.deepened(healths) if deep else healths

    def maintain(
        self,
        *tables: str,
        dry_run: bool = False,
        only: Sequence[str] = (),
        progress: Progress = silent,
    ) -> MaintenanceReport:
        """Compact tables, expire their old snapshots, and remove files that nothing needs.

        Args:
            tables: default: all tables that their policies enable.
            dry_run: report what would be done; change nothing.
            only: some of the steps compact, rewrite_manifests, expire, remove_files (default: all).
            progress: called with each step.

        >>> lake.maintain("crm.leads", dry_run=True).dry_run
        True
        """
        names = tuple(TableName.parse(name) for name in tables)
        return self.maintain_tables(MaintainRequest(names, dry_run, tuple(only)), progress)

    def maintain_tables(self, request: MaintainRequest, progress: Progress = silent) -> MaintenanceReport:
        """Run a typed request; `maintain` builds one.

        >>> lake.maintain_tables(MaintainRequest((TableName.parse("crm.leads"),), dry_run=True)).actions
        ()
        """
        return self._components.maintainer().run(request, progress)

    # ---- copies -------------------------------------------------------------------------------------------------

    def backup(self, dest: str | Path, full: bool = False, progress: Progress = silent) -> BackupReport:
        """Back the lake up to a folder or s3://bucket/prefix, while writers work. What is there is not copied again.

        Args:
            full: read every file again, also those that an earlier backup holds.

        >>> report = lake.backup("backups")
        >>> report.files == report.copied_files
        True
        """
        return self._components.copies().backup(dest, full, progress)

    def verify(
        self, *tables: str, deep: bool = False, against: str | Path = "", progress: Progress = silent
    ) -> VerifyReport:
        """Check every file and ref of the lake, or of some tables; nothing is changed.

        Args:
            deep: also read all data.
            against: also compare with the newest backup in this folder or bucket.

        >>> report = lake.verify("crm.leads", deep=True)
        >>> report.findings, report.tables
        ((), 1)
        """
        return self._components.copies().verify(tables, deep, against, progress)

    def clone(self, home: str | Path, from_ref: str = MAIN) -> CloneReport:
        """Create a lake in another folder that shares this lake's data files and never changes them.

        >>> lake.clone("copy").tables >= 1
        True
        """
        return self._components.copies().clone(home, from_ref)

    def migrate(self, profile: str, progress: Progress = silent) -> CopyReport:
        """Copy an embedded lake to the servers of another profile, with its history, branches and tags.

        >>> try:
        ...     lake.migrate("warehouse")
        ... except LakeError as error:
        ...     print(error.message, error.hint)
        Invalid value for --to-profile: 'warehouse'. Choose one of: hive, rest, sql, stack.
        """
        return self._components.copies().migrate(profile, progress)

    # ---- the lake itself ----------------------------------------------------------------------------------------

    @property
    def folder(self) -> Path:
        """The lake's folder on this machine.

        >>> (lake.folder / "warehouse").is_dir()
        True
        """
        return self._components.folder

    def close(self) -> None:
        """Release what this process opened. The Spark daemon keeps running.

        >>> other = open_lake(home="other")
        >>> other.close()
        """
        self._components.session.stop()


class _BranchLake(Lake):
    """A lake on a branch, which shares its components with the lake it came from."""

    def close(self) -> None:
        """Nothing to release: the lake that it came from owns the session."""


def _as_result(report: MaintenanceReport) -> Result:
    """Return the actions of a maintenance as the rows of a statement."""
    names = {"action": "string", "state": "string", "files_before": "int", "files_after": "int", "bytes": "bigint"}
    names |= {"snapshots": "int", "detail": "string"}
    rows = [tuple(getattr(action, name) for name in names) for action in report.actions]
    columns = tuple(Column(name, kind) for name, kind in names.items())
    return Result(columns, ListedRows(list(names), rows), Explain("maintenance", "as lake maintain does it"))
