"""A statement as the rest of the code sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse.core.names import TableName

if TYPE_CHECKING:
    from sqlglot import exp

#: The message and the hint.
NO_STATEMENT = ("There is no statement.", 'Try: lake sql "select 1"')


@dataclass(frozen=True)
class TableUse:
    """A table where a statement names it. `start` and `end` span the name and its AS OF clause in the text."""

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
    """`read`, `write` (rows or tables change), `drop` (of tables), `session` (SET, …), `other` (Spark's own)."""
    uses: tuple[TableUse, ...] = ()
    creates: str = ""
    """The format of the table that the statement creates: `iceberg`, `hudi`, or nothing."""
    renames: bool = False
    tree: exp.Expr | None = None
    """Not there for plain statements, which need no translation."""
