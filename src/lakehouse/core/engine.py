"""The interface of a query engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import field
from pathlib import Path
from typing import Protocol

from lakehouse.core.catalog import Catalog
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import QueryRejectedError
from lakehouse.core.files import Files
from lakehouse.core.format import TableDirectory
from lakehouse.core.names import TableName
from lakehouse.core.requests import QueryRequest
from lakehouse.core.result import Result
from lakehouse.core.statement import Statement, TableUse, Translation
from lakehouse.core.tables import Scan


@dataclass(frozen=True)
class EngineCapabilities:
    """What an engine can do. Callers ask for capabilities, never for a class."""

    writes: bool = False
    dialect: str = "spark"
    """The SQL dialect of the statements that users write for it."""
    scans: bool = False
    """Reads tables from the scans that it is given; otherwise it finds tables itself."""
    lake_only: bool = False
    """Finds tables itself, but none outside the lake. Keys with limits may use only this and `scans`."""
    translated: bool = False
    """Runs queries that are translated to DuckDB's SQL, and only those whose answer is shown to be Spark's."""
    marks_commits: bool = False
    """Notes the mark of a request in the snapshot of its commit, where the format has a place for it."""


@dataclass(frozen=True)
class Query:
    """A statement that has been parsed and allowed, ready to run."""

    request: QueryRequest
    reason: str
    """Why this engine was chosen, for EXPLAIN."""
    statement: Statement
    scans: Mapping[TableUse, Scan] = field(default_factory=dict)
    """How to read each table, for engines with the capability `scans`."""
    translation: Translation | None = None
    """For engines with the capability `translated`."""
    views: tuple[TableName, ...] = ()
    """The names in the statement that are views. Rights were checked for these: no other name may be read as a view."""


@dataclass(frozen=True)
class EngineContext:
    """What the factory of an engine gets: the lake, and the settings of the engine's own."""

    tables: TableDirectory
    catalog: Catalog
    render: Callable[[Statement, Mapping[int, str]], str]
    """The text of a statement, with new names for the tables at some positions."""
    locate_error: Callable[[QueryRejectedError, Statement], QueryRejectedError]
    """The same error, with its position in the user's text instead of the rendered one."""
    log: Callable[[Statement, QueryRequest], AbstractContextManager[None]]
    """Entered while a statement runs: adds what it commits to the lake's log."""
    files: Files
    """Reads metadata files of the warehouse."""
    folder: Path
    """A local folder for temporary files."""
    options: Mapping[str, str] = field(repr=False)  # it may hold a password
    """The settings under `[engines.NAME]`; `lakehouse.core.setting.read_options` checks them."""


class Engine(Protocol):
    """Runs statements: DuckDB, Spark, Trino, or an engine that a package registers under `lakehouse.engines`."""

    @property
    def name(self) -> str:
        """What `--engine` calls it."""

    @property
    def capabilities(self) -> EngineCapabilities: ...

    def run(self, query: Query) -> Result:
        """Run a statement and return its result."""

    def prepare(self) -> None:
        """Start loading in the background, because a statement follows soon."""


#: What an entry point of the group `lakehouse.engines` names.
EngineFactory = Callable[[EngineContext], Engine]


class SparkRunner(Protocol):
    """Runs statements on Spark, wherever it is: in the daemon, in this process or on a cluster."""

    def run(self, request: QueryRequest, reason: str) -> Result: ...
    def prepare(self) -> None: ...


def job_group() -> str:
    """The name of all jobs of this process in an engine that it shares with others."""
    return f"lake-{os.getpid()}"
