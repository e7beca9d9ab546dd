"""The parts that a lake is assembled from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse.query.route import QueryRouter
from lakehouse.tables.directory import Tables

if TYPE_CHECKING:
    from lakehouse.engines.duckdb import DuckDB
    from lakehouse.engines.spark.session import LocalSession
    from lakehouse.ingest.run import Ingester
    from lakehouse.lake.copies import LakeCopies
    from lakehouse.lake.run_events import Observer
    from lakehouse.maintenance.maintain import Maintainer
    from lakehouse.pipelines import Pipeline
    from lakehouse.runs.run import Runner
    from lakehouse.versioning.branches import Refs


@dataclass(frozen=True)
class Components:
    """Built by `lake.assemble`; what is rarely needed is built when it is first called for."""

    ingester: Callable[[str], Ingester]
    """Opens an ingester for the tables of a branch."""
    runner: Callable[[], Runner]
    observer: Callable[[], Observer]
    """Reports runs and ingests as events."""
    refs: Callable[[], Refs]
    maintainer: Callable[[], Maintainer]
    pipelines: Callable[[], Mapping[str, Pipeline]]
    copies: Callable[[], LakeCopies]
    folder: Path
    tables: Tables
    duckdb: DuckDB
    queries: QueryRouter
    session: LocalSession
    attached: LocalSession
    """For runs: in the warm Spark, if one stands by."""
    default_engine: str
    arrow: bool
    """Results are for programs; False saves loading Arrow."""
