"""A run: a branch of its own, every table made on it, checked, and published all at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from lakehouse.core.errors import BadSettingError, LakeError, RunBlockedError, RunConflictError, UnknownChoiceError
from lakehouse.core.names import TableName, check_part, nearest
from lakehouse.core.ports import RemoteFiles
from lakehouse.formats.iceberg.stamp import stamp
from lakehouse.ingest.model import Wanted
from lakehouse.ingest.targets import Branches
from lakehouse.pipelines.model import FilesTable, Pipeline, Reading, Table
from lakehouse.quality.model import Looking
from lakehouse.runs import check
from lakehouse.runs.log import RunLog
from lakehouse.runs.make import Making, Scene, blocked
from lakehouse.runs.model import Asked, RunRecord, TableReport, new_run_id
from lakehouse.serve.tables import Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakehouse.ingest.run import Ingester

PREFIX = "run_"
#: A run whose tables others changed meanwhile is done again on what they are now, so often.
TRIES = 3


class Catalog(Branches, Protocol):
    """The part of a catalog that runs need."""

    def on(self, branch: str) -> Catalog: ...
    def tables(self) -> Sequence[TableName]: ...
    def spark_conf(self) -> Mapping[str, str]: ...
    def ensure_namespace(self, namespace: str) -> None: ...
    def branches(self) -> Sequence[str]: ...


@dataclass(frozen=True)
class Runner:
    """Runs pipelines."""

    tables: Tables
    catalog: Catalog
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

    def run(self, pipeline: Pipeline, asked: Asked, say: Callable[[str], None] = lambda text: None) -> RunRecord:
        """Run a pipeline; the record says what came of it, unless an error does (which is kept in the record too)."""
        asked = self._checked(pipeline, asked)
        run = asked.id or new_run_id()
        done = self.log.find(run)
        if done is not None and done.state in ("published", "nothing"):
            return done
        record = self.log.save(self._begun(pipeline.name, run, asked))
        try:
            return self._until_published(pipeline, asked, record, say)
        except BaseException as exc:
            self._keep_failure(record, exc)
            raise

    def transact(
        self, name: str, work: Callable[[SparkSession, str], None], asked: Asked, say: Callable[[str], None]
    ) -> RunRecord:
        """Any work with Spark as a run: on a branch, which is the session's own catalog, published if it ends well."""
        run = asked.id or new_run_id()
        record = self.log.save(self._begun(name, run, asked))
        nothing = Pipeline(name, ())
        try:
            for _ in range(TRIES):
                attempt = _Attempt(self, nothing, asked, record, say)
                conf = {**attempt.here.spark_conf(), "spark.sql.defaultCatalog": record.branch}
                with self.session(conf) as spark:
                    work(spark, record.branch)
                done = attempt.ended()
                if done.state != "running":
                    return self.log.save(replace(done, ended_at=_now().isoformat(timespec="seconds")))
        except BaseException as exc:
            self._keep_failure(record, exc)
            raise
        raise _overtaken(name)

    def _begun(self, name: str, run: str, asked: Asked) -> RunRecord:
        check_part(PREFIX + run, "run")
        return RunRecord(
            id=run,
            pipeline=name,
            state="running",
            branch=PREFIX + run,
            started_at=_now().isoformat(timespec="seconds"),
            pid=os.getpid(),
            partitions=asked.partitions,
            author=asked.author,
        )

    def _until_published(
        self, pipeline: Pipeline, asked: Asked, record: RunRecord, say: Callable[[str], None]
    ) -> RunRecord:
        for _ in range(TRIES):
            attempt = _Attempt(self, pipeline, asked, record, say)
            record = attempt.run()
            if record.state != "running":
                return self.log.save(replace(record, ended_at=_now().isoformat(timespec="seconds")))
            say("Others changed the same tables meanwhile: once more, on what they are now")
        raise _overtaken(pipeline.name)

    def _keep_failure(self, record: RunRecord, exc: BaseException) -> None:
        told = exc.as_dict() if isinstance(exc, LakeError) else {"error": "failed", "message": f"{type(exc).__name__}"}
        state = "blocked" if isinstance(exc, RunBlockedError) else "failed"
        latest = self.log.find(record.id) or record
        self.log.save(replace(latest, state=state, error=told, ended_at=_now().isoformat(timespec="seconds")))

    def _checked(self, pipeline: Pipeline, asked: Asked) -> Asked:
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
        if not asked.partitions:
            return asked
        if pipeline.partitions is None:
            raise UnknownChoiceError("partition", asked.partitions[0], [f"none: {pipeline.name} has no partitions"])
        return replace(asked, partitions=tuple(sorted({pipeline.partitions.check(key) for key in asked.partitions})))


