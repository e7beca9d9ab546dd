"""Settings in, a working lake out. The only module that knows every room."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse.catalogs.sql import SqlCatalog
from lakehouse.config.load import load_settings
from lakehouse.config.profiles import resolve_profile
from lakehouse.config.serialize import dump_settings
from lakehouse.config.settings import Settings
from lakehouse.core.engine import QueryRequest, SparkEngine
from lakehouse.core.errors import BadSettingError
from lakehouse.core.format import TableFormat
from lakehouse.core.names import CATALOG
from lakehouse.core.source import RemoteFiles
from lakehouse.core.uris import file_uri
from lakehouse.engines.duckdb import DuckDB
from lakehouse.engines.spark.daemon.client import SparkDaemonClient
from lakehouse.engines.spark.session import LocalSession
from lakehouse.engines.spark.settings import WARM
from lakehouse.formats.hudi import SPARK_SETTINGS as HUDI_SETTINGS
from lakehouse.formats.iceberg import IcebergTables
from lakehouse.lake import Components, Lake
from lakehouse.lake.backend import author_of, open_backend
from lakehouse.query.route import QueryRouter
from lakehouse.query.spark import SparkStatements
from lakehouse.query.tables import Tables
from lakehouse.storage.local import LocalHome
from lakehouse.storage.s3 import is_remote

if TYPE_CHECKING:
    from lakehouse.core.result import Result
    from lakehouse.engines.spark.jars import MavenArtifact
    from lakehouse.engines.spark.java import Java
    from lakehouse.engines.spark.launch import StartedSession
    from lakehouse.ingest.run import Ingester
    from lakehouse.lake.backend import Backend
    from lakehouse.pipelines import Pipeline
    from lakehouse.runs.branches import RunBranches
    from lakehouse.runs.records import RunLog
    from lakehouse.runs.run import Runner
    from lakehouse.versioning.refs import Refs

#: Gives a function that may be told how far it is, or None.
Waiting = Callable[[str], AbstractContextManager[Callable[[str], None] | None]]
Fetching = Callable[[str], AbstractContextManager[Callable[[int, int], None] | None]]
_IN_PROCESS = "local[*]"


def open_lake(profile: str | None = None, home: str | Path | None = None, *, settings: Settings | None = None) -> Lake:
    """Open a lake: the one that lake.toml and the environment describe, unless told otherwise.

    Args:
        profile: the set of parts to use; `embedded` by default.
        home: the folder of an embedded lake; `.lake` in the working folder by default. It is made if missing.
        settings: all settings at once, instead of reading them.
    """
    return assemble(settings or load_settings({"profile": profile, "home": home}))


def _in_silence(text: str) -> AbstractContextManager[None]:
    return nullcontext()


def assemble(
    settings: Settings, *, arrow: bool = True, waiting: Waiting = _in_silence, fetching: Fetching = _in_silence
) -> Lake:
    """A lake as `assemble_components` puts it together."""
    return Lake(assemble_components(settings, arrow=arrow, waiting=waiting, fetching=fetching))


def assemble_components(
    settings: Settings,
    *,
    arrow: bool = True,
    waiting: Waiting = _in_silence,
    fetching: Fetching = _in_silence,
    class_list: Path | None = None,
) -> Components:
    """Put the parts of a lake together.

    Args:
        arrow: results are for programs; otherwise for people, who need not wait for Arrow to load.
        waiting: opened around anything that may take more than a moment, with a word on what it is.
        fetching: the same around a download; gives a function that is called with (bytes so far, bytes in all).
        class_list: have a Spark of this process list the classes it loads (how `lake setup` trains the archive).
    """
    parts = open_backend(settings)
    settings, home, catalog = parts.settings, parts.home, parts.catalog
    iceberg = IcebergTables(catalog, parts.files)
    formats: list[TableFormat] = [iceberg, *([parts.hudi] if parts.hudi else [])]
    tables = Tables(formats, catalog.has_view, catalog.branches, settings.branches.protected)
    memory = _bytes("query.memory_limit", settings.query.memory_limit)
    duckdb = DuckDB(memory, home.run / "spill", parts.duckdb_access)

    def start() -> StartedSession:
        with waiting("Starting Spark"):
            return start_spark(parts, class_list)

    session = LocalSession(start, HUDI_SETTINGS)
    spark: SparkEngine
    if settings.spark.master == WARM:
        spark = spark_daemon(settings, waiting, fetching)
    else:
        # The SQL catalog's log is our own; the others keep one of every commit, or none.
        statements = catalog if isinstance(catalog, SqlCatalog) else None
        spark = SparkStatements(tables, session, catalog, home.check_room, statements)

    def trino(request: QueryRequest) -> Result:
        from lakehouse.engines.trino import Trino
        from lakehouse.query.trino import TrinoStatements

        return TrinoStatements(tables, Trino(settings.trino), waiting).query(request)

    def ingester(branch: str = "") -> Ingester:
        # Imported when files come: a cold query need not wait for what reads them.
        from lakehouse.ingest.run import Ingester
        from lakehouse.storage.s3 import S3

        here = catalog.on(branch) if branch else catalog
        return Ingester(
            tables.on(branch), here, duckdb, spark, home.run / "ingest", memory, S3(settings.s3), parts.files
        )

    def refs() -> Refs[RunBranches]:
        from lakehouse.runs.branches import RunBranches
        from lakehouse.versioning.diff import tell_changes
        from lakehouse.versioning.log import Log
        from lakehouse.versioning.publish import Publisher
        from lakehouse.versioning.refs import Refs

        author = author_of(settings)
        publisher = Publisher(
            catalog,
            lambda changes: [change.as_dict() for change in tell_changes(iceberg, changes)],
            settings.hooks.before_publish,
            settings.branches.protected,
        )
        branches = RunBranches(catalog, publisher, iceberg, duckdb, author, runs=run_log())
        return Refs(branches, Log(catalog, iceberg, publisher, author), publisher, author)

    def run_log() -> RunLog:
        from lakehouse.runs.records import RunLog

        return RunLog(home.folder / "runs")

    def runner() -> Runner:
        from lakehouse.runs.run import Runner

        opened = refs()
        return Runner(
            tables=tables,
            catalog=catalog,
            publisher=opened.publisher,
            session=session.own,
            ingester=ingester,
            settings=settings.sources,
            store=lambda own: _store(settings, own),
            raw=home.folder / "raw",
            log=run_log(),
            author=opened.author,
            keep_days=settings.runs.keep_days,
            files=parts.files,
        )

    return Components(
        ingester=ingester,
        runner=runner,
        refs=refs,
        pipelines=lambda: all_pipelines(settings),
        folder=home.folder,
        tables=tables,
        duckdb=duckdb,
        spark=spark,
        queries=QueryRouter(
            tables,
            duckdb,
            spark,
            _bytes("query.largest_scan", settings.query.largest_scan),
            trino if settings.trino.url else None,
        ),
        session=session,
        default_engine=settings.query.engine,
        arrow=arrow,
    )


def all_pipelines(settings: Settings) -> dict[str, Pipeline]:
    """Every pipeline that there is: ours, and those of the modules that lake.toml names."""
    from lakehouse.pipelines.registry import find_pipelines

    file = settings.origins.get("pipelines", "")
    return find_pipelines(settings.pipelines, Path(file).parent if file.endswith(".toml") else Path.cwd())


def _store(settings: Settings, own: Mapping[str, str]) -> RemoteFiles:
    """The object store of a pipeline's source: the lake's own, unless the pipeline's settings say otherwise."""
    from lakehouse.storage.s3 import S3

    known = {name: own[name] for name in ("endpoint", "region", "access_key", "secret_key") if own.get(name)}
    return S3(replace(settings.s3, **known))  # type: ignore[arg-type]


