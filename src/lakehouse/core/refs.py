"""The facts of branches, tags and the log, as every catalog that can branch tells them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from lakehouse.core.names import TableName

#: The branch of a run is called so, and then by the run's id.
RUN_PREFIX = "run_"


@dataclass(frozen=True)
class Commit:
    """What is written down with a change that others will see: who, what for, by which run."""

    kind: str = "publish"
    """publish (a run), ingest, merge, revert, drop, undrop."""
    author: str = ""
    message: str = ""
    run: str = ""
    pipeline: str = ""
    source: str = ""


@dataclass(frozen=True)
class Ref:
    """A branch or a tag."""

    name: str
    made_from: str
    state: str
    """The hash of what it was made from: the same tables, the same hash."""
    made_at: str
    author: str = ""
    message: str = ""


@dataclass(frozen=True)
class Change:
    """A table that is not what it was: where its metadata was and is, None where there was or is no table."""

    table: TableName
    before: str | None
    after: str | None

    @property
    def what(self) -> str:
        """added, removed or changed."""
        return "added" if self.before is None else "removed" if self.after is None else "changed"


@dataclass(frozen=True)
class LogEntry:
    """One publish: all of its tables changed in the same moment."""

    id: str
    at: str
    branch: str
    commit: Commit
    tables: tuple[Change, ...] = field(default_factory=tuple)


@dataclass(frozen=True)
class Published:
    """What came of an attempt to publish. True if it was done, even if there was nothing to do."""

    done: bool
    entry: str = ""
    """The log's entry; nothing if nothing was to be done."""
    moved: tuple[TableName, ...] = ()
    """The tables that somebody else has changed meanwhile, for which nothing was published."""

    def __bool__(self) -> bool:
        return self.done


@dataclass(frozen=True)
class Reached:
    """A metadata file that something leads to."""

    table: TableName
    pointer: str
    by: str
    """What leads there: `main`, `branch NAME`, `base of NAME`, `tag NAME`, `dropped`, `log NUMBER`."""


def state_of(found: Mapping[TableName, str]) -> str:
    """A hash of where everything points: the same tables, the same hash."""
    text = "\n".join(f"{table} {location}" for table, location in sorted(found.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
