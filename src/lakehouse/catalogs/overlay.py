"""Branches, tags and a log for a catalog that has none: kept aside, in a SQL catalog of the lake's own.

What everybody reads stays in the other catalog. Here is only what nobody else needs to see: where its tables pointed when
a branch was made, where they point on the branch, and what was published. A publish is the other catalog's own commit (under Hive's
lock, by one REST request), which refuses if a table has moved; what it did is written down here afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from lakehouse.catalogs.sql import SqlCatalog
from lakehouse.core.errors import NotSupportedError
from lakehouse.core.names import CATALOG, MAIN, TableName
from lakehouse.core.refs import RUN_PREFIX, Change, Commit, LogEntry, Published, Reached, Ref


class BaseCatalog(Protocol):
    """A catalog that only has a present."""

    @property
    def name(self) -> str: ...

    @property
    def called(self) -> str:
        """What it is, at the start of a sentence."""

    @property
    def all_at_once(self) -> bool:
        """Whether several tables can change in one moment."""

    def spark_conf(self) -> Mapping[str, str]: ...
    def pyiceberg_properties(self) -> Mapping[str, str]: ...
    def ready(self) -> None: ...
    def tables(self) -> Sequence[TableName]: ...
    def pointer(self, table: TableName) -> str | None: ...
    def pointers(self, tables: Iterable[TableName]) -> dict[TableName, str | None]: ...
    def everything(self) -> dict[TableName, str]: ...
    def has_view(self, name: TableName) -> bool: ...
    def ensure_namespace(self, namespace: str) -> None: ...
    def move(self, table: TableName, start: str, end: str | None) -> bool: ...
    def state(self) -> str: ...
    def drop(self, table: TableName, at: str) -> bool: ...
    def undrop(self, table: TableName) -> bool: ...
    def dropped(self) -> Sequence[TableName]: ...

    def change(self, changes: Sequence[Change]) -> bool:
        """Make all changes at once, or none; False if a table is not where its change begins."""

    def is_done(self, change: Change) -> bool:
        """Whether a table is what a change makes of it."""


@dataclass(frozen=True)
class BranchOverlay:
    """A catalog with branches: the present is `theirs`, everything else is `ours`."""

    theirs: BaseCatalog
    ours: SqlCatalog

    @property
    def name(self) -> str:
        return self.theirs.name

    @property
    def all_at_once(self) -> bool:
        """Whether several tables can be published in one moment."""
        return self.theirs.all_at_once

    def on(self, branch: str) -> BranchOverlay | SqlCatalog:
        """The catalog as a branch has it."""
        return self if branch in ("", MAIN, CATALOG) else self.ours.on(branch)

    # ---- the present --------------------------------------------------------------------------------------------

    def spark_conf(self) -> Mapping[str, str]:
        """What a Spark session needs to see this catalog under its name. It may hold keys."""
        return self.theirs.spark_conf()

    def pyiceberg_properties(self) -> Mapping[str, str]:
        """What `pyiceberg.catalog.load_catalog` needs. It may hold keys."""
        return self.theirs.pyiceberg_properties()

    def ready(self) -> None:
        """See that both catalogs are there."""
        self.theirs.ready()
        self.ours.ready()

    def tables(self) -> Sequence[TableName]:
        """Every Iceberg table, by name."""
        return self.theirs.tables()

    def pointer(self, table: TableName) -> str | None:
        """Where the newest metadata of a table is, or None if there is no such table."""
        return self.theirs.pointer(table)

    def pointers(self, tables: Iterable[TableName]) -> dict[TableName, str | None]:
        """Where several tables point."""
        return self.theirs.pointers(tables)

    def has_view(self, name: TableName) -> bool:
        """Whether the name is a view's."""
        return self.theirs.has_view(name)

    def ensure_namespace(self, namespace: str) -> None:
        """Make the namespace unless it is there."""
        self.theirs.ensure_namespace(namespace)

    def move(self, table: TableName, start: str, end: str | None) -> bool:
        """Point a table elsewhere (or, with None, forget it), if it still points where it did."""
        return self.theirs.move(table, start, end)

    def state(self) -> str:
        """A hash of where everything points: it changes whenever anything does."""
        return self.theirs.state()

    def drop(self, table: TableName, at: str) -> bool:
        """Take a table out of the catalog; its files stay."""
        before = self.theirs.pointer(table)
        done = self.theirs.drop(table, at)
        if done:
            self.ours.write_down([Change(table, before, None)], Commit("drop"))
        return done

    def undrop(self, table: TableName) -> bool:
        """Bring back what was dropped last under that name."""
        done = self.theirs.undrop(table)
        if done:
            self.ours.write_down([Change(table, None, self.theirs.pointer(table))], Commit("undrop"))
        return done

    def dropped(self) -> Sequence[TableName]:
        """The names that `undrop` knows."""
        return self.theirs.dropped()

    # ---- branches -----------------------------------------------------------------------------------------------

    def branches(self) -> list[str]:
        """The names of every branch beside main."""
        return self.ours.branches()

    def branch_refs(self) -> list[Ref]:
        """Every branch beside main."""
        return self.ours.branch_refs()

    def branches_of(self, table: TableName, prefix: str) -> list[str]:
        """The branches with such a name that have a table."""
        return self.ours.branches_of(table, prefix)

    def create_branch(self, name: str, from_ref: str = MAIN, commit: Commit | None = None) -> None:
        """A branch of all tables as main, another branch or a tag has them."""
        self._look(from_ref)
        self.ours.create_branch(name, from_ref, commit)

    def fork(self, branch: str, tables: Sequence[TableName]) -> dict[TableName, str | None]:
        """Give a branch some tables as they are now; says where each pointed, None for one that is not there yet."""
        self.ours.mirror(self.theirs.pointers(tables))
        return self.ours.fork(branch, tables)

    def changes(self, branch: str) -> list[Change]:
        """What a branch has changed since it was made."""
        return self.ours.changes(branch)

    def conflicts(self, branch: str) -> tuple[TableName, ...]:
        """The tables that a branch has changed and others as well, since the branch was made."""
        return self._moved(self.ours.changes(branch))

    def publish(self, branch: str, commit: Commit | None = None, tag: str = "") -> Published:
        """Make a branch's changes everybody's, all at once, or none if any of their tables has moved."""
        changes = self.ours.changes(branch)
        self._refuse_several(changes)
        # What is done already was done by somebody who was killed before it could be written down.
        if changes and not self.theirs.change(changes) and not self._all_done(changes):
            return self._not_done(changes)
        return self._written_down(branch, changes, commit, tag)

    def discard(self, branch: str) -> bool:
        """Forget a branch; its files are nobody's then. False if there is none."""
        return self.ours.discard(branch)

    # ---- tags and the log ---------------------------------------------------------------------------------------

    def tags(self) -> list[Ref]:
        """Every tag."""
        return self.ours.tags()

    def create_tag(self, name: str, from_ref: str = MAIN, commit: Commit | None = None) -> None:
        """Remember where all tables of main, a branch or another tag are, under a name."""
        self._look(from_ref)
        self.ours.create_tag(name, from_ref, commit)

    def drop_tag(self, name: str) -> bool:
        """Forget a tag; False if there is none."""
        return self.ours.drop_tag(name)

    def tagged(self, tag: str) -> dict[TableName, str] | None:
        """Where everything pointed when a tag was made; None if there is no such tag."""
        return self.ours.tagged(tag)

    def log(self, table: TableName | None = None, limit: int = 100) -> list[LogEntry]:
        """What this lake published, the newest first. What others wrote is in each table's own history."""
        return self.ours.log(table, limit)

    def published_by(self, run: str) -> LogEntry | None:
        """What a run published, if it did; also one that was killed before it could write that down."""
        found = self.ours.published_by(run)
        if found is not None or not run:
            return found
        branch = next((ref for ref in self.ours.branch_refs() if ref.name == f"{RUN_PREFIX}{run}"), None)
        if branch is None:
            return None
        changes = self.ours.changes(branch.name)
        if not changes or not self._all_done(changes):
            return None
        self._written_down(branch.name, changes, Commit("publish", branch.author, branch.message, run), branch.name)
        return self.ours.published_by(run)

    def revert(self, entry: str, commit: Commit) -> Published:
        """Undo an entry of the log in all its tables at once, if each is still as that entry left it."""
        undone = self.ours.entry(entry)
        changes = [Change(each.table, each.after, each.before) for each in undone.tables]
        self._refuse_several(changes)
        if not self.theirs.change(changes):
            return self._not_done(changes)
        now = self.theirs.pointers(each.table for each in changes)
        done = [replace(each, after=now[each.table]) for each in changes]
        return Published(True, self.ours.write_down(done, replace(commit, kind="revert")))

    def reachable(self, since: str = "") -> Sequence[Reached]:
        """Refused: whoever would delete files by an answer that leaves something out would delete too much."""
        raise NotSupportedError(
            f"{self.theirs.called} may have readers and writers that this lake knows nothing of, so nobody here can"
            " list all files in use.",
            "Remove old files with the tool that owns the catalog.",
        )

    # ---- parts --------------------------------------------------------------------------------------------------

    def _look(self, ref: str) -> None:
        """See where every table of main is now, before a branch or a tag is made of it."""
        if ref == MAIN:
            self.ours.mirror({**dict.fromkeys(self.ours.tables()), **self.theirs.everything()})

    def _moved(self, changes: Sequence[Change]) -> tuple[TableName, ...]:
        """The tables that are not where their changes begin."""
        now = self.theirs.pointers(each.table for each in changes)
        return tuple(each.table for each in changes if now[each.table] != each.before)

    def _not_done(self, changes: Sequence[Change]) -> Published:
        return Published(False, moved=self._moved(changes) or tuple(each.table for each in changes))

    def _all_done(self, changes: Sequence[Change]) -> bool:
        return all(self.theirs.is_done(each) for each in changes)

    def _refuse_several(self, changes: Sequence[Change]) -> None:
        if len(changes) > 1 and not self.all_at_once:
            named = ", ".join(str(each.table) for each in changes)
            raise NotSupportedError(
                f"{self.theirs.called} cannot change several tables at once: {named}. Nothing was published.",
                "Catalogs that can: sql, nessie, and a REST server with transactions (docs/catalogs.md).",
            )

    def _written_down(self, branch: str, changes: Sequence[Change], commit: Commit | None, tag: str) -> Published:
        """Keep what has become of the tables: a REST server writes metadata files of its own."""
        now = self.theirs.pointers(each.table for each in changes)
        self.ours.mirror({each.table: each.before for each in changes})
        for each in changes:
            end = now[each.table]
            if each.after is not None and end not in (None, each.after):
                self.ours.on(branch).move(each.table, each.after, end)
        return self.ours.publish(branch, commit, tag)