class _Attempt:
    """One try at a run, on what the tables are now."""

    def __init__(
        self, runner: Runner, pipeline: Pipeline, asked: Asked, record: RunRecord, say: Callable[[str], None]
    ) -> None:
        self.rooms, self.pipeline, self.asked, self.record, self.say = runner, pipeline, asked, record, say
        self.branch = record.branch
        self.here = runner.catalog.on(self.branch)
        runner.catalog.discard(self.branch)
        self.base = dict(runner.catalog.fork(self.branch, runner.catalog.tables()))
        self.now = _now()

    def run(self) -> RunRecord:
        """The record of what came of it; still `running` if the tables moved meanwhile."""
        reports: list[TableReport] = []
        with ExitStack() as stack:
            scene = self._scene(stack)
            for table in self.pipeline.tables:
                if self.asked.tables and table.name not in self.asked.tables:
                    continue
                try:
                    reports.append(self._made(scene, table))
                finally:
                    self.record = self.rooms.log.save(
                        replace(
                            self.record, tables=tuple(reports), outcomes=tuple(scene().outcomes if scene.open else ())
                        )
                    )
        return self.ended()

    def ended(self) -> RunRecord:
        """Publish, unless asked not to: then the record keeps what publishing later will need."""
        state = self._published()
        base = {str(table): start for table, start in self._pointers().items()} if state == "kept" else {}
        return replace(self.record, state=state, base=base)

    def _pointers(self) -> dict[TableName, str | None]:
        """Where the branch's tables pointed when it was made; nowhere for those that are new."""
        return {**dict.fromkeys(self.here.tables()), **self.base}

    def _published(self) -> str:
        """Make what was done seen; says what came of it: still `running` if the tables moved meanwhile."""
        catalog = self.rooms.catalog
        base = self._pointers()
        if all(self.here.pointer(table) == start for table, start in base.items()):
            catalog.discard(self.branch)
            return "nothing"
        if not self.asked.publish:
            return "kept"
        self.say("Publishing")
        return "published" if catalog.publish(self.branch, base) else "running"

    def _made(self, scene: _LazyScene, table: Table | FilesTable) -> TableReport:
        self.here.ensure_namespace(table.title.namespace)
        if self.asked.light:
            return self._light(table)
        if isinstance(table, Table):
            return Making(scene(), table).run()
        return self._ingested(scene, table)

    def _light(self, table: Table | FilesTable) -> TableReport:
        if isinstance(table, FilesTable) or table.light is None:
            return TableReport(table.name, note="needs Spark")
        from pyiceberg.catalog import load_catalog

        self.say(table.name)
        started, before = _now(), self.here.pointer(table.title)
        catalog = load_catalog(self.branch, **self.here.pyiceberg_properties())
        rows = table.light(catalog, self.rooms.settings.get(self.pipeline.name, {}))
        current = self.rooms.tables.on(self.branch).describe(table.title).current
        note = "nothing changed" if self.here.pointer(table.title) == before else ""
        seconds = round((_now() - started).total_seconds(), 2)
        return TableReport(table.name, rows=rows, snapshot=current.id if current else "", seconds=seconds, note=note)

    def _ingested(self, scene: _LazyScene, table: FilesTable) -> TableReport:
        settings = self.rooms.settings.get(self.pipeline.name, {})
        folder = settings.get(table.folder, "")
        if not folder:
            raise BadSettingError(
                f"sources.{self.pipeline.name}.{table.folder} is not set, so there is no folder to watch.",
                f"Set it in lake.toml, or LAKE_SOURCES__{self.pipeline.name.upper()}__{table.folder.upper()}.",
            )
        self.say(f"{table.name}: {folder}")
        started = _now()
        done = self.rooms.ingester(self.branch).run(Wanted((folder,), table.title, **table.options))
        note = "" if done.files else "nothing new"
        if done.files and table.checks:
            looking = Looking(scene().rows_of(table.name), scene().rows_of, {}, None, self.now)
            outcomes = check.look(table.name, table.checks, looking)
            scene().outcomes.extend(outcomes)
            if any(outcome.blocks for outcome in outcomes):
                raise blocked(outcomes)
        seconds = round((_now() - started).total_seconds(), 2)
        rows = done.inserted + done.updated
        return TableReport(table.name, (), rows, done.rejected, done.snapshot, seconds, note)

    def _scene(self, stack: ExitStack) -> _LazyScene:
        def opened() -> Scene:
            self.say("Starting Spark")
            spark = stack.enter_context(self.rooms.session(self.here.spark_conf()))
            tables = self.rooms.tables.on(self.branch)

            def rows_of(name: str) -> DataFrame:
                table = TableName.parse(name)
                table_format = tables.format_of(table)
                for statement in table_format.spark_setup(table):
                    spark.sql(statement)
                return spark.sql(f"SELECT * FROM {table_format.spark_rows(table)}")

            return Scene(
                pipeline=self.pipeline,
                run=self.record.id,
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

        return _LazyScene(opened)

    def _reading(self, spark: SparkSession, partition: str, cursor: str) -> Reading:
        settings = self.rooms.settings.get(self.pipeline.name, {})
        return Reading(
            spark, settings, partition, self.now, self.rooms.raw, self.rooms.store(settings), cursor, self.say
        )

    def _stamp(self, table: TableName, notes: dict[str, str], start: str | None) -> None:
        pointer = self.here.pointer(table)
        assert pointer is not None
        stamped = stamp(pointer, {f"lake.{key}": value for key, value in notes.items()}, start)
        self.here.move(table, pointer, stamped)


class _LazyScene:
    """Spark is started when a table needs it: a watched folder may have nothing new, or do without."""

    def __init__(self, opened: Callable[[], Scene]) -> None:
        self._opened, self._scene = opened, None

    _scene: Scene | None

    @property
    def open(self) -> bool:
        return self._scene is not None

    def __call__(self) -> Scene:
        if self._scene is None:
            self._scene = self._opened()
        return self._scene


def _overtaken(name: str) -> RunConflictError:
    return RunConflictError(
        f"Others changed the tables of {name} {TRIES} times while this run went on.",
        "Nothing was published. Try again when it is quieter.",
    )


def _now() -> datetime:
    return datetime.now(UTC)
