"""Assemble a lake from its settings: the only module that knows every package below it."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse.agent.semantics import FILE_NAME
from lakehouse.config.load import load_settings
from lakehouse.config.settings import Settings
from lakehouse.core.catalog import ListsViews
from lakehouse.core.engine import Engine
from lakehouse.core.errors import BadSettingError
from lakehouse.core.files import RemoteFiles
from lakehouse.core.names import TableName
from lakehouse.core.registry import require
from lakehouse.engines.duckdb import DuckDB
from lakehouse.engines.spark.session import LocalSession
from lakehouse.lake import Components, Lake
from lakehouse.lake.backend import author_of, open_backend
from lakehouse.lake.plugins import LakeEngineContext, LakeSourceContext
from lakehouse.lake.spark import (
    DownloadReporter,
    StatusReporter,
    attach_or_start,
    silent,
    spark_key,
    start_spark,
)
from lakehouse.query.conflicts import ConflictRetries
from lakehouse.query.route import AUTO, EngineRunner, QueryRouter
from lakehouse.query.sql.render import for_spark, map_error_position
from lakehouse.query.statement_log import logged
from lakehouse.tables.directory import Tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakehouse.engines.spark.launch import StartedSession
    from lakehouse.ingest.run import Ingester
    from lakehouse.lake.copies import LakeCopies
    from lakehouse.lake.run_events import Observer
    from lakehouse.maintenance.maintain import Maintainer
    from lakehouse.pipelines import Pipeline
    from lakehouse.runs.records import RunLog
    from lakehouse.runs.run import Runner
    from lakehouse.versioning.branches import Refs


def open_lake(profile: str | None = None, home: str | Path | None = None, *, settings: Settings | None = None) -> Lake:
    """Open the lake that lake.toml and the environment describe.

    Args:
        profile: the profile to use (default: embedded).
        home: the folder of an embedded lake (default: `.lake` in the working folder). It is created if missing.
        settings: all settings at once, instead of reading them.

    >>> with open_lake(home="other") as other:
    ...     other.ingest_rows([{"id": 1, "name": "Ada"}], into="crm.people").inserted
    1
    """
    return assemble(settings or load_settings({"profile": profile, "home": home}))


def assemble(
    settings: Settings,
    *,
    arrow: bool = True,
    status: StatusReporter = silent,
    download: DownloadReporter = silent,
) -> Lake:
    """A lake with these settings; the arguments are those of `Assembly`."""
    return Lake(Assembly(settings, arrow, status, download).components())


class Assembly:
    """Builds the components of a lake; those that are rarely needed are built, and imported, when called for."""

    def __init__(
        self,
        settings: Settings,
        arrow: bool = True,
        status: StatusReporter = silent,
        download: DownloadReporter = silent,
        class_list: Path | None = None,
    ) -> None:
        """
        Args:
            arrow: results are for programs; False is for people, who need not wait for Arrow to load.
            status: entered around anything that may take longer than a moment, with a description.
            download: the same around a download; yields a function to call with (bytes done, bytes in total).
            class_list: a file to which Spark writes the classes it loads (`lake setup` trains the archive so).
        """
        self.backend = open_backend(settings)
        self.settings, self.home = self.backend.settings, self.backend.home
        self.catalog, self.arrow = self.backend.catalog, arrow
        self._status, self._download, self._class_list = status, download, class_list
        self.iceberg = self.backend.formats["iceberg"]
        formats = list(self.backend.formats.values())
        protected = self.settings.branches.protected
        views = self.catalog.views if isinstance(self.catalog, ListsViews) else tuple
        self.tables = Tables(formats, self.catalog.has_view, self.catalog.branches, protected, views=views)
        self.memory_limit = _bytes("query.memory_limit", self.settings.query.memory_limit)
        self.duckdb = DuckDB(self.memory_limit, self.home.run / "spill", self.backend.duckdb_access)
        self.session = LocalSession(
            self._attach, self.backend.format_settings, lambda: spark_key(self.backend), self._start_spark
        )
        self.queries = QueryRouter(
            self.tables,
            self._open_engine("duckdb"),
            self._open_engine,
            _bytes("query.largest_scan", self.settings.query.largest_scan),
            ConflictRetries(self.home.run / "ingest"),
        )

    def components(self) -> Components:
        return Components(
            ingester=self.ingester,
            runner=self.runner,
            observer=self.observer,
            refs=self.refs,
            maintainer=self.maintainer,
            copies=self.copies,
            pipelines=lambda: all_pipelines(self.settings),
            folder=self.home.folder,
            tables=self.tables,
            duckdb=self.duckdb,
            queries=self.queries,
            session=self.session,
            default_engine=self.settings.query.engine,
            arrow=self.arrow,
            time_zone=self.settings.time_zone,
            semantics=Path(self.settings.semantics or self.home.folder / FILE_NAME).expanduser(),
            agent=self.settings.agent,
            dbt_project=self.settings.dbt,
        )

    # ---- engines ------------------------------------------------------------------------------------------------

    def _start_spark(self) -> StartedSession:
        with self._status("Starting Spark"):
            return start_spark(self.backend, self._class_list)

    def _attach(self) -> StartedSession:
        with self._status("Starting Spark"):
            return start_spark(self.backend, self._class_list) if self._class_list else attach_or_start(self.backend)

    def _open_engine(self, name: str) -> Engine:
        factory = require("lakehouse.engines", name, AUTO)
        opened: Engine = factory(
            LakeEngineContext(
                tables=self.tables,
                catalog=self.catalog,
                render=for_spark,
                locate_error=map_error_position,
                log=functools.partial(logged, self.catalog),
                files=self.backend.files,
                folder=self.home.run,
                options=self.settings.engines.get(name, {}),
                settings=self.settings,
                duckdb=self.duckdb,
                session=self.session,
                check_room=self.home.check_room,
                status=self._status,
                download=self._download,
            )
        )
        return opened

    def _open_source(self, scheme: str) -> RemoteFiles:
        factory = require("lakehouse.sources", scheme)
        opened: RemoteFiles = factory(
            LakeSourceContext(self.home.run, self.settings.sources.get(scheme, {}), self.settings)
        )
        return opened

    # ---- writers ------------------------------------------------------------------------------------------------

    def ingester(self, branch: str) -> Ingester:
        """What ingests files into the tables of a branch."""
        from lakehouse.ingest.files.remote import SchemeRouter
        from lakehouse.ingest.run import Ingester

        return Ingester(
            self.tables.on(branch),
            self.catalog.on(branch) if branch else self.catalog,
            self.duckdb,
            EngineRunner(self.queries, "spark"),
            self.home.run / "ingest",
            self.memory_limit,
            SchemeRouter(self._open_source),
            self.backend.files,
        )

    def refs(self) -> Refs:
        """Branches, tags, log and publisher."""
        from lakehouse.runs.recovery import RecordedRuns
        from lakehouse.tables.replay import Replayer
        from lakehouse.versioning.branches import Branches, Refs
        from lakehouse.versioning.combine import Combiner
        from lakehouse.versioning.diff import describe_changes
        from lakehouse.versioning.log import Log
        from lakehouse.versioning.publish import Publisher

        author = author_of(self.settings)
        publisher = Publisher(
            self.catalog,
            lambda changes: [change.as_dict() for change in describe_changes(self.iceberg, changes)],
            self.settings.hooks.before_publish,
            self.settings.branches.protected,
        )
        runs = RecordedRuns(self.catalog, self._run_log())
        spark = EngineRunner(self.queries, "spark")
        replayer = Replayer(
            self.iceberg, self.duckdb, lambda request: spark.run(request, "merge"), self.home.run / "ingest"
        )
        combiner = Combiner(self.catalog, publisher, replayer, self.backend.files)
        branches = Branches(
            self.catalog, publisher, self.iceberg, self.duckdb, runs, combiner, author, self.backend.files
        )
        log = Log(self.catalog, self.iceberg, publisher, combiner, author, self.backend.files)
        return Refs(branches, log, publisher, author)

    def maintainer(self) -> Maintainer:
        """What maintains tables."""
        from lakehouse.lake.maintenance import open_maintainer

        return open_maintainer(self.backend, self.refs(), self._run_log(), EngineRunner(self.queries, "spark"))

    def runner(self) -> Runner:
        """What runs pipelines."""
        from lakehouse.runs.run import Runner
        from lakehouse.storage.raw import raw_area

        refs = self.refs()
        return Runner(
            tables=self.tables,
            catalog=self.catalog,
            publisher=refs.publisher,
            session=self.run_session,
            ingester=self.ingester,
            settings=self.settings.sources,
            store=lambda own: _store(self.settings, own),
            raw=raw_area(self.backend.settings.warehouse, self.home.folder / "raw", self.backend.settings.s3),
            log=self._run_log(),
            duckdb=self.duckdb,
            author=refs.author,
            keep_days=self.settings.runs.keep_days,
            files=self.backend.files,
        )

    def copies(self) -> LakeCopies:
        """What backs up, verifies, clones and migrates."""
        from lakehouse.lake.copies import LakeCopies

        return LakeCopies(self.backend, self.duckdb, self.tables)

    @functools.cached_property
    def _observer(self) -> Observer:
        from lakehouse.events.emitter import Events
        from lakehouse.lake.run_events import Observer

        events = Events(self.settings.events, self.home.logs)
        return Observer(
            events, self.backend.settings.warehouse, lambda name: self.tables.describe(TableName.parse(name))
        )

    def observer(self) -> Observer:
        """What reports runs and ingests; one for the lake, so that a dead receiver is noticed once."""
        return self._observer

    def run_session(self, conf: Mapping[str, str], isolated: bool) -> AbstractContextManager[SparkSession]:
        """A session for a run, in the warm Spark if one stands by; `isolated`: in a JVM of its own."""
        return self.session.own(conf, isolated)

    def _run_log(self) -> RunLog:
        from lakehouse.runs.records import RunLog

        return RunLog(self.home.folder / "runs")


def all_pipelines(settings: Settings) -> Mapping[str, Pipeline]:
    """Every pipeline that there is: ours, and those of the modules that lake.toml names."""
    from lakehouse.pipelines.registry import Pipelines

    file = settings.origins.get("pipelines", "")
    return Pipelines(settings.pipelines, Path(file).parent if file.endswith(".toml") else Path.cwd())


def _store(settings: Settings, own: Mapping[str, str]) -> RemoteFiles:
    """The object store of a pipeline's source: the lake's own, unless the pipeline's settings say otherwise."""
    from lakehouse.storage.s3 import S3

    known = {name: own[name] for name in ("endpoint", "region", "access_key", "secret_key") if own.get(name)}
    return S3(replace(settings.s3, **known))  # type: ignore[arg-type]


def _bytes(setting: str, asked_for: str) -> int:
    """A size in bytes; `auto` is half of the machine's memory."""
    if asked_for == "auto":
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    return parse_size(setting, asked_for)


def parse_size(setting: str, text: str) -> int:
    """`512MB`, `8 GB`, `8g` in bytes."""
    units = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
    digits = text.strip().lower().removesuffix("b").removesuffix("i").rstrip()
    number, unit = (digits[:-1], digits[-1]) if digits[-1:] in units and digits else (digits, "")
    try:
        return int(float(number) * units[unit])
    except ValueError as exc:
        raise BadSettingError(f"{setting} = {text!r} is not a size.", "Write it as 512MB or 8GB.") from exc
