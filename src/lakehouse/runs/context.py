"""What the tables of one run share: the parts of the lake it works with, its state, and the rows of its sources."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from datetime import datetime
from typing import TYPE_CHECKING

from lakehouse.core.catalog import Catalog
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import SourceError
from lakehouse.core.files import LOCAL, Files, RemoteFiles
from lakehouse.core.format import TableFormat, spark_tables
from lakehouse.core.names import TableName
from lakehouse.core.tables import Snapshot
from lakehouse.pipelines.model import Batch, Pipeline, Source, SourceContext, Table
from lakehouse.pipelines.partitions import with_neighbours
from lakehouse.quality.model import Outcome
from lakehouse.runs.lineage import lineage
from lakehouse.runs.reads import BranchReads, Part
from lakehouse.runs.records import RunLog
from lakehouse.storage.raw import RawArea
from lakehouse.tables.directory import Tables
from lakehouse.tables.spark import in_partitions
from lakehouse.tables.write import PartitionKeys
from lakehouse.versioning.publish import Publisher

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakehouse.engines.duckdb import DuckDB
    from lakehouse.ingest.run import Ingester


class LazySession:
    """Opens the session of a run when something first needs it: a run with nothing to do starts no JVM."""

    def __init__(self, open_session: Callable[[], SparkSession], group: str) -> None:
        """
        Args:
            group: the job group of this process: the JVM may run jobs of others, too.
        """
        self._open, self._group, self._lock = open_session, group, threading.Lock()
        self._session: SparkSession | None = None
        self._threads = threading.local()

    def __call__(self) -> SparkSession:
        with self._lock:  # tables are built by several threads
            if self._session is None:
                self._session = self._open()
        context = getattr(self._session, "_sc", None)  # Spark Connect has none
        if context is not None and not hasattr(self._threads, "grouped"):
            context.setJobGroup(self._group, self._group, interruptOnCancel=True)
            self._threads.grouped = True
        return self._session

    def cancel(self) -> None:
        """Cancel the jobs of the session, if there is one."""
        session = self._session
        if session is None:
            return
        context = getattr(session, "_sc", None)
        if context is not None:
            context.cancelJobGroup(self._group)
        else:
            session.interruptAll()


@dataclass
class RunContext:
    """A run in progress: its session, the tables of its branch, and the outcomes of rules and checks so far."""

    pipeline: Pipeline
    run: str
    author: str
    message: str
    requested: tuple[str, ...]
    """Partitions that the user requested; empty: those whose source changed."""
    named: tuple[str, ...]
    """Tables that the user requested; empty: all."""
    accepts_code: bool
    """Changed code needs no rebuild."""
    tables: Tables
    """The tables of the run's branch."""
    session: LazySession
    iceberg: TableFormat
    """The Iceberg tables of the run's branch."""
    rows_of: Callable[[str], DataFrame]
    """Reads any table of the lake from the run's branch."""
    reads: BranchReads
    source_context: Callable[[str, str], SourceContext]
    """What a source gets to read a partition after a cursor."""
    annotate: Callable[[TableName, dict[str, str], str | None], None]
    """Adds properties to the snapshots of a table since the given metadata pointer."""
    note: Callable[[TableName, dict[str, str]], None]
    """Adds properties to the current snapshot of a table, which may be published."""
    pointer: Callable[[TableName], str | None]
    now: datetime
    progress: Callable[[str], None]
    outcomes: list[Outcome] = field(default_factory=list)
    built: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The partitions of each table that this run has rebuilt."""

    @property
    def spark(self) -> SparkSession:
        return self.session()

    def table(self, name: str) -> Table | None:
        """A table that the pipeline declares; None for any other."""
        table = next((table for table in self.pipeline.tables if table.name == name), None)
        return table if isinstance(table, Table) else None

    def lineage(self, name: str) -> list[Snapshot]:
        """The ancestors of the current snapshot of a table of any format, newest first; none if it does not exist."""
        table = TableName.parse(name)
        table_format = self.tables.find(table)
        return lineage(table_format, table) if table_format is not None else []

    def rows_in(self, name: str, keys: Sequence[str] | None, lookback: int = 0) -> DataFrame:
        """A table's rows in some partitions and `lookback` partitions before each; all rows if it has no partitions."""
        rows, part = self.rows_of(name), self.part(name, keys, lookback)
        return rows if part.keys is None else rows.where(in_partitions(self.partition_keys(part.column, part.keys)))

    def part(self, name: str, keys: Sequence[str] | None, lookback: int = 0) -> Part:
        """What `rows_in` reads, for a query without Spark."""
        table, partitions = self.table(name), self.pipeline.partitions
        if keys is None or table is None or partitions is None:
            return Part(name)
        selected = with_neighbours(partitions, keys, before=lookback)
        return Part(name, self.pipeline.partition_column(table), partitions.sql_type(), selected)

    def rows_by_key(self, part: Part, snapshot: str = "") -> dict[str, int]:
        """The number of rows of each partition, now or at a snapshot."""
        if self.reads.can_read(part.table):
            return self.reads.rows_by_key(part, snapshot)
        name = spark_tables(self.iceberg).rows(TableName.parse(part.table), snapshot)
        rows = self.spark.sql(f"SELECT * FROM {name}")
        return {str(key): count for key, count in rows.groupBy(part.column).count().collect()}

    def partition_keys(self, column: str, keys: Sequence[str]) -> PartitionKeys:
        """Partitions of a table of the pipeline."""
        assert self.pipeline.partitions is not None
        return PartitionKeys(column, self.pipeline.partitions.sql_type(), keys)


