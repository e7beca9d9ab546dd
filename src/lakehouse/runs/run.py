"""Runs: a branch of its own from what main is, every table made on it, checked, and published all at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse.core.catalog import Catalog
from lakehouse.core.errors import (
    BadSettingError,
    CatalogError,
    LakeError,
    NotSupportedError,
    RunBlockedError,
    RunConflictError,
    UnknownChoiceError,
)
from lakehouse.core.files import LOCAL, Files
from lakehouse.core.names import check_part, nearest
from lakehouse.core.refs import RUN_PREFIX
from lakehouse.core.requests import RunRequest
from lakehouse.core.source import RemoteFiles
from lakehouse.pipelines.model import Pipeline
from lakehouse.query.tables import Tables
from lakehouse.runs import recovery as kept
from lakehouse.runs.attempt import Attempt, now
from lakehouse.runs.model import RunRecord, new_run_id, reason
from lakehouse.runs.records import RunLog
from lakehouse.versioning.publish import Publisher

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakehouse.ingest.run import Ingester

#: A run whose tables others changed meanwhile is done again on what they are now, so often.
TRIES = 3


@dataclass(frozen=True)
class Runner:
    """Runs pipelines."""

    tables: Tables
    catalog: Catalog
    publisher: Publisher
    session: Callable[[Mapping[str, str]], AbstractContextManager[SparkSession]]
    """A Spark session with settings of its own, for as long as a block lasts."""
    ingester: Callable[[str], Ingester]
    """What brings files into the tables of a branch."""
    settings: Mapping[str, Mapping[str, str]]
    """`[sources.*]`, by the names of pipelines."""
    store: Callable[[Mapping[str, str]], RemoteFiles]
    """The object store that some settings describe."""
    raw: Path
    log: RunLog
    author: str = ""
    """Who runs, where nobody else is named."""
    keep_days: int = 0
    """How long branches of runs that were not published, and tags of those that were, are kept; 0: for ever."""
    files: Files = LOCAL

    def run(self, pipeline: Pipeline, asked: RunRequest, say: Callable[[str], None] = lambda text: None) -> RunRecord:
        """Run a pipeline; the record says what came of it, unless an error does (which is kept in the record too)."""
        asked = self._checked(pipeline, asked)
        kept.expire(self.catalog, self.log, self.keep_days)
        run = asked.id or new_run_id()
        earlier = kept.known(self.catalog, self.log, run)
        if earlier is not None and earlier.state in ("published", "nothing"):
            return earlier
        if earlier is not None and earlier.state == "running":
            raise RunConflictError(f"The run {run} is going on already.", f"lake runs show {run}")
        going_on = asked.resume and earlier is not None and kept.has_branch(self.catalog, earlier)
        record = self._begun(pipeline.name, run, asked)
        if going_on and earlier is not None:
            record = replace(record, tables=earlier.tables, outcomes=earlier.outcomes)
        record = self.log.save(record)
        try:
            return self._until_published(pipeline, replace(asked, resume=going_on), record, say)
        except BaseException as exc:
            self._keep_failure(record, exc)
            raise

    def transact(
        self, name: str, work: Callable[[SparkSession, str], None], asked: RunRequest, say: Callable[[str], None]
    ) -> RunRecord:
        """Any work with Spark as a run: on a branch, which is the session's own catalog, published if it ends well."""
        run = asked.id or new_run_id()
        record = self.log.save(self._begun(name, run, asked))
        nothing = Pipeline(name, ())
        try:
            for _ in range(TRIES):
                attempt = Attempt(self, nothing, asked, record, say)
                conf = {**attempt.here.spark_conf(), "spark.sql.defaultCatalog": record.branch}
                with self.session(conf) as spark:
                    work(spark, record.branch)
                done = attempt.ended()
                if done.state != "running":
                    return self.log.save(replace(done, ended_at=now().isoformat(timespec="seconds")))
        except BaseException as exc:
            self._keep_failure(record, exc)
            raise
        raise self._overtaken(name, record)

    def records(self) -> list[RunRecord]:
        """Every run that there was, the newest first."""
        found = self.log.all()
        here = {ref.name for ref in self.catalog.branch_refs()} if found else set()
        # One that was published has no branch any more; the others need not be asked about.
        return [record if record.branch in here else kept.reconcile(self.catalog, self.log, record) for record in found]

    def record(self, run: str) -> RunRecord:
        """A run by its id, or by the beginning of it if that is clear."""
        return kept.reconcile(self.catalog, self.log, self.log.get(run))

    def _begun(self, name: str, run: str, asked: RunRequest) -> RunRecord:
        check_part(RUN_PREFIX + run, "run")
        return RunRecord(
            id=run,
            pipeline=name,
            state="running",
            branch=RUN_PREFIX + run,
            started_at=now().isoformat(timespec="seconds"),
            pid=os.getpid(),
            partitions=asked.partitions,
            author=asked.author or self.author,
            message=asked.message,
            only=asked.tables,
            light=asked.light,
        )

    def _until_published(
        self, pipeline: Pipeline, asked: RunRequest, record: RunRecord, say: Callable[[str], None]
    ) -> RunRecord:
        for _ in range(TRIES):
            attempt = Attempt(self, pipeline, asked, record, say)
            record = attempt.run()
            if record.state != "running":
                return self.log.save(replace(record, ended_at=now().isoformat(timespec="seconds")))
            asked = replace(asked, resume=False)
            say("Once more, on what they are now")
        raise self._overtaken(pipeline.name, record)

    def _overtaken(self, name: str, record: RunRecord) -> RunConflictError:
        error = RunConflictError(
            f"Others changed the tables of {name} {TRIES} times while this run went on.",
            "Nothing was published. Try again when it is quieter.",
        )
        self._keep_failure(record, error)
        return error

    def _keep_failure(self, record: RunRecord, exc: BaseException) -> None:
        latest = self.log.find(record.id) or record
        # A catalog that cannot be asked now is asked when the record is next looked at.
        with suppress(CatalogError):
            if kept.reconcile(self.catalog, self.log, replace(latest, state="failed")).state == "published":
                return  # it was, whatever happened after
        told = exc.as_dict() if isinstance(exc, LakeError) else {"error": "failed", "message": reason(exc)}
        state = "blocked" if isinstance(exc, RunBlockedError) else "failed"
        self.log.save(replace(latest, state=state, error=told, ended_at=now().isoformat(timespec="seconds")))

    def _checked(self, pipeline: Pipeline, asked: RunRequest) -> RunRequest:
        known = pipeline.known_settings
        for name in self.settings.get(pipeline.name, {}):
            if name not in known:
                near = nearest(name, known)
                hint = f"Did you mean {near[0]}? " if near else ""
                raise BadSettingError(
                    f"sources.{pipeline.name}.{name} is not a setting of that pipeline.",
                    f"{hint}It knows: {', '.join(sorted(known))}.",
                )
        names = [table.name for table in pipeline.tables]
        for name in asked.tables:
            if name not in names:
                raise UnknownChoiceError("table", name, names)
        self._refuse_several(pipeline, asked)
        if not asked.partitions:
            return asked
        if pipeline.partitions is None:
            raise UnknownChoiceError("partition", asked.partitions[0], [f"none: {pipeline.name} has no partitions"])
        return replace(asked, partitions=tuple(sorted({pipeline.partitions.check(key) for key in asked.partitions})))

    def _refuse_several(self, pipeline: Pipeline, asked: RunRequest) -> None:
        """Before the work rather than after it."""
        changed = pipeline.chosen(asked.tables)
        if asked.publish and len(changed) > 1 and not self.catalog.capabilities.multi_table_publish:
            raise NotSupportedError(
                f"{pipeline.name} makes {len(changed)} tables, and this catalog cannot publish several at once.",
                "Run it on a catalog that can (profiles sql, rest, stack), one table at a time (lake run"
                f" {pipeline.name} --table {changed[0].name}), or with --no-publish.",
            )
