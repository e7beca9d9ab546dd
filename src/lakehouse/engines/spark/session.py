"""Spark sessions in this process: run statements, return rows or Arrow, raise LakeErrors."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import StatementLostError
from lakehouse.core.format import MARK
from lakehouse.core.requests import QueryRequest, WriteTarget
from lakehouse.core.result import Explain, ListedRows, Result
from lakehouse.core.tables import SchemaCopy
from lakehouse.engines.spark.commit_mark import commits_marked
from lakehouse.engines.spark.errors import ended_jvm_ignored, translated
from lakehouse.engines.spark.results import to_result
from lakehouse.engines.spark.streaming import can_stream, streamed_result

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakehouse.engines.spark.launch import StartedSession

#: An idle daemon whose heap stays fuller than this ends: something leaks, and the next command starts a new one.
MAX_HEAP_SHARE = 0.7


@dataclass(frozen=True)
class PreparedStatement:
    """A statement in Spark's SQL with resolved names, and what its session needs first."""

    sql: str
    setup: Sequence[str] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    copies: Sequence[SchemaCopy] = ()
    """Tables of which Spark's own catalog may hold an outdated schema."""
    changes_session: bool = False
    """Discard the session afterwards: the statement, or its setup, changes it."""


class LocalSession:
    """The Spark of this process, started on first use, with a pool of sessions that do not share settings and temporary views."""

    def __init__(
        self,
        start: Callable[[], StartedSession],
        settings: Mapping[str, str],
        key: Callable[[], str],
        start_isolated: Callable[[], StartedSession] | None = None,
    ) -> None:
        """
        Args:
            start: starts Spark, or attaches to a running one.
            key: identifies the Spark that `start` starts: lakes with the same key share it.
            start_isolated: starts a Spark that no other process uses (default: `start`).
        """
        self._start, self._settings, self._key = start, settings, key
        self._start_isolated = start_isolated or start
        self._lock = threading.Lock()
        self._started: StartedSession | None = None
        self._idle: list[SparkSession] = []

    @property
    def spark(self) -> SparkSession:
        """The root session, for PySpark code."""
        from lakehouse.engines.spark.process_spark import give_away

        started = self._acquired()
        give_away(started)
        return started.spark

    def _acquired(self, isolated: bool = False) -> StartedSession:
        """The Spark of this process; one that has ended is replaced."""
        from lakehouse.engines.spark.process_spark import acquire, is_current

        with self._lock:
            started = self._started
            if started is not None and is_current(started) and not (isolated and started.lease):
                return started
            self._idle.clear()
            start = self._start_isolated if isolated else self._start
            self._started = started = acquire(self, self._key(), start, isolated)
            self._configure(started.spark)
            return started

    def gateway(self) -> tuple[int, str]:
        """The port and the secret of the JVM's gateway, with which another process attaches to it."""
        parameters = self._acquired().spark._sc._gateway.gateway_parameters
        return int(parameters.port), str(parameters.auth_token)

    def heap_share(self) -> float:
        """The share of the JVM's heap that is in use, after a collection of garbage; 0 if no JVM was started."""
        started = self._started
        if started is None or started.jvm is None:
            return 0.0
        runtime = started.spark._jvm.java.lang.Runtime.getRuntime()

        def used() -> float:
            return float((runtime.totalMemory() - runtime.freeMemory()) / runtime.maxMemory())

        if used() > MAX_HEAP_SHARE:
            runtime.gc()
        return used()

    def has_died(self) -> bool:
        """Whether a JVM was started here and has ended."""
        started = self._started
        return started is not None and started.jvm is not None and started.jvm.poll() is not None

    def answers(self) -> bool:
        """Ask Spark whether it still works; True if none was started yet."""
        from lakehouse.engines.spark.process_spark import has_ended

        return self._started is None or not has_ended(self._started)

    def run(self, prepared: PreparedStatement, request: QueryRequest, reason: str) -> Result:
        """Run one statement of a request."""
        borrowed = self._borrowed(self._acquired(), reuse=not prepared.changes_session)
        mark = (MARK, request.mark) if request.mark else None
        with translated(prepared.sql), borrowed as session, commits_marked(session, mark):
            _set_up(session, prepared)
            frame = (
                session.sql(prepared.sql, args=dict(request.parameters))
                if request.parameters
                else session.sql(prepared.sql)
            )
            if request.write:
                _write(frame, request.write)
                return Result((), ListedRows([], []), Explain("spark", reason))
            if request.stream and can_stream(frame):
                return streamed_result(frame, prepared.sql, reason, request.limit)
            if request.limit is not None:
                frame = frame.limit(request.limit)
            return to_result(frame, reason, request.arrow)

    def plan(self, prepared: PreparedStatement) -> str:
        """Spark's plan of a statement, without running it."""
        with translated(prepared.sql), self._borrowed(self._acquired(), reuse=not prepared.changes_session) as session:
            _set_up(session, prepared)
            return str(session.sql("EXPLAIN FORMATTED " + prepared.sql).collect()[0][0])

    @contextmanager
    def cancellable(self, tag: str) -> Iterator[None]:
        """Jobs started in this block by this thread can be stopped with `cancel(tag)`."""
        # Spark Connect has no context; its server notices that the client is gone.
        context = getattr(self._acquired().spark, "_sc", None)
        if context is not None:
            context.setJobGroup(tag, tag, interruptOnCancel=True)
        try:
            yield
        finally:
            if context is not None:
                with ended_jvm_ignored():
                    context.setLocalProperty("spark.jobGroup.id", None)

    def cancel(self, tag: str) -> None:
        """Stop the jobs of a `cancellable` block."""
        context = getattr(self._started and self._started.spark, "_sc", None)
        if context is not None:
            context.cancelJobGroup(tag)

    def progress(self, tag: str) -> tuple[int, int]:
        """The completed tasks and all tasks of a `cancellable` block, as far as Spark has planned them."""
        context = getattr(self._started and self._started.spark, "_sc", None)
        if context is None:
            return 0, 0
        tracker = context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(tag)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        started = [stage for stage in stages if stage]
        return sum(stage.numCompletedTasks for stage in started), sum(stage.numTasks for stage in started)

    def stop(self) -> None:
        """Release the session; its JVM ends with the last lake of this process that uses it."""
        with self._lock:
            if self._started is not None:
                from lakehouse.engines.spark.process_spark import release  # not for statements that need no Spark

                for session in self._idle if self._started.url else ():
                    session.stop()
                release(self, self._started)
            self._started = None
            self._idle.clear()

    @contextmanager
    def _borrowed(self, started: StartedSession, reuse: bool = True) -> Iterator[SparkSession]:
        """A session from the pool. Sessions are reused, because a new one has to open the catalog."""
        from lakehouse.engines.spark.process_spark import in_use

        with self._lock:
            session = self._idle.pop() if self._idle and started is self._started else None
        if session is None:
            session = started.new_session()
            self._configure(session)
        try:
            with in_use(started):
                yield session
        finally:
            if reuse:
                with self._lock:
                    if started is self._started:
                        self._idle.append(session)
            elif started.url:
                session.stop()  # closes the connection; the server stays

    @contextmanager
    def own(self, settings: Mapping[str, str], isolated: bool = False) -> Iterator[SparkSession]:
        """A session with its own settings that nobody else uses while the block runs.

        Args:
            isolated: in a JVM that no other process uses.
        """
        from lakehouse.engines.spark.attach import silent_disconnect
        from lakehouse.engines.spark.process_spark import discard, has_ended

        started = self._acquired(isolated)
        with self._borrowed(started, reuse=False) as session:
            for key, value in settings.items():
                session.conf.set(key, value)
            try:
                with silent_disconnect():
                    yield session
            except Exception as exc:
                if not has_ended(started):
                    raise
                discard(started)  # the next session is one of a new JVM
                raise StatementLostError("Spark ended during the run.", "Run it again: another Spark starts.") from exc

    def _configure(self, session: SparkSession) -> None:
        for key, value in self._settings.items():
            session.conf.set(key, value)


