"""A lake: what `open_lake()` gives and every command works with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from lakehouse.core.engine import QueryRequest, SparkEngine
from lakehouse.core.names import MAIN, TableName
from lakehouse.core.result import Result
from lakehouse.core.tables import Snapshot, TableInfo
from lakehouse.lake.table import History, Table, described
from lakehouse.query.diff import Diff, DiffRequest, diff_table
from lakehouse.query.export import export_scan
from lakehouse.query.report import TableReport, report_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakehouse.engines.duckdb import DuckDB
    from lakehouse.engines.spark.session import LocalSession
    from lakehouse.ingest.model import Report
    from lakehouse.ingest.run import Ingester
    from lakehouse.pipelines import Pipeline
    from lakehouse.query.route import QueryRouter
    from lakehouse.query.tables import Tables
    from lakehouse.runs.branches import RunBranches
    from lakehouse.runs.model import RunRecord
    from lakehouse.runs.run import Runner
    from lakehouse.versioning.refs import Refs


@dataclass(frozen=True)
class Components:
    """The parts a lake is made of, as `assemble` put them together."""

    ingester: Callable[..., Ingester]
    runner: Callable[[], Runner]
    refs: Callable[[], Refs[RunBranches]]
    pipelines: Callable[[], Mapping[str, Pipeline]]
    folder: Path
    tables: Tables
    duckdb: DuckDB
    spark: SparkEngine
    queries: QueryRouter
    session: LocalSession
    default_engine: str
    arrow: bool


class Lake:
    """A lakehouse that is open. Use it as a context manager, or call `close()`.

    >>> with open_lake() as lake:
    ...     lake.sql("select count(*) from crm.leads").to_pandas()
    """

    def __init__(self, components: Components) -> None:
        self._components = components
        # Of one thread or task: `with lake.branch(…)` in one must not move what another reads.
        self._branch: ContextVar[str] = ContextVar("branch", default=MAIN)

    # ---- SQL ----------------------------------------------------------------------------------------------------

    def sql(
        self,
        query: str,
        *,
        engine: str | None = None,
        as_of: str = "",
        limit: int | None = None,
        explain: bool = False,
        branch: str = "",
    ) -> Result:
        """Run one statement of Spark SQL.

        Args:
            query: the statement. Reads run on DuckDB in this process where that is faster, the rest on Spark.
            engine: `auto`, `duckdb` or `spark`; the setting query.engine by default.
            as_of: read every table as of this WHEN, unless the statement says its own.
            limit: the most rows to give.
            explain: also tell how it was run, in `result.explain`.
            branch: where the tables are; `main` by default.
        """
        tables = self._tables(branch)
        here = "" if tables.branch == MAIN else tables.branch
        return self.answer(QueryRequest(query, as_of, limit, explain, self._components.arrow, here), engine)

    def answer(self, request: QueryRequest, engine: str | None = None) -> Result:
        """`sql` for those who have a QueryRequest already."""
        return self._components.queries.run(request, engine or self._components.default_engine)

    @property
    def spark(self) -> SparkSession:
        """A PySpark session in this process with the lake's catalogs, started on first use."""
        return self._components.session.spark

    def begin_spark(self) -> None:
        """Start that session in the background, if it will be needed soon anyway."""
        self._components.session.begin()

    # ---- files --------------------------------------------------------------------------------------------------

    def ingest(
        self, *sources: str | Path, into: str, dry_run: bool = False, branch: str = "", **options: Any
    ) -> Report:
        """Bring files into a table: one atomic commit, each file once.

        Args:
            sources: files, patterns and folders, here or in s3://, of CSV, TSV, JSON lines or Parquet, plain or compressed.
            into: the table; it is made if it is not there.
            dry_run: only tell what would be done.
            branch: where the table is; `main` by default.
            options: the fields of `lakehouse.ingest.model.IngestRequest`: mode, key, order_by, format, contract, …
        """
        from lakehouse.ingest.model import IngestRequest

        wanted = IngestRequest(tuple(str(source) for source in sources), TableName.parse(into), **options)
        tables = self._tables(branch)
        if not dry_run:
            tables.refuse_if_protected()
        return self._components.ingester("" if tables.branch == MAIN else tables.branch).run(wanted, dry_run)

    def export(self, name: str, file: str | Path, as_of: str = "", branch: str = "") -> int:
        """Write a table to a file: CSV, JSON lines, Parquet or Arrow, by the file's name. Says how many rows."""
        table, tables = TableName.parse(name), self._tables(branch)
        scan = tables.format_of(table).scan(table, tables.snapshot_at(table, as_of))
        return export_scan(self._components.duckdb, scan, Path(file))

    # ---- pipelines ----------------------------------------------------------------------------------------------

    def pipelines(self) -> Mapping[str, Pipeline]:
        """Every pipeline by its name: ours, and those of the modules that the settings name."""
        return self._components.pipelines()

    def run(
        self, pipeline: str | Pipeline, *partitions: str, say: Callable[[str], None] = lambda text: None, **asked: Any
    ) -> RunRecord:
        """Run a pipeline as a transaction: on a branch of its own, checked, published to all tables at once.

        Args:
            pipeline: its name, or a declaration that one holds.
            partitions: make these anew; none given: those whose source is new or has changed.
            say: called with a word on what is going on.
            asked: the other fields of `lakehouse.runs.model.RunRequest`: tables, publish, id, author.
        """
        from lakehouse.pipelines.registry import by_name
        from lakehouse.runs.model import RunRequest

        declared = by_name(self.pipelines(), pipeline) if isinstance(pipeline, str) else pipeline
        return self._components.runner().run(declared, RunRequest(partitions=partitions, **asked), say)

    def transact(
        self,
        name: str,
        work: Callable[[SparkSession, str], None],
        say: Callable[[str], None] = lambda text: None,
        **asked: Any,
    ) -> RunRecord:
        """Any work with Spark as a transaction: given a session whose tables are those of a branch, and the branch's name."""
        from lakehouse.runs.model import RunRequest

        return self._components.runner().transact(name, work, RunRequest(**asked), say)

    def runs(self) -> list[RunRecord]:
        """Every run that there was, the newest first."""
        return self._components.runner().records()

    def run_record(self, run: str) -> RunRecord:
        """What is known of a run, by its id or the beginning of it."""
        return self._components.runner().record(run)

    def resume(self, run: str, say: Callable[[str], None] = lambda text: None) -> RunRecord:
        """Go on with a run that failed or was killed: with what it had done, and what it had asked for."""
        from lakehouse.pipelines.registry import by_name
        from lakehouse.runs.recovery import asked_again

        record = self.run_record(run)
        return self._components.runner().run(by_name(self.pipelines(), record.pipeline), asked_again(record), say)

    # ---- branches -----------------------------------------------------------------------------------------------

    @contextmanager
    def branch(self, name: str) -> Iterator[Lake]:
        """Everything in the block reads and writes a branch, and nothing of it touches main.

        >>> with lake.branch("exp"):
        ...     lake.sql("delete from crm.leads where id = 7")
        """
        self._components.tables.on_existing(name)
        token = self._branch.set(name)
        try:
            yield self
        finally:
            self._branch.reset(token)

    def use_branch(self, name: str) -> None:
        """From here on read and write a branch, as `lake --branch` does."""
        self._branch.set(self._components.tables.on_existing(name).branch)

    def branches(self) -> list[str]:
        """The branches beside main."""
        return list(self._components.tables.branches())

    @property
    def refs(self) -> Refs[RunBranches]:
        """Branches, tags and the log: `lake.refs.branches.create("exp")`, `lake.refs.log.lines()`, …"""
        return self._components.refs()

    def _tables(self, branch: str = "") -> Tables:
        """The tables of the branch that is asked for, or of the one that is in use."""
        return self._components.tables.on_existing(branch or self._branch.get())

    # ---- tables -------------------------------------------------------------------------------------------------

    def tables(self) -> list[TableInfo]:
        """Every table of the lake; one that cannot be read says why in `problem`."""
        return [described(name, table_format) for name, table_format in self._tables().all()]

    def table(self, name: str) -> Table:
        """A handle on one table; NoSuchTableError names the nearest ones."""
        parsed = TableName.parse(name)
        self._tables().format_of(parsed)
        return Table(self, parsed)

    def describe(self, name: str) -> TableInfo:
        """Schema, partitioning, key and newest snapshot of a table."""
        return self._tables().describe(TableName.parse(name))

    # ---- time ---------------------------------------------------------------------------------------------------

    def history(self, name: str) -> History:
        """Every snapshot of a table, oldest first."""
        parsed = TableName.parse(name)
        return History(self._tables().format_of(parsed).history(parsed))

    def travel(self, name: str, when: str, limit: int | None = None) -> Result:
        """The table as it was at a WHEN."""
        parsed = TableName.parse(name)
        return self.sql(f"SELECT * FROM {parsed}", as_of=when, limit=limit)

    def diff(self, name: str, start: str, end: str = "", key: Sequence[str] = (), limit: int = 1000) -> Diff:
        """What changed between two WHENs; `end` is now unless given."""
        wanted = DiffRequest(TableName.parse(name), start, end, key, limit)
        return diff_table(self._tables(), self._components.duckdb, wanted)

    def report(self, name: str, start: str = "", end: str = "") -> TableReport:
        """How a table grew, snapshot by snapshot; `start` and `end` are two WHENs to compare, its first and last by default."""
        parsed = TableName.parse(name)
        return report_table(self._tables(), self._components.duckdb, parsed, start, end)

    def rollback(self, name: str, when: str) -> Snapshot:
        """Make a table what it was at a WHEN. Its history stays, so a rollback can be rolled back."""
        parsed = TableName.parse(name)
        table_format = self._tables().format_of(parsed)
        snapshot = self._tables().snapshot_at(parsed, when)
        self.sql(table_format.rollback_sql(parsed, snapshot), engine="spark")
        return next(each for each in table_format.history(parsed) if each.is_current)

    def drop(self, name: str) -> None:
        """Take a table out of the lake. Its files stay until maintenance, so `undrop` can bring it back."""
        self._tables().drop(TableName.parse(name))

    def undrop(self, name: str) -> TableInfo:
        """Bring back the table that was dropped last under that name."""
        parsed = TableName.parse(name)
        return self._tables().undrop(parsed).describe(parsed)

    def dropped(self) -> list[str]:
        """The tables that `undrop` could bring back."""
        return [str(name) for name in self._tables().dropped()]

    # ---- the lake itself ----------------------------------------------------------------------------------------

    @property
    def folder(self) -> Path:
        """Where the lake keeps what is on this machine."""
        return self._components.folder

    def close(self) -> None:
        """Let go of what this process opened. A warm Spark stays warm."""
        self._components.session.stop()

    def __enter__(self) -> Lake:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