def spark_daemon(
    settings: Settings, waiting: Waiting = _in_silence, fetching: Fetching = _in_silence
) -> SparkDaemonClient:
    """The lake's background Spark, running or not."""
    home = LocalHome(settings.home)
    in_process = replace(settings, spark=replace(settings.spark, master=_IN_PROCESS))
    return SparkDaemonClient(
        run_folder=home.run,
        log=home.logs / "spark.log",
        start=[sys.executable, "-m", "lakehouse.lake.daemon"],
        serialized=dump_settings(in_process),
        waiting=waiting,
        before_start=lambda: fetch_runtime(settings, fetching),
    )


def fetch_runtime(settings: Settings, fetching: Fetching = _in_silence) -> tuple[Java, list[Path]]:
    """The Java and the jars that Spark runs on, fetched if they are missing."""
    from lakehouse.engines.spark.jars import ensure_jars
    from lakehouse.engines.spark.java import find_java

    java = find_java(settings.spark.java_home)
    with fetching("Fetching jars") as progress:
        return java, ensure_jars(settings.cache, lambda: java, settings.maven_repo, progress, jars_for(settings))


def jars_for(settings: Settings) -> tuple[MavenArtifact, ...]:
    """The jars that Spark needs beside its own for this lake."""
    from lakehouse.engines.spark.jars import EMBEDDED, ICEBERG_AWS, S3A

    return (*EMBEDDED, *(S3A if _reads_s3(settings) else ()), *(ICEBERG_AWS if _writes_s3(settings) else ()))


