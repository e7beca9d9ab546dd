"""A parsed SQL statement: its kind, and the tables it names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from lakehouse.core.dataclass import dataclass
from lakehouse.core.names import TableName
from lakehouse.core.tables import Column, Scan


@dataclass(frozen=True)
class TableUse:
    """A table reference in a statement. `start` and `end` span the name and its AS OF clause in the text."""

    name: TableName
    start: int
    end: int
    as_of: str = ""
    metadata_table: str = ""
    alias: str = ""
    is_target: bool = False


@dataclass(frozen=True)
class Statement:
    """A parsed statement."""

    text: str
    kind: str
    """`read`, `write` (changes rows or tables), `drop` (drops tables), `session` (SET, …), `other` (Spark's own)."""
    uses: tuple[TableUse, ...] = ()
    creates: str = ""
    """The format of the table that the statement creates: `iceberg`, `hudi`, or empty."""
    renames: bool = False
    truncates: bool = False
    tree: Any = None
    """The syntax tree: our own (query/sql/ast.py) of a query that DuckDB may run, sqlglot's of every other statement."""
    untranslated: str = ""
    """Why a query has no tree of our own: the part of it that DuckDB is not shown to answer as Spark does."""


@dataclass(frozen=True)
class Translation:
    """A query in DuckDB's SQL that gives Spark's answer."""

    sql: str
    columns: tuple[Column, ...]
    """Spark's names and types."""
    views: Mapping[str, Scan]
    """What each table name in the SQL reads."""
    may_fail: bool = True
    """DuckDB may fail on values that Spark answers, so no row is handed out before it is done."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Values of `$name` in the SQL."""
