"""The Spark of a lake: its jars, its settings, a session in this process or the daemon."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse.agent import AgentSettings
from lakehouse.config.load import dump_settings
from lakehouse.config.profiles import resolve_profile
from lakehouse.config.settings import ServeSettings, Settings, ShellSettings
from lakehouse.core.files import file_uri
from lakehouse.core.names import CATALOG
from lakehouse.engines.spark.daemon.client import SparkDaemonClient
from lakehouse.engines.spark.settings import WARM
from lakehouse.events import EventSettings
from lakehouse.lake.backend import Backend, open_backend
from lakehouse.process.daemons import module_command
from lakehouse.storage.local import LocalHome
from lakehouse.storage.s3 import is_remote

if TYPE_CHECKING:
    from lakehouse.core.clients import MavenArtifact
    from lakehouse.engines.spark.java import Java
    from lakehouse.engines.spark.launch import StartedSession

#: Entered while something takes long; yields a function to update the description, or None.
StatusReporter = Callable[[str], AbstractContextManager[Callable[[str], None] | None]]
#: Entered around a download; yields a function to call with (bytes done, bytes in total), or None.
DownloadReporter = Callable[[str], AbstractContextManager[Callable[[int, int], None] | None]]
_IN_PROCESS = "local[*]"
_RETAINED = "100"


def silent(description: str) -> AbstractContextManager[None]:
    """Report nothing."""
    return nullcontext()


def spark_daemon(
    settings: Settings, status: StatusReporter = silent, download: DownloadReporter = silent
) -> SparkDaemonClient:
    """The client of the lake's Spark daemon, which may or may not be running."""
    home = LocalHome(settings.home)
    # What depends on the working folder, or is used by a run that attaches to the daemon, must not decide whether the daemon is
    # current. Of the sources, it needs their jars.
    sources = {"s3": {"path": "s3://"}} if _has_sources_in_s3(settings) else {}
    spark = replace(settings.spark, master=_IN_PROCESS)
    in_process = replace(
        settings,
        spark=spark,
        pipelines=(),
        sources=sources,
        dbt=home.folder / "dbt",
        serve=ServeSettings(),
        shell=ShellSettings(),
        events=EventSettings(),
        agent=AgentSettings(),
        auth=True,
        url="",
        key="",
        allow_http=False,
    )
    return SparkDaemonClient(
        run_folder=home.run,
        log=home.logs / "spark.log",
        start=module_command("lakehouse.lake.daemon"),
        serialized=dump_settings(in_process, sources=True),
        status=status,
        before_start=lambda: fetch_runtime(settings, download),
    )


def fetch_runtime(settings: Settings, download: DownloadReporter = silent) -> tuple[Java, list[Path]]:
    """The Java and the jars that Spark needs, downloaded if missing."""
    from lakehouse.engines.spark.jars import ensure_jars
    from lakehouse.engines.spark.java import find_java

    java = find_java(settings.spark.java_home)
    with download("Downloading jars") as progress:
        jars = jars_for(open_backend(settings, create=False))
        return java, ensure_jars(settings.cache, settings.maven_repo, progress, jars)


def jars_for(backend: Backend) -> tuple[MavenArtifact, ...]:
    """The jars that this lake needs in addition to Spark's own."""
    from lakehouse.engines.spark.jars import EMBEDDED, ICEBERG_AWS, S3A

    hudi_in_bucket = backend.is_remote and "hudi" in backend.formats
    s3a = S3A if hudi_in_bucket or _has_sources_in_s3(backend.settings) else ()
    return (*EMBEDDED, *s3a, *(ICEBERG_AWS if backend.is_remote else ()), *backend.catalog.spark_jars())


def _has_sources_in_s3(settings: Settings) -> bool:
    """Whether Spark reads a pipeline's source or the raw area from an object store by itself."""
    in_bucket = any(own.get("path", "").startswith("s3://") for own in settings.sources.values())
    return in_bucket or (is_remote(resolve_profile(settings).warehouse) and any(settings.sources.values()))


