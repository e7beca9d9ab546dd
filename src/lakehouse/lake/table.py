"""A handle on one table, and its history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import TableError
from lakehouse.core.format import TableFormat
from lakehouse.core.names import TableName
from lakehouse.core.result import Result, html_table
from lakehouse.core.tables import Snapshot, TableInfo

if TYPE_CHECKING:
    from lakehouse.tables.diff import Diff


class History(list[Snapshot]):
    """A table's snapshots, oldest first, with HTML for notebooks."""

    def _repr_html_(self) -> str:
        names = ["id", "at", "operation", "rows_added", "rows_removed", "rows_total", "source", "refs", "is_current"]
        return html_table(names, [tuple(getattr(snapshot, name) for name in names) for snapshot in self])


class TableOperations(Protocol):
    """The operations of a lake that a table handle uses."""

    def sql(self, query: str, *, as_of: str = "", limit: int | None = None) -> Result: ...
    def describe(self, name: str) -> TableInfo: ...
    def history(self, name: str) -> History: ...
    def diff(self, name: str, start: str, end: str = "", key: Sequence[str] = ()) -> Diff: ...
    def rollback(self, name: str, when: str) -> Snapshot: ...
    def drop(self, name: str) -> None: ...


def describe_or_problem(name: TableName, table_format: TableFormat) -> TableInfo:
    """Describe a table; if it cannot be read, the reason is in `problem`."""
    try:
        return table_format.describe(name)
    except TableError as exc:
        return TableInfo(name, table_format.name, "", (), problem=exc.message)


@dataclass(frozen=True)
class Table:
    """One table of a lake, as `Lake.table` returns it: its methods are those of the lake, without the name.

    >>> leads = lake.table("crm.leads")
    >>> len(leads.read()), len(leads.history())
    (3, 2)
    """

    lake: TableOperations
    name: TableName

    def describe(self) -> TableInfo:
        """Schema, partitioning, key and current snapshot."""
        return self.lake.describe(str(self.name))

    def read(self, as_of: str = "", limit: int | None = None) -> Result:
        """The table's rows, now or as of a WHEN."""
        return self.lake.sql(f"SELECT * FROM {self.name}", as_of=as_of, limit=limit)

    def history(self) -> History:
        """Every snapshot, oldest first."""
        return self.lake.history(str(self.name))

    def diff(self, start: str, end: str = "", key: Sequence[str] = ()) -> Diff:
        """The rows and columns that changed between two WHENs (`end` defaults to now)."""
        return self.lake.diff(str(self.name), start, end, key)

    def rollback(self, when: str) -> Snapshot:
        """Restore the table to a WHEN."""
        return self.lake.rollback(str(self.name), when)

    def drop(self) -> None:
        """Drop the table softly; `Lake.undrop` restores it."""
        self.lake.drop(str(self.name))

    def _repr_html_(self) -> str:
        return self.read(limit=20)._repr_html_()
