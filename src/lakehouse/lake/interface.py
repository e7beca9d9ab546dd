"""What a lake on this machine and a lake behind a service have in common: keywords become typed requests here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from lakehouse.core.errors import NotSupportedError
from lakehouse.core.names import MAIN, TableName
from lakehouse.core.requests import DiffRequest, IngestRequest, QueryRequest, ReadOptions, RunRequest
from lakehouse.core.result import Result

if TYPE_CHECKING:
    import pyarrow

    from lakehouse.ingest.report import IngestReport
    from lakehouse.pipelines import Pipeline
    from lakehouse.runs.model import RunRecord
    from lakehouse.tables.diff import Diff

Progress = Callable[[str], None]


def silent(text: str) -> None:
    """Report no progress."""


def check_runs_from_main(branch: str) -> None:
    """Refuse a run on a lake of a branch: it would read main and publish to main."""
    if branch and branch.lower() != MAIN:
        raise NotSupportedError(
            f"A run starts from main, on a branch of its own, and not from {branch}.",
            "Leave the branch out; to leave main as it is: publish=False, or --no-publish.",
        )


class LakeInterface(ABC):
    """A lake, wherever it is. `Lake` is one of this machine; `RemoteLake` sends its calls to a service."""

    # ---- typed requests -----------------------------------------------------------------------------------------

    @abstractmethod
    def query(self, request: QueryRequest, engine: str | None = None) -> Result:
        """Run a typed request; `sql` builds one."""

    @abstractmethod
    def compare(self, request: DiffRequest) -> Diff:
        """Run a typed request; `diff` builds one."""

    @abstractmethod
    def ingest_files(self, request: IngestRequest) -> IngestReport:
        """Run a typed request; `ingest` builds one."""

    @abstractmethod
    def _ingest_rows_file(self, file: Path, request: IngestRequest) -> IngestReport:
        """Ingest the file that `ingest_rows` has written; the request names it."""

    @abstractmethod
    def run_pipeline(self, pipeline: str | Pipeline, request: RunRequest, progress: Progress = silent) -> RunRecord:
        """Run a typed request; `run` builds one."""

    @abstractmethod
    def close(self) -> None:
        """Release what this process opened."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- SQL and tables -----------------------------------------------------------------------------------------

    def sql(  # noqa: PLR0913 - one keyword per field of QueryRequest
        self,
        query: str,
        *,
        engine: str | None = None,
        as_of: str = "",
        limit: int | None = None,
        explain: bool = False,
        branch: str = "",
        parameters: Mapping[str, str | int | float | bool | None] | None = None,
    ) -> Result:
        """Run one statement of Spark SQL.

        Args:
            query: the statement. Reads run on DuckDB in this process where that is faster, everything else on Spark.
            engine: `auto`, `duckdb`, `spark`, `trino` or an installed engine (default: the setting query.engine).
            as_of: read every table as of this WHEN, unless the statement has its own AS OF.
            limit: maximum number of rows (default: all).
            explain: also report how the statement ran, in `result.explain`.
            branch: the branch to use (default: this lake's).
            parameters: values of the markers `:name` in the statement; they are bound, never written into its text.

        >>> result = lake.sql("select name, score from crm.leads where score > :least", parameters={"least": 60})
        >>> sorted(result.rows())
        [('Ada', 70), ('Cy', 95)]
        """
        request = QueryRequest(query, as_of, limit, explain, branch=branch, parameters=parameters or {})
        return self.query(request, engine)

    def travel(self, name: str, when: str, limit: int | None = None) -> Result:
        """The rows of a table as of a WHEN.

        >>> first = lake.history("crm.leads")[0]
        >>> sorted(lake.travel("crm.leads", first.id).rows())
        [(1, 'Ada', 70), (2, 'Bo', 40), (3, 'Cy', 90)]
        """
        parsed = TableName.parse(name)
        return self.sql(f"SELECT * FROM {parsed}", as_of=when, limit=limit)

    def diff(self, name: str, start: str, end: str = "", key: Sequence[str] = (), limit: int = 1000) -> Diff:
        """The rows and columns that changed between two WHENs (`end` defaults to now).

        >>> change = lake.diff("crm.leads", lake.history("crm.leads")[0].id, key=["id"])
        >>> change.added, change.removed, change.changed
        (0, 0, 1)
        """
        return self.compare(DiffRequest(TableName.parse(name), start, end, key, limit))

    # ---- files and pipelines ------------------------------------------------------------------------------------

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
            sources: files, globs and folders, local or s3://, of CSV, TSV, JSON, Parquet or Excel, plain or compressed. To a
                service, local files are uploaded, and it reads s3:// addresses below its serve.roots itself.
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

        >>> _ = Path("more.csv").write_text("id,name,score\\n3,Cyd,96\\n4,Di,20\\n")
        >>> report = lake.ingest("more.csv", into="crm.leads", key=["id"])
        >>> report.inserted, report.updated
        (1, 1)
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

    def ingest_rows(  # noqa: PLR0913 - one keyword per option
        self,
        rows: Iterable[Mapping[str, Any]] | pyarrow.Table,
        into: str,
        *,
        mode: str = "",
        key: Sequence[str] = (),
        order_by: str = "",
        contract: str = "evolve",
        idempotency_key: str = "",
        branch: str = "",
    ) -> IngestReport:
        """Ingest rows at once; the table is created if missing. Equal rows are ingested as often as they come.

        Spark is used only where it must be: for a Hudi table, one that is partitioned by bucket or truncate or sorted, and
        to change the type of a column.

        Args:
            rows: dicts, or an Arrow table.
            idempotency_key: rows with the same key are ingested once into a table, whatever they are.

        >>> report = lake.ingest_rows([{"id": 4, "name": "Di", "score": 20}], into="crm.leads", key=["id"])
        >>> report.inserted, report.updated
        (1, 0)
        """
        from lakehouse.ingest.rows import rows_file, rows_identity

        with rows_file(rows) as file:
            return self._ingest_rows_file(
                file,
                IngestRequest(
                    (str(file),),
                    TableName.parse(into),
                    mode=mode,
                    key=tuple(key),
                    order_by=order_by,
                    contract=contract,
                    branch=branch,
                    names={str(file): file.name},
                    light=True,
                    identity=rows_identity(idempotency_key),
                ),
            )

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
        progress: Progress = silent,
    ) -> RunRecord:
        """Run a pipeline as a transaction: on a branch of its own, checked, published to all tables at once.

        Args:
            pipeline: its name, or its declaration.
            partitions: rebuild these (default: those whose source is new or has changed).
            tables: build only these tables (default: all).
            publish: False keeps the branch and leaves main unchanged.
            light: build without Spark, for tables that can be built so.
            id: makes the run idempotent: a run that was published under this id is not done again, unless it was reverted.
            author: commit author (default: OS user); a service refuses it and records the owner of the key.
            message: commit message.
            progress: called with each step.

        >>> def best(leads):
        ...     'Leads with a high score.'
        ...     return leads.where("score >= 70")
        >>> record = lake.run(Pipeline("best", [Table("crm.best", best, inputs=["crm.leads"])]))
        >>> record.state, record.rows
        ('published', 2)
        """
        request = RunRequest(partitions, tuple(tables), publish, light, id, author, message)
        return self.run_pipeline(pipeline, request, progress)
