"""Open engines and sources by name, built in or of an installed package: each factory gets a context with the lake.

What only the built-in ones need (the settings of all, the Spark session, DuckDB) is in contexts of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING

from lakehouse.config.settings import Settings
from lakehouse.core.dataclass import dataclass
from lakehouse.core.engine import Engine, EngineContext
from lakehouse.core.errors import BadSettingError
from lakehouse.core.files import SourceContext
from lakehouse.engines.duckdb import DuckDB, DuckDBEngine
from lakehouse.engines.spark.session import LocalSession
from lakehouse.engines.spark.settings import WARM
from lakehouse.lake.spark import DownloadReporter, StatusReporter, spark_daemon

if TYPE_CHECKING:
    from lakehouse.storage.s3 import S3


@dataclass(frozen=True)
class LakeEngineContext(EngineContext):
    """The context of the built-in engines."""

    settings: Settings
    duckdb: DuckDB
    session: LocalSession
    check_room: Callable[[], None]
    """Raises if the disk is full."""
    status: StatusReporter
    download: DownloadReporter


@dataclass(frozen=True)
class LakeSourceContext(SourceContext):
    """The context of the built-in sources."""

    settings: Settings = field(repr=False)


def open_duckdb(context: LakeEngineContext) -> DuckDBEngine:
    """DuckDB in this process."""
    return DuckDBEngine(context.duckdb)


def open_spark(context: LakeEngineContext) -> Engine:
    """The lake's warm Spark, or the one that `spark.master` names."""
    if context.settings.spark.master == WARM:
        return spark_daemon(context.settings, context.status, context.download)
    from lakehouse.engines.spark.engine import SparkEngine

    has_jvm = not context.settings.spark.master.startswith("sc://")
    return SparkEngine(context, context.session, context.check_room, context.folder / "ingest", marks_commits=has_jvm)


def open_trino(context: LakeEngineContext) -> Engine:
    """The Trino at `trino.url`."""
    from lakehouse.engines.trino import Trino
    from lakehouse.engines.trino.engine import TrinoEngine

    if not context.settings.trino.url:
        raise BadSettingError(
            "trino.url is not set, so there is no Trino to connect to.",
            "Set it (LAKE_TRINO__URL=http://127.0.0.1:8085), or use a profile that has one: lake --profile sql up",
        )
    return TrinoEngine(context, Trino(context.settings.trino), context.status)


def open_s3(context: LakeSourceContext) -> S3:
    """The object store of `[s3]`."""
    from lakehouse.storage.s3 import S3

    return S3(context.settings.s3)