def _set_up(session: SparkSession, prepared: PreparedStatement) -> None:
    for key, value in prepared.settings.items():
        session.conf.set(key, value)
    for statement in prepared.setup:
        session.sql(statement)
    for copy in prepared.copies:
        _refresh_schema(session, copy)


def _refresh_schema(session: SparkSession, copy: SchemaCopy) -> None:
    """Update the schema of a table in Spark's own catalog, if it is outdated.

    REFRESH TABLE does not change it, ALTER TABLE would be a commit, and dropping the entry could delete the table's
    files: Spark considers a table that was created in this process its own.
    """
    name = f"spark_catalog.`{copy.table.namespace}`.`{copy.table.table}`"
    stored = {row["col_name"]: row["data_type"] for row in session.sql(f"DESCRIBE TABLE {name}").collect()}
    java = getattr(session, "_jsparkSession", None)  # a Spark Connect server has its own catalog
    if java is None or all(stored.get(column.name) == column.type for column in copy.columns):
        return
    frame = session.read.format(copy.format).load(copy.location).drop(*copy.partitioning)
    frame = _with_comments(frame, {column.name: column.comment for column in copy.columns})
    catalog = java.sharedState().externalCatalog()
    catalog.alterTableDataSchema(copy.table.namespace, copy.table.table, frame._jdf.schema())
    session.catalog.refreshTable(name)


def _write(frame: DataFrame, write: WriteTarget) -> None:
    rows = _with_comments(frame, write.comments)
    rows.write.format(write.format).options(**write.options).mode("append").save(write.location)


def _with_comments(frame: DataFrame, comments: Mapping[str, str]) -> DataFrame:
    from pyspark.sql import functions as F

    return frame.select(
        *(
            F.col(f"`{name}`").alias(name, metadata={"comment": comment})
            if (comment := comments.get(name))
            else F.col(f"`{name}`")
            for name in frame.columns
        )
    )
