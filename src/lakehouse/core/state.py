"""The whole content of a catalog as plain data: what a backup holds, and what another catalog can take."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import asdict, field, replace
from typing import Any

from lakehouse.core.dataclass import dataclass
from lakehouse.core.names import MAIN, TableName
from lakehouse.core.refs import Change, Commit, LogEntry, ReachableFile, Ref

Namespaces = Mapping[str, Mapping[str, str]]
"""The properties of each namespace."""
Move = Callable[[str], str]


@dataclass(frozen=True)
class TableEntry:
    """A table or a view and its pointer."""

    table: TableName
    pointer: str
    is_view: bool = False


@dataclass(frozen=True)
class BranchState:
    """A branch: its tables, and those that it was created with."""

    ref: Ref
    tables: tuple[TableEntry, ...] = ()
    base: tuple[TableEntry, ...] = ()
    namespaces: Namespaces = field(default_factory=dict)


@dataclass(frozen=True)
class TagState:
    """A tag and the tables that it holds."""

    ref: Ref
    tables: tuple[TableEntry, ...] = ()


@dataclass(frozen=True)
class DroppedTable:
    """A table that `undrop` can restore."""

    branch: str
    entry: TableEntry
    at: str = ""


@dataclass(frozen=True)
class CatalogState:
    """Main, branches, tags, dropped tables and the log of a catalog, all of one moment."""

    main: tuple[TableEntry, ...] = ()
    namespaces: Namespaces = field(default_factory=dict)
    branches: tuple[BranchState, ...] = ()
    tags: tuple[TagState, ...] = ()
    dropped: tuple[DroppedTable, ...] = ()
    """The earliest drop first."""
    log: tuple[LogEntry, ...] = ()
    """The oldest entry first."""
    missing: tuple[str, ...] = ()
    """What the catalog could not tell."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing that another state could overwrite."""
        return not (self.main or self.branches or self.tags or self.dropped or self.log)

    def entries(self) -> Iterator[tuple[str, TableEntry]]:
        """Yield every table of main, a branch, a tag or the dropped ones, with the name of what refers to it."""
        yield from ((MAIN, entry) for entry in self.main)
        for branch in self.branches:
            yield from ((f"branch {branch.ref.name}", entry) for entry in branch.tables)
            yield from ((f"base of {branch.ref.name}", entry) for entry in branch.base)
        for tag in self.tags:
            yield from ((f"tag {tag.ref.name}", entry) for entry in tag.tables)
        yield from (("dropped", table.entry) for table in self.dropped)

    def logged(self) -> Iterator[ReachableFile]:
        """Yield what the log refers to. Its files may have expired."""
        for entry in self.log:
            for change in entry.tables:
                for pointer in filter(None, (change.before, change.after)):
                    yield ReachableFile(change.table, pointer, f"log {entry.id}")

    def moved(self, move: Move) -> CatalogState:
        """Return the same state with other pointers."""
        return replace(
            self,
            main=_moved(self.main, move),
            branches=tuple(
                replace(branch, tables=_moved(branch.tables, move), base=_moved(branch.base, move))
                for branch in self.branches
            ),
            tags=tuple(replace(tag, tables=_moved(tag.tables, move)) for tag in self.tags),
            dropped=tuple(
                replace(table, entry=replace(table.entry, pointer=move(table.entry.pointer))) for table in self.dropped
            ),
            log=tuple(
                replace(entry, tables=tuple(_moved_change(change, move) for change in entry.tables))
                for entry in self.log
            ),
        )

    def without(self, pointers: Container[str]) -> CatalogState:
        """Return the state without the tables that have one of these pointers; the log stays."""
        return replace(
            self,
            main=_without(self.main, pointers),
            branches=tuple(
                replace(branch, tables=_without(branch.tables, pointers), base=_without(branch.base, pointers))
                for branch in self.branches
            ),
            tags=tuple(replace(tag, tables=_without(tag.tables, pointers)) for tag in self.tags),
            dropped=tuple(table for table in self.dropped if table.entry.pointer not in pointers),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the state for JSON."""
        return asdict(self)


def state_from_dict(data: Mapping[str, Any]) -> CatalogState:
    """Return the state that `as_dict` was called on."""
    return CatalogState(
        main=_entries(data["main"]),
        namespaces=data["namespaces"],
        branches=tuple(
            BranchState(
                Ref(**branch["ref"]), _entries(branch["tables"]), _entries(branch["base"]), branch["namespaces"]
            )
            for branch in data["branches"]
        ),
        tags=tuple(TagState(Ref(**tag["ref"]), _entries(tag["tables"])) for tag in data["tags"]),
        dropped=tuple(DroppedTable(table["branch"], _entry(table["entry"]), table["at"]) for table in data["dropped"]),
        log=tuple(_log_entry(entry) for entry in data["log"]),
        missing=tuple(data.get("missing", ())),
    )


def _log_entry(data: Mapping[str, Any]) -> LogEntry:
    changes = tuple(
        Change(TableName(**change["table"]), change["before"], change["after"]) for change in data["tables"]
    )
    return LogEntry(data["id"], data["at"], data["branch"], Commit(**data["commit"]), changes)


def _entries(data: list[Mapping[str, Any]]) -> tuple[TableEntry, ...]:
    return tuple(_entry(entry) for entry in data)


def _entry(data: Mapping[str, Any]) -> TableEntry:
    return TableEntry(TableName(**data["table"]), data["pointer"], data["is_view"])


def _moved(entries: tuple[TableEntry, ...], move: Move) -> tuple[TableEntry, ...]:
    return tuple(replace(entry, pointer=move(entry.pointer)) for entry in entries)


def _without(entries: tuple[TableEntry, ...], pointers: Container[str]) -> tuple[TableEntry, ...]:
    return tuple(entry for entry in entries if entry.pointer not in pointers)


def _moved_change(change: Change, move: Move) -> Change:
    before, after = (pointer and move(pointer) for pointer in (change.before, change.after))
    return replace(change, before=before, after=after)
