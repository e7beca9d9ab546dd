"""The parts of a lake that a run works with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse.core.catalog import Catalog
from lakehouse.core.files import LOCAL, Files
from lakehouse.core.raw import RawArea
from lakehouse.core.source import RemoteFiles
from lakehouse.runs.records import RunLog
from lakehouse.tables.directory import Tables
from lakehouse.versioning.publish import Publisher

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakehouse.engines.duckdb import DuckDB
    from lakehouse.ingest.run import Ingester


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
