"""Branches, tags, changes, log entries and their authors: the data that every catalog answers with."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from lakehouse.core.names import TableName

#: The branch of a run is named by this prefix and the run's id.
RUN_PREFIX = "run_"


@dataclass(frozen=True)
class Commit:
    """Who changes something, why, and by which run."""

    kind: str = "publish"
    """publish (a run), ingest, merge, revert, drop, undrop, sql."""
    author: str = ""
    message: str = ""
    run: str = ""
    pipeline: str = ""
    source: str = ""


@dataclass(frozen=True)
class Ref:
    """A branch or a tag."""

    name: str
    created_from: str
    state: str
    """The hash of the pointers that it was created with (`hash_pointers`)."""
    created_at: str
    author: str = ""
    message: str = ""


@dataclass(frozen=True)
class Change:
    """A table's pointer before and after; None where there was or is no table."""

    table: TableName
    before: str | None
    after: str | None

    @property
    def what(self) -> str:
        """added, removed or changed."""
        return "added" if self.before is None else "removed" if self.after is None else "changed"

    def reversed(self) -> Change:
        """Return the change that undoes this one."""
        return Change(self.table, self.after, self.before)


@dataclass(frozen=True)
class LogEntry:
    """One publish, which changed all of its tables atomically."""

    id: str
    at: str
    branch: str
    commit: Commit
    tables: tuple[Change, ...] = field(default_factory=tuple)


@dataclass(frozen=True)
class Published:
    """The result of a publish. True if it succeeded, even if there was nothing to change."""

    done: bool
    entry: str = ""
    """The id of the log entry; empty if nothing changed."""
    conflicts: tuple[TableName, ...] = ()
    """The tables that somebody else has changed; nothing was published."""

    def __bool__(self) -> bool:
        return self.done


@dataclass(frozen=True)
class ReachableFile:
    """A metadata file that is still referred to."""

    table: TableName
    pointer: str
    by: str
    """What refers to it: `main`, `branch NAME`, `base of NAME`, `tag NAME`, `dropped`, `log NUMBER`."""


def hash_pointers(pointers: Mapping[TableName, str]) -> str:
    """Return a hash of pointers: equal pointers have equal hashes."""
    text = "\n".join(f"{table} {location}" for table, location in sorted(pointers.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


#: The author of commits where it is not the user of this process: a service acts for its callers. A context variable, because
#: what a request does is spread over threads, engines and catalogs, and a layer that forgot to pass it on would name another author.
_acting_for: ContextVar[str] = ContextVar("author", default="")


@contextmanager
def acting_for(author: str) -> Iterator[None]:
    """Make this the author of what the block commits; empty for the default one."""
    token = _acting_for.set(author)
    try:
        yield
    finally:
        _acting_for.reset(token)


def acting_author() -> str:
    """The author for whom this process acts; empty if it acts for its own user."""
    return _acting_for.get()
