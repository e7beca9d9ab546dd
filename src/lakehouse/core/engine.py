"""The interface of a query engine, and the request that it executes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from lakehouse.core.result import Result


@dataclass(frozen=True)
class Write:
    """Where the rows of a query go when a format's own writer takes them, which may bring a schema with them.

    SQL's INSERT writes in the schema that a table has; a writer makes a new one and the rows one commit.
    """

    format: str
    location: str
    options: Mapping[str, str] = field(default_factory=dict)
    comments: Mapping[str, str] = field(default_factory=dict)
    """What the columns' comments will be, by the columns' names."""


@dataclass(frozen=True)
class QueryRequest:
    """One statement as the user wrote it, and how to answer it."""

    sql: str
    as_of: str = ""
    limit: int | None = None
    explain: bool = False
    arrow: bool = True
    """The result is for a program; otherwise for a person, who need not wait for Arrow to load."""
    branch: str = ""
    """Where the tables are; nothing means `main`."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Folders (or single files) of Parquet that the statement reads under a name."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Spark's settings for this statement alone."""
    write: Write | None = None
    """The statement is a query, and its rows are written there instead of given back."""
    lock: str = ""
    """A file that is locked while the statement runs, wherever it runs: whoever asked may be dead before it ends."""


class SparkEngine(Protocol):
    """Spark, wherever it runs: warm behind a socket, in this process, or on a cluster."""

    def query(self, request: QueryRequest, reason: str) -> Result:
        """Resolve the statement's names, run it and give its result; `reason` says why Spark was chosen."""

    def wake(self) -> None:
        """Begin to start, if that takes long: a statement will come soon."""
