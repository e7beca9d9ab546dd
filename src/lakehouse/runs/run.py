"""Run pipelines: build every table on a branch of main, check it, publish all tables at once."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import (
    BadDeclarationError,
    BadSettingError,
    CatalogError,
    LakeError,
    NotSupportedError,
    PipelineError,
    RunBlockedError,
    RunConflictError,
    UnknownChoiceError,
)
from lakehouse.core.names import TableName, check_part, suggestion
from lakehouse.core.refs import run_branch
from lakehouse.core.requests import RunRequest
from lakehouse.core.when import new_id
from lakehouse.pipelines.model import Pipeline, Table
from lakehouse.process.pids import start_time
from lakehouse.runs import recovery
from lakehouse.runs.attempt import Attempt, Preview, now
from lakehouse.runs.context import RunServices
from lakehouse.runs.model import RunRecord, reason
from lakehouse.runs.plan import TablePlan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: A run whose tables others changed meanwhile is repeated on their new state, up to this number of attempts.
MAX_ATTEMPTS = 3

Progress = Callable[[str], None]


def _silent(text: str) -> None:
    pass


@dataclass(frozen=True)
class Runner(RunServices):
    """Runs pipelines."""

    def run(self, pipeline: Pipeline, request: RunRequest, progress: Progress = _silent) -> RunRecord:
        """Run a pipeline; returns its record, or raises an error that the record holds as well."""
        request = self._checked(pipeline, request)
        recovery.expire(self.catalog, self.log, self.keep_days)
        run = request.id or new_id()
        earlier = recovery.find_record(self.catalog, self.log, run)
        if earlier is not None and recovery.is_done(self.catalog, earlier):
            return earlier
        if earlier is not None and earlier.state == "running":
            raise RunConflictError(f"Run {run} is already in progress.", f"lake runs show {run}")
        record = self._new_record(pipeline.name, run, request)
        resumes = request.resume and earlier is not None and recovery.has_branch(self.catalog, earlier)
        if not resumes and request.id:
            recovery.release_branch(self.catalog, record.branch, earlier)
        if resumes and earlier is not None:
            record = replace(record, tables=earlier.tables, outcomes=earlier.outcomes)
            progress(f"Resuming run {run}, which reads all tables as of its start, {earlier.started_at}")
        record = self.log.save(record)
        try:
            return self._run_until_published(pipeline, replace(request, resume=resumes), record, progress)
        except BaseException as exc:
            self._record_failure(record, exc)
            raise

    def plan(self, pipeline: Pipeline, request: RunRequest, progress: Progress = _silent) -> list[TablePlan]:
        """What a run of this request would rebuild, and why."""
        return Preview(self, pipeline, self._checked(pipeline, request), progress).plans()

    def transact(
        self, name: str, work: Callable[[SparkSession, str], None], request: RunRequest, progress: Progress
    ) -> RunRecord:
        """Run any work with Spark on a branch, which is the session's default catalog, and publish it."""
        record = self._new_record(name, request.id or new_id(), request)
        if request.id:
            recovery.release_branch(self.catalog, record.branch, self.log.find(record.id))
        self.log.save(record)
        pipeline = Pipeline(name, ())
        try:
            for _ in range(MAX_ATTEMPTS):
                attempt = Attempt(self, pipeline, request, record, progress)
                conf = {**attempt.branch_catalog.spark_conf(), "spark.sql.defaultCatalog": record.branch}
                with self.session(conf, request.isolated) as spark:
                    work(spark, record.branch)
                done = attempt.publish()
                if done.state != "running":
                    return self.log.save(replace(done, ended_at=now().isoformat(timespec="seconds")))
            raise _conflict(name)
        except BaseException as exc:
            self._record_failure(record, exc)
            raise

    def records(self) -> list[RunRecord]:
        """Every run, newest first."""
        records = self.log.all()
        branches = {ref.name for ref in self.catalog.branch_refs()} if records else set()
        # A published run has no branch, so a run with a branch needs no question to the catalog.
        return [
            record if record.branch in branches else recovery.reconcile(self.catalog, self.log, record)
            for record in records
        ]

    def record(self, run: str) -> RunRecord:
        """A run by its id or a unique prefix of it."""
        return recovery.reconcile(self.catalog, self.log, self.log.get(run))

    def _new_record(self, name: str, run: str, request: RunRequest) -> RunRecord:
        check_part(run_branch(run), "run")
        return RunRecord(
            id=run,
            pipeline=name,
            state="running",
            branch=run_branch(run),
            started_at=now().isoformat(timespec="seconds"),
            pid=os.getpid(),
            process_started=start_time(os.getpid()),
            partitions=request.partitions,
            author=request.author or self.author,
            message=request.message,
            only=request.tables,
            light=request.light,
            accept_code=request.accept_code,
        )

    def _run_until_published(
        self, pipeline: Pipeline, request: RunRequest, record: RunRecord, progress: Progress
    ) -> RunRecord:
        for _ in range(MAX_ATTEMPTS):
            record = Attempt(self, pipeline, request, record, progress).run()
            if record.state != "running":
                return self.log.save(replace(record, ended_at=now().isoformat(timespec="seconds")))
            request = replace(request, resume=False)
            progress("Repeating the run on the new state")
        raise _conflict(pipeline.name)

    def _record_failure(self, record: RunRecord, exc: BaseException) -> None:
        latest = self.log.find(record.id) or record
        # If the catalog does not answer now, the record is reconciled when it is next read.
        with suppress(CatalogError):
            if recovery.reconcile(self.catalog, self.log, replace(latest, state="failed")).state == "published":
                return
        error = exc.as_dict() if isinstance(exc, LakeError) else {"error": "failed", "message": reason(exc)}
        state = "blocked" if isinstance(exc, RunBlockedError) else "failed"
        self.log.save(replace(latest, state=state, error=error, ended_at=now().isoformat(timespec="seconds")))

    def _checked(self, pipeline: Pipeline, request: RunRequest) -> RunRequest:
        known = pipeline.known_settings
        for name in self.settings.get(pipeline.name, {}):
            if name not in known:
                raise BadSettingError(
                    f"sources.{pipeline.name}.{name} is not a setting of that pipeline.",
                    f"{suggestion(name, known)}Its settings: {', '.join(sorted(known))}.",
                )
        names = [table.name for table in pipeline.tables]
        for name in request.tables:
            if name not in names:
                raise UnknownChoiceError("table", name, names)
        self._refuse_several_tables(pipeline, request)
        self._refuse_unknown_inputs(pipeline, request)
        if not request.partitions:
            return request
        if pipeline.partitions is None:
            raise UnknownChoiceError("partition", request.partitions[0], [f"none: {pipeline.name} has no partitions"])
        keys = {pipeline.partitions.check(key) for key in request.partitions}
        return replace(request, partitions=tuple(sorted(keys)))

    def _refuse_unknown_inputs(self, pipeline: Pipeline, request: RunRequest) -> None:
        """Refuse a run that reads a table which neither exists nor is built by it."""
        selected = pipeline.select(request.tables)
        built = {table.name for table in selected}
        missing = [
            (table.name, name)
            for table in selected
            for name in (table.upstream if isinstance(table, Table) else ())
            if name not in built and self.tables.find(TableName.parse(name)) is None
        ]
        for table, name in missing:
            declared = [other.name for other in pipeline.tables]
            if name in declared:
                raise PipelineError(
                    f"{table} reads {name}, which is not built yet.", f"Build it first: lake run {pipeline.name}"
                )
            known = {*declared, *(str(existing) for existing, _ in self.tables.all())} - {table}
            raise BadDeclarationError(
                f"{table} of the pipeline {pipeline.name} reads {name}, and there is no such table.",
                f"{suggestion(name, known)}Nothing was run.",
            )

    def _refuse_several_tables(self, pipeline: Pipeline, request: RunRequest) -> None:
        """Refuse before the work what the catalog would refuse at its end."""
        tables = pipeline.select(request.tables)
        if request.publish and len(tables) > 1 and not self.catalog.capabilities.multi_table_publish:
            raise NotSupportedError(
                f"{pipeline.name} builds {len(tables)} tables, and this catalog cannot publish several at once.",
                "Run it on a catalog that can (profiles sql, rest, stack), one table at a time (lake run"
                f" {pipeline.name} --table {tables[0].name}), or with --no-publish.",
            )


def _conflict(name: str) -> RunConflictError:
    return RunConflictError(
        f"Others changed the tables of {name} {MAX_ATTEMPTS} times during this run.",
        "Nothing was published. Run it again when there are fewer writers.",
    )