@dataclass(frozen=True)
class RunServices:
    """The parts of a lake that a run works with."""

    tables: Tables
    catalog: Catalog
    publisher: Publisher
    session: Callable[[Mapping[str, str], bool], AbstractContextManager[SparkSession]]
    """Opens a Spark session with these settings; with True, in a JVM that nobody else uses."""
    ingester: Callable[[str], Ingester]
    """The ingester for the tables of a branch."""
    settings: Mapping[str, Mapping[str, str]]
    """`[sources.*]` by pipeline name."""
    store: Callable[[Mapping[str, str]], RemoteFiles]
    """The object store that source settings describe."""
    raw: RawArea
    log: RunLog
    duckdb: DuckDB
    author: str = ""
    """The default author of runs."""
    keep_days: int = 0
    """Days until branches of unpublished runs and tags of published runs expire (0: never)."""
    files: Files = LOCAL


def read_batch(context: RunContext, source: Source, partitions: Sequence[str] | None, cursor: str) -> Batch:
    """The rows of a source in some partitions, or all of them after a cursor, as one batch."""
    if source.read_many and partitions and len(partitions) > 1:
        batches = [_batch(source.read_many(context.source_context("", cursor), partitions))]
    else:
        batches = [_batch(source.read(context.source_context(key, cursor))) for key in partitions or [""]]
    for batch in batches:
        _refuse_missing_rows(source, batch)
    first, rows = batches[0], batches[0].rows
    for more in batches[1:]:
        rows = rows.unionByName(more.rows, allowMissingColumns=True)
    notes = {key: ", ".join(dict.fromkeys(b.notes[key] for b in batches if key in b.notes)) for key in first.notes}
    counts = [batch.row_count for batch in batches]
    row_count = sum(count or 0 for count in counts) if None not in counts else None
    return Batch(rows, first.cursor, first.present, notes, first.fingerprint, row_count)


def _refuse_missing_rows(source: Source, batch: Batch) -> None:
    """Rows that the source has and Spark does not see would be deleted from the table."""
    counts = [("rows", batch.rows, batch.row_count)]
    if batch.present is not None:
        counts.append(("keys", batch.present, batch.present_count))
    for what, frame, expected in counts:
        if expected is not None and (count := frame.count()) != expected:
            raise SourceError(
                f"{source.name} has {expected} {what}, and Spark read {count}: nothing was changed.",
                "On a cluster, all executors must reach the lake's storage: set warehouse to s3://bucket/prefix "
                "or to a folder that every machine shares.",
            )


def _batch(rows: DataFrame | Batch) -> Batch:
    return rows if isinstance(rows, Batch) else Batch(rows)
