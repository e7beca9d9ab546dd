"""The whole content of a catalog as plain data: what a backup holds, and what another catalog can take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

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
        yield from ((MAIN, each) for each in self.main)
        for branch in self.branches:
            yield from ((f"branch {branch.ref.name}", each) for each in branch.tables)
            yield from ((f"base of {branch.ref.name}", each) for each in branch.base)
        for tag in self.tags:
            yield from ((f"tag {tag.ref.name}", each) for each in tag.tables)
        yield from (("dropped", each.entry) for each in self.dropped)

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
                replace(each, tables=_moved(each.tables, move), base=_moved(each.base, move)) for each in self.branches
            ),
            tags=tuple(replace(each, tables=_moved(each.tables, move)) for each in self.tags),
            dropped=tuple(
                replace(each, entry=replace(each.entry, pointer=move(each.entry.pointer))) for each in self.dropped
            ),
            log=tuple(
                replace(each, tables=tuple(_moved_change(change, move) for change in each.tables)) for each in self.log
            ),
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
            BranchState(Ref(**each["ref"]), _entries(each["tables"]), _entries(each["base"]), each["namespaces"])
            for each in data["branches"]
        ),
        tags=tuple(TagState(Ref(**each["ref"]), _entries(each["tables"])) for each in data["tags"]),
        dropped=tuple(DroppedTable(each["branch"], _entry(each["entry"]), each["at"]) for each in data["dropped"]),
        log=tuple(_log_entry(each) for each in data["log"]),
        missing=tuple(data.get("missing", ())),
    )


def _log_entry(data: Mapping[str, Any]) -> LogEntry:
    changes = tuple(Change(TableName(**each["table"]), each["before"], each["after"]) for each in data["tables"])
    return LogEntry(data["id"], data["at"], data["branch"], Commit(**data["commit"]), changes)


def _entries(data: list[Mapping[str, Any]]) -> tuple[TableEntry, ...]:
    return tuple(_entry(each) for each in data)


def _entry(data: Mapping[str, Any]) -> TableEntry:
    return TableEntry(TableName(**data["table"]), data["pointer"], data["is_view"])


def _moved(entries: tuple[TableEntry, ...], move: Move) -> tuple[TableEntry, ...]:
    return tuple(replace(each, pointer=move(each.pointer)) for each in entries)


def _moved_change(change: Change, move: Move) -> Change:
    before, after = (pointer and move(pointer) for pointer in (change.before, change.after))
    return replace(change, before=before, after=after)
