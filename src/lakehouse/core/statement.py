"""A parsed SQL statement: its kind, and the tables it names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lakehouse.core.names import TableName


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
    """sqlglot's syntax tree; None for plain statements, which need no translation."""
