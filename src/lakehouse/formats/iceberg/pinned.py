"""Tables that stay where they point: for a statement that reads several of them, or for what a branch once was."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from lakehouse.core.names import TableName


class Pointers(Protocol):
    """The part of a catalog that this format needs."""

    @property
    def name(self) -> str: ...

    def on(self, branch: str) -> Pointers: ...
    def tables(self) -> Sequence[TableName]: ...
    def pointer(self, table: TableName) -> str | None: ...
    def pointers(self, tables: Iterable[TableName]) -> Mapping[TableName, str | None]: ...
    def tagged(self, tag: str) -> Mapping[TableName, str] | None: ...
    def drop(self, table: TableName, at: str) -> bool: ...
    def undrop(self, table: TableName) -> bool: ...
    def dropped(self) -> Sequence[TableName]: ...


class Pinned:
    """A catalog some of whose tables stay where they were found."""

    def __init__(self, catalog: Pointers, found: Mapping[TableName, str | None]) -> None:
        self._catalog, self._found, self.name = catalog, found, catalog.name

    def pointer(self, table: TableName) -> str | None:
        return self._found[table] if table in self._found else self._catalog.pointer(table)

    def pointers(self, tables: Iterable[TableName]) -> Mapping[TableName, str | None]:
        return {table: self.pointer(table) for table in tables}

    def on(self, branch: str) -> Pointers:
        return self._catalog.on(branch)

    def tables(self) -> Sequence[TableName]:
        return self._catalog.tables()

    def tagged(self, tag: str) -> Mapping[TableName, str] | None:
        return self._catalog.tagged(tag)

    def drop(self, table: TableName, at: str) -> bool:
        return self._catalog.drop(table, at)

    def undrop(self, table: TableName) -> bool:
        return self._catalog.undrop(table)

    def dropped(self) -> Sequence[TableName]:
        return self._catalog.dropped()
