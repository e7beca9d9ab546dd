"""Branches, tags, changes, log entries and their authors: the data that every catalog answers with."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field, replace
from typing import Literal

from lakehouse.core.dataclass import dataclass
from lakehouse.core.names import TableName

BranchKind = Literal["run", "ingest", "maintain"]
_KINDS: tuple[BranchKind, ...] = ("run", "ingest", "maintain")
_OWNED = re.compile(r"(?P<message>.*?) ?\[owner (?P<host>\S+) (?P<pid>\d+) (?P<started>[^\]]*)\]", re.DOTALL)


@dataclass(frozen=True)
class InternalBranch:
    """A branch that a run, an ingest or a maintenance creates for its work. Users cannot create branches of such names."""

    kind: BranchKind
    id: str

    @property
    def name(self) -> str:
        return f"{self.kind}_{self.id}"

    @classmethod
    def new(cls, kind: BranchKind) -> InternalBranch:
        """Return a branch with a new id."""
        import uuid

        return cls(kind, uuid.uuid4().hex[:12])

    @classmethod
    def parse(cls, name: str) -> InternalBranch | None:
        """Return what a name of a branch stands for; None if it is a name for users."""
        kind, underscore, id = name.partition("_")
        return next((cls(known, id) for known in _KINDS if underscore and kind == known), None)


def run_branch(run: str) -> str:
    """Return the name of a run's branch, which is also the tag of its publish."""
    return InternalBranch("run", run).name


@dataclass(frozen=True)
class BranchOwner:
    """The process that works on an internal branch. Catalogs store it at the end of the branch's message."""

    host: str
    pid: int
    started: str
    """When the process started, as its system states it."""

    def sign(self, commit: Commit) -> Commit:
        """Return the commit that creates a branch of this owner."""
        return replace(commit, message=f"{commit.message} [owner {self.host} {self.pid} {self.started}]".lstrip())


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
    owner: BranchOwner | None = None
    """The process that works on it; None if a user created it."""

    def __post_init__(self) -> None:
        if self.owner is None and (owned := _OWNED.fullmatch(self.message)):
            owner = BranchOwner(owned["host"], int(owned["pid"]), owned["started"])
            object.__setattr__(self, "owner", owner)
            object.__setattr__(self, "message", owned["message"])


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


#: The branch of log entries about tables that only a dropped branch had; no branch can have this name.
DISCARDED = "#discarded"


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
