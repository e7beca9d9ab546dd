"""The interface of a catalog: where tables are found, branched, published and logged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from lakehouse.core.names import TableName
from lakehouse.core.refs import Change, Commit, LogEntry, Published, Reached, Ref


class CanBranch(Protocol):
    """A catalog with branches, tags and a log of its own, each over all of its tables at once.

    A pointer is whatever the catalog finds a table's state by; callers hand it back and never look inside.
    """

    @property
    def all_at_once(self) -> bool:
        """Whether several tables can be published in one moment; else a publish of more than one is refused."""

    def on(self, branch: str) -> CanBranch:
        """The catalog as a branch has it; `main` and nothing mean main."""

    def branch_refs(self) -> Sequence[Ref]:
        """Every branch beside main."""

    def create_branch(self, name: str, from_ref: str = "main", commit: Commit | None = None) -> None:
        """A branch of all tables as main, another branch or a tag has them. No data is copied."""

    def discard(self, branch: str) -> bool:
        """Forget a branch; False if there is none."""

    def changes(self, branch: str) -> Sequence[Change]:
        """What a branch has changed since it was made."""

    def conflicts(self, branch: str) -> Sequence[TableName]:
        """The tables that a branch has changed and this catalog as well, since the branch was made."""

    def publish(self, branch: str, commit: Commit | None = None, tag: str = "") -> Published:
        """Make a branch's changes everybody's, all at once, or none if any of their tables has moved: never force."""

    def tags(self) -> Sequence[Ref]:
        """Every tag."""

    def create_tag(self, name: str, from_ref: str = "main", commit: Commit | None = None) -> None:
        """Remember what main, a branch or another tag is, under a name."""

    def drop_tag(self, name: str) -> bool:
        """Forget a tag; False if there is none."""

    def tagged(self, tag: str) -> Mapping[TableName, str] | None:
        """Where every table was when a tag was made; None if there is no such tag."""

    def log(self, table: TableName | None = None, limit: int = 100) -> Sequence[LogEntry]:
        """What was published, the newest first: all of it, or what touched a table."""

    def published_by(self, run: str) -> LogEntry | None:
        """What a run published, if it did."""

    def revert(self, entry: str, commit: Commit) -> Published:
        """Undo an entry of the log in all its tables at once, if each is still as that entry left it."""

    def state(self) -> str:
        """A hash of everything: it changes whenever anything does."""

    def reachable(self, since: str = "") -> Sequence[Reached]:
        """Every metadata file that main, branches, tags, dropped tables or the log since then may lead to."""
