"""What a lake gives for one table: a handle on it, and its history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse.core.errors import TableError
from lakehouse.core.format import TableFormat
from lakehouse.core.names import TableName
from lakehouse.core.result import Result, html_table
from lakehouse.core.tables import Snapshot, TableInfo
from lakehouse.query.diff import Diff

if TYPE_CHECKING:
    from lakehouse.lake import Lake


class History(list[Snapshot]):
    """A table's snapshots, oldest first, that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        names = ["id", "at", "operation", "rows_added", "rows_removed", "rows_total", "source", "refs", "is_current"]
        return html_table(names, [tuple(getattr(snapshot, name) for name in names) for snapshot in self])


def described(name: TableName, table_format: TableFormat) -> TableInfo:
    try:
        return table_format.describe(name)
    except TableError as exc:
        return TableInfo(name, table_format.name, "", (), problem=exc.message)


@dataclass(frozen=True)
class Table:
    """One table of a lake."""

    lake: Lake
    name: TableName

    def describe(self) -> TableInfo:
        return self.lake.describe(str(self.name))

    def read(self, as_of: str = "", limit: int | None = None) -> Result:
        """The table's rows, now or as of a WHEN."""
        return self.lake.sql(f"SELECT * FROM {self.name}", as_of=as_of, limit=limit)

    def history(self) -> History:
        return self.lake.history(str(self.name))

    def diff(self, start: str, end: str = "", key: Sequence[str] = ()) -> Diff:
        return self.lake.diff(str(self.name), start, end, key)

    def rollback(self, when: str) -> Snapshot:
        return self.lake.rollback(str(self.name), when)

    def drop(self) -> None:
        self.lake.drop(str(self.name))

    def _repr_html_(self) -> str:
        return self.read(limit=20)._repr_html_()