def _reads_s3(settings: Settings) -> bool:
    """Whether Spark itself reads from an object store: some pipeline's source, or a Hudi table, lies there."""
    on_hive = resolve_profile(settings).catalog.kind == "hive"  # where Hudi's tables lie in an object store
    return on_hive or any(own.get("path", "").startswith("s3://") for own in settings.sources.values())


def _writes_s3(settings: Settings) -> bool:
    """Whether the lake's own tables lie there."""
    return is_remote(resolve_profile(settings).warehouse)


def start_spark(parts: Backend, class_list: Path | None = None) -> StartedSession:
    """A session on whatever spark.master names; what it needs on this machine is fetched first."""
    from lakehouse.engines.spark.archive import find_archive
    from lakehouse.engines.spark.java import heap_for
    from lakehouse.engines.spark.launch import JDK_NET, LaunchOptions, connect, start_session

    settings, home = parts.settings, parts.home
    master = _IN_PROCESS if settings.spark.master == WARM else settings.spark.master
    if master.startswith("sc://"):
        return connect(master)
    parts.catalog.ready()
    java, jars = fetch_runtime(settings)
    conf = {**spark_conf(parts), "spark.master": master, **settings.spark.conf}
    if not master.startswith("local"):
        # Executors on other machines get the jars from the driver, and may run on a Java that is cut down like ours.
        conf["spark.jars"] = ",".join(str(jar) for jar in (*jars, JDK_NET))
        if "spark.authenticate.secret" not in conf:
            # A cluster's secret is one that all of it was given; one made up here would be the driver's alone.
            conf["spark.authenticate"] = settings.spark.conf.get("spark.authenticate", "false")
    launch = LaunchOptions(
        java=java,
        jars=jars,
        heap=heap_for(settings.spark.driver_memory),
        conf=conf,
        log=home.logs / "spark.log",
        archive=find_archive(settings.cache, java, jars),
        class_list=class_list,
    )
    return start_session(launch)


def spark_conf(parts: Backend) -> Mapping[str, str]:
    """Everything a Spark session needs to be this lake's: the catalog, both formats, loopback only, UTC."""
    home = parts.home
    return {
        "spark.app.name": f"lakehouse {home.folder}",
        **parts.catalog.spark_conf(),
        "spark.sql.defaultCatalog": CATALOG,
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions,"
        "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.sql.warehouse.dir": file_uri(home.warehouse),
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # One task per core: the default of 200 makes 200 files of 3 rows. Adaptive execution still splits large ones.
        "spark.sql.shuffle.partitions": str(max(os.cpu_count() or 1, 2)),
        # Java does not compile methods beyond this size, and Spark makes such of a table's dozen rules: interpreted, they took
        # three times as long. Beyond it, Spark takes smaller steps instead.
        "spark.sql.codegen.hugeMethodLimit": "8000",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.authenticate": "true",
        "spark.ui.enabled": "false",
        "spark.local.dir": str(home.run / "spark"),
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.catalogImplementation": "in-memory",
        # Each session would remember a Hudi table's schema and files, and only one of them is told when they change.
        "spark.sql.filesourceTableRelationCacheSize": "0",
        **parts.spark,
    }


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
