"""A lake: what `open_lake()` returns and every entry point calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from lakehouse.core.names import MAIN, TableName
from lakehouse.core.requests import IngestRequest, ReadOptions, RunRequest
from lakehouse.lake.tables import TableMethods

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import SparkSession

    from lakehouse.ingest.report import IngestReport
    from lakehouse.pipelines import Pipeline
    from lakehouse.runs.branches import RunBranches
    from lakehouse.runs.model import RunRecord
    from lakehouse.versioning.refs import Refs

Progress = Callable[[str], None]


def _silent(text: str) -> None:
    """Report no progress."""


class Lake(TableMethods):
    """An open lakehouse, on one branch. Use it as a context manager, or call `close()`.

    >>> with open_lake() as lake:
    ...     lake.sql("select count(*) from crm.leads").to_pandas()
    """

    @property
    def spark(self) -> SparkSession:
        """A PySpark session in this process with the lake's catalogs, started on first use."""
        return self._components.session.spark

    # ---- files --------------------------------------------------------------------------------------------------

    def ingest(  # noqa: PLR0913 - one keyword per field of IngestRequest
        self,
        *sources: str | Path,
        into: str,
        mode: str = "",
        key: Sequence[str] = (),
        order_by: str = "",
        format: str = "",
        contract: str = "evolve",
        partition_by: str = "",
        sort_by: str = "",
        force: bool = False,
        read: ReadOptions | None = None,
        dry_run: bool = False,
        branch: str = "",
    ) -> IngestReport:
        """Ingest files into a table: one atomic commit, each file once.

        Args:
            sources: files, globs and folders, local or s3://, of CSV, TSV, JSON lines or Parquet, plain or compressed.
            into: the table; it is created if missing.
            mode: append, upsert or replace (default: upsert with a key, else append).
            key: columns that identify a row.
            order_by: of several rows with one key, the highest value of this column wins (default: the last row).
            format: format of a new table (default: iceberg).
            contract: evolve, freeze or quarantine rows that do not fit the table's schema.
            partition_by: partition transforms of a new table, e.g. `days(ts)`.
            sort_by: sort order of a new table.
            force: ingest files again that were ingested before.
            read: how to read the files (default: detect).
            dry_run: report what would be done; write nothing.
            branch: the branch of the table (default: this lake's).
        """
        return self.ingest_files(
            IngestRequest(
                sources=tuple(str(source) for source in sources),
                table=TableName.parse(into),
                mode=mode,
                key=tuple(key),
                order_by=order_by,
                format=format,
                contract=contract,
                partition_by=partition_by,
                sort_by=sort_by,
                force=force,
                read=read or ReadOptions(),
                dry_run=dry_run,
                branch=branch,
            )
        )

    def ingest_files(self, request: IngestRequest) -> IngestReport:
        """Run a typed request; `ingest` builds one."""
        tables = self._tables(request.branch)
        if not request.dry_run:
            tables.check_writable()
        return self._components.ingester("" if tables.branch == MAIN else tables.branch).run(request)

    def ingest_rows(  # noqa: PLR0913 - one keyword per option
        self,
        rows: Iterable[Mapping[str, Any]] | pyarrow.Table,
        into: str,
        *,
        mode: str = "",
        key: Sequence[str] = (),
        order_by: str = "",
        contract: str = "evolve",
        force: bool = False,
        branch: str = "",
    ) -> IngestReport:
        """Ingest rows at once, without Spark; the table is created if missing. The same rows are ingested once.

        Args:
            rows: dicts, or an Arrow table.
            force: ingest rows again that were ingested before.
        """
        from lakehouse.ingest.rows import rows_file

        with rows_file(rows) as file:
            return self.ingest_files(
                IngestRequest(
                    (str(file),),
                    TableName.parse(into),
                    mode=mode,
                    key=tuple(key),
                    order_by=order_by,
                    contract=contract,
                    force=force,
                    branch=branch,
                    names={str(file): file.name},
                    light=True,
                )
            )

    def export(self, name: str, file: str | Path, as_of: str = "", branch: str = "") -> int:
        """Write a table to a CSV, JSON lines, Parquet or Arrow file, chosen by its suffix; returns the row count."""
        from lakehouse.query.export import export_scan

        table, tables = TableName.parse(name), self._tables(branch)
        scan = tables.format_of(table).scan(table, tables.snapshot_at(table, as_of))
        return export_scan(self._components.duckdb, scan, Path(file))

    # ---- pipelines ----------------------------------------------------------------------------------------------

    def pipelines(self) -> Mapping[str, Pipeline]:
        """Every pipeline by name: the built-in ones, and those of the modules that the settings name."""
        return self._components.pipelines()

    def run(  # noqa: PLR0913 - one keyword per field of RunRequest
        self,
        pipeline: str | Pipeline,
        *partitions: str,
        tables: Sequence[str] = (),
        publish: bool = True,
        light: bool = False,
        id: str = "",
        author: str = "",
        message: str = "",
        progress: Progress = _silent,
    ) -> RunRecord:
        """Run a pipeline as a transaction: on a branch of its own, checked, published to all tables at once.

        Args:
            pipeline: its name, or its declaration.
            partitions: rebuild these (default: those whose source is new or has changed).
            tables: build only these tables (default: all).
            publish: False keeps the branch and leaves main unchanged.
            light: build without Spark, for tables that can be built so.
            id: makes the run idempotent: a run that was published under this id is not done again.
            author: commit author (default: OS user).
            message: commit message.
            progress: called with each step.
        """
        request = RunRequest(partitions, tuple(tables), publish, light, id, author, message)
        return self.run_pipeline(pipeline, request, progress)

    def run_pipeline(self, pipeline: str | Pipeline, request: RunRequest, progress: Progress = _silent) -> RunRecord:
        """Run a typed request; `run` builds one."""
        from lakehouse.pipelines.registry import by_name

        declared = by_name(self.pipelines(), pipeline) if isinstance(pipeline, str) else pipeline
        return self._components.runner().run(declared, request, progress)

    def transact(
        self,
        name: str,
        work: Callable[[SparkSession, str], None],
        request: RunRequest | None = None,
        progress: Progress = _silent,
    ) -> RunRecord:
        """Run any Spark code as a transaction: `work` gets a session on a new branch, and the branch's name."""
        return self._components.runner().transact(name, work, request or RunRequest(), progress)

    def runs(self) -> list[RunRecord]:
        """Every run, newest first."""
        return self._components.runner().records()

    def run_record(self, run: str) -> RunRecord:
        """The record of a run, by its id or a unique prefix of it."""
        return self._components.runner().record(run)

    def resume(self, run: str, progress: Progress = _silent) -> RunRecord:
        """Continue a run that failed or was killed, from the tables it had finished."""
        from lakehouse.pipelines.registry import by_name
        from lakehouse.runs.recovery import resume_request

        record = self.run_record(run)
        return self._components.runner().run(
            by_name(self.pipelines(), record.pipeline), resume_request(record), progress
        )

    # ---- branches -----------------------------------------------------------------------------------------------

    def branch(self, name: str) -> Lake:
        """This lake on a branch: everything done with the returned lake stays on that branch.

        >>> with lake.branch("exp") as exp:
        ...     exp.sql("delete from crm.leads where id = 7")
        """
        return _BranchLake(self._components, self._components.tables.on_existing(name).branch)

    def branches(self) -> list[str]:
        """The branches besides main."""
        return list(self._components.tables.branches())

    @property
    def refs(self) -> Refs[RunBranches]:
        """Branches, tags and the log: `lake.refs.branches.create("exp")`, `lake.refs.log.lines()`, …"""
        return self._components.refs()

    # ---- the lake itself ----------------------------------------------------------------------------------------

    @property
    def folder(self) -> Path:
        """The lake's folder on this machine."""
        return self._components.folder

    def close(self) -> None:
        """Release what this process opened. The Spark daemon keeps running."""
        self._components.session.stop()
        self._components.attached.stop()

    def __enter__(self) -> Lake:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _BranchLake(Lake):
    """A lake on a branch, which shares its components with the lake it came from."""

    def close(self) -> None:
        """Nothing to release: the lake that it came from owns the session."""