def start_spark(backend: Backend, class_list: Path | None = None) -> StartedSession:
    """Start a session on spark.master, after downloading what it needs on this machine."""
    from lakehouse.engines.spark.archive import find_archive
    from lakehouse.engines.spark.java import heap_for
    from lakehouse.engines.spark.launch import JDK_NET, LaunchOptions, connect, start_session

    settings, home = backend.settings, backend.home
    master = _IN_PROCESS if settings.spark.master == WARM else settings.spark.master
    if master.startswith("sc://"):
        return connect(master)
    backend.catalog.ensure_ready()
    java, jars = fetch_runtime(settings)
    conf = {**spark_conf(backend), "spark.master": master, **settings.spark.conf}
    if not master.startswith("local"):
        # Executors on other machines get the jars from the driver; their Java may lack the same modules as ours.
        conf["spark.jars"] = ",".join(str(jar) for jar in (*jars, JDK_NET))
        if "spark.authenticate.secret" not in conf:
            # A generated secret would be known to the driver only; a cluster needs one that all its nodes have.
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


def spark_key(backend: Backend) -> str:
    """Identifies the Spark that a lake needs: lakes of one process with the same key share it. Empty for Spark Connect."""
    settings = backend.settings.spark
    if settings.master.startswith("sc://"):
        return ""
    return repr((settings.master, settings.driver_memory, settings.java_home, settings.conf, spark_conf(backend)))


def attach_or_start(backend: Backend) -> StartedSession:
    """A session in the lake's warm Spark, if one stands by with the same settings, else in a JVM of its own.

    Somebody at a terminal will run again, so the warm Spark is started for them; a job of cron or CI leaves no process behind.
    """
    is_warm = backend.settings.spark.master == WARM
    lease = spark_daemon(backend.settings).lease(start=sys.stderr.isatty()) if is_warm else None
    if lease is None:
        return start_spark(backend)
    from lakehouse.engines.spark.attach import attach
    from lakehouse.engines.spark.launch import StartedSession

    return StartedSession(attach(lease), lease=lease)


def spark_conf(backend: Backend) -> Mapping[str, str]:
    """The Spark settings of this lake: its catalog, both formats, loopback only, UTC."""
    home, catalog = backend.home, backend.catalog.spark_conf()
    return {
        "spark.app.name": f"lakehouse {home.folder}",
        # Without a client for the catalog, Spark has only those of branches.
        **({"spark.sql.defaultCatalog": CATALOG} if catalog else {}),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions,"
        "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.sql.warehouse.dir": file_uri(home.warehouse),
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        # `${env:…}` in a statement would be replaced after the guard has read it.
        "spark.sql.variable.substitute": "false",
        "spark.sql.session.timeZone": "UTC",
        # Bounds leave NaN out, which is the largest number.
        "spark.sql.iceberg.aggregate-push-down.enabled": "false",
        # The files of the lake follow the proleptic calendar, as DuckDB and Iceberg do. Spark asks, because its own once did not.
        **{
            f"spark.sql.{kind}RebaseModeIn{direction}": "CORRECTED"
            for kind in ("parquet.datetime", "parquet.int96", "avro.datetime")
            for direction in ("Read", "Write")
        },
        # Hudi writes changed files through Avro, whose old layout of lists has no place for a NULL in one.
        "spark.hadoop.parquet.avro.write-old-list-structure": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # One task per core: the default of 200 writes 200 tiny files. Adaptive execution still splits large shuffles.
        "spark.sql.shuffle.partitions": str(max(os.cpu_count() or 1, 2)),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.authenticate": "true",
        "spark.ui.enabled": "false",
        # What only the pages of Spark's UI show, of the last jobs and statements: the defaults keep 1 MB a run in a warm Spark.
        "spark.ui.retainedJobs": _RETAINED,
        "spark.ui.retainedStages": _RETAINED,
        "spark.ui.retainedTasks": _RETAINED,
        "spark.sql.ui.retainedExecutions": _RETAINED,
        "spark.local.dir": str(home.run / "spark"),
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.catalogImplementation": "in-memory",
        # Otherwise each session caches the schema and files of Hudi tables, and only one of them is invalidated.
        "spark.sql.filesourceTableRelationCacheSize": "0",
        **catalog,
        **backend.spark,
    }
