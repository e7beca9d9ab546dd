"""Find tables by name, whatever their format."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from lakehouse.core.errors import (
    BranchProtectedError,
    NoSuchBranchError,
    NoSuchTableError,
    NotDroppedError,
    TableExistsError,
)
from lakehouse.core.format import TableFormat
from lakehouse.core.names import MAIN, TableName, nearest
from lakehouse.core.tables import Drop, TableInfo


class Tables:
    """The tables of a lake on one branch."""

    def __init__(
        self,
        formats: Sequence[TableFormat],
        is_view: Callable[[TableName], bool],
        branches: Callable[[], Sequence[str]] = tuple,
        protected: Sequence[str] = (),
        branch: str = MAIN,
        views: Callable[[], Sequence[TableName]] = tuple,
    ) -> None:
        """
        Args:
            branches: lists the branch names.
            protected: branches that only checked runs may change.
            branch: the branch of these tables.
            views: lists the views of main.
        """
        self.formats: Mapping[str, TableFormat] = {table_format.name: table_format for table_format in formats}
        self.is_view, self.branches, self.protected, self.branch = is_view, branches, protected, branch
        self._views = views

    def on(self, branch: str) -> Tables:
        """The tables of a branch, without checking that it exists."""
        if not branch or branch == MAIN:
            return self
        return self._with([table_format.on(branch) for table_format in self.formats.values()], branch)

    def pinned(self, names: Sequence[TableName]) -> Tables:
        """Pin these tables to their current snapshots, for a statement that reads several of them."""
        # A format without branches has no publish that changes several tables at once.
        formats = [
            table_format.pin(names) if table_format.capabilities.branch else table_format
            for table_format in self.formats.values()
        ]
        return self._with(formats, self.branch)

    def _with(self, formats: Sequence[TableFormat], branch: str) -> Tables:
        return Tables(formats, self.is_view, self.branches, self.protected, branch, self._views)

    def check_writable(self) -> None:
        """Raise BranchProtectedError if only checked runs may change this branch."""
        if self.branch in self.protected:
            raise BranchProtectedError(
                f"{self.branch} is protected (branches.protected): only checked runs change it.",
                "Use a branch (lake branch create NAME, lake --branch NAME …), or run a pipeline: lake run NAME",
            )

    def on_existing(self, branch: str) -> Tables:
        """The tables of a branch; raises NoSuchBranchError."""
        if branch and branch != MAIN and branch not in self.branches():
            known = [MAIN, *self.branches()]
            raise NoSuchBranchError(f"There is no branch {branch}.", f"There are: {', '.join(known[:10])}.")
        return self.on(branch)

    def all(self) -> list[tuple[TableName, TableFormat]]:
        """Every table with its format, sorted by name."""
        tables = [(name, table_format) for table_format in self.formats.values() for name in table_format.tables()]
        return sorted(tables, key=lambda entry: entry[0])

    def views(self) -> Sequence[TableName]:
        """Every view, sorted by name; none on a branch, where a view would read main's tables."""
        return self._views() if self.branch == MAIN else ()

    def find(self, name: TableName) -> TableFormat | None:
        """The format of a table; None if there is no such table."""
        return next((table_format for table_format in self.formats.values() if table_format.has(name)), None)

    def format_of(self, name: TableName) -> TableFormat:
        """The format of a table; raises NoSuchTableError."""
        table_format = self.find(name)
        if table_format is None:
            known = [str(table) for table, _ in self.all()]
            raise NoSuchTableError(str(name), nearest(str(name), known), total=len(known))
        return table_format

    def drop(self, name: TableName) -> None:
        """Drop a table softly."""
        self.check_writable()
        self.format_of(name).drop(name)

    def undrop(self, name: TableName, drop: str = "") -> TableFormat:
        """Restore the table that was dropped last under a name, or by the drop of an id."""
        self.check_writable()
        if (taken := self.find(name)) is not None:
            raise TableExistsError(
                f"There is a table {name} ({taken.name}), so the dropped one cannot be restored.",
                f"Drop or rename the existing one first: lake drop {name}",
            )
        for table_format in self.formats.values():
            if table_format.undrop(name, drop):
                return table_format
        known = [str(table) for table in self.dropped()]
        if drop and str(name) in known:
            ids = [f"{other.id} ({other.at})" for other in self.drops() if other.table == name]
            raise NotDroppedError(f"There is no drop {drop} of {name}.", f"There are: {', '.join(ids)}.")
        hint = f"Dropped tables: {', '.join(known)}." if known else "No table was dropped."
        raise NotDroppedError(f"There is no dropped table {name}.", hint)

    def dropped(self) -> list[TableName]:
        """The tables that `undrop` can restore."""
        return sorted(name for table_format in self.formats.values() for name in table_format.dropped())

    def drops(self) -> list[Drop]:
        """All that `undrop` can restore, with the ids and times of the drops."""
        drops = [drop for table_format in self.formats.values() for drop in table_format.drops()]
        return sorted(drops, key=lambda drop: (drop.table, drop.at))

    def describe(self, name: TableName) -> TableInfo:
        return self.format_of(name).describe(name)

    def snapshot_at(self, name: TableName, when: str) -> str:
        """The snapshot id of a WHEN; empty for the current one."""
        return self.format_of(name).resolve(name, when, datetime.now(UTC)) if when else ""
