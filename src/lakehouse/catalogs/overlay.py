"""Branches, tags and a log for a catalog that has none, stored beside it in a SQL catalog of the lake's own.

The base catalog holds the current tables, which everybody reads. The overlay holds what only this lake needs: the pointers
at the time a branch was created, the pointers of the branch, and the log. A publish is a commit of the base catalog (under
Hive's lock, or by one REST request), which fails if a table has changed; the overlay then logs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from lakehouse.catalogs.sql import SqlCatalog, open_database
from lakehouse.core.catalog import BaseCatalog, CatalogCapabilities, CatalogContext, FormatEntries, ListsViews
from lakehouse.core.clients import MavenArtifact
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import CatalogBusyError, NotSupportedError, TableExistsError
from lakehouse.core.names import CATALOG, MAIN, TableName
from lakehouse.core.refs import Change, Commit, LogEntry, Published, ReachableFile, Ref, run_branch
from lakehouse.core.state import CatalogState, DroppedTable, TableEntry
from lakehouse.core.tables import Drop

_DATABASE = "branches.db"
#: Attempts at a drop of a table that other clients change meanwhile.
_DROP_ATTEMPTS = 20


def add_branches(base: BaseCatalog, context: CatalogContext) -> BranchOverlay:
    """Return a catalog with branches, which are stored in the lake's folder."""
    overlay = SqlCatalog(
        open_database(context.folder / _DATABASE),
        context.warehouse,
        io=context.io,
        spark_io=context.spark_io,
        author=context.author,
    )
    return BranchOverlay(base, overlay)


@dataclass(frozen=True)
class BranchOverlay:
    """Implements `Catalog`: main is the base catalog, everything else is in the overlay."""

    base: BaseCatalog
    overlay: SqlCatalog

    @property
    def name(self) -> str:
        return self.base.name

    @property
    def capabilities(self) -> CatalogCapabilities:
        return self.base.capabilities

    def on(self, branch: str) -> BranchOverlay | SqlCatalog:
        return self if branch in ("", MAIN, CATALOG) else self.overlay.on(branch)

    # ---- main ---------------------------------------------------------------------------------------------------

    def spark_conf(self) -> Mapping[str, str]:
        return self.base.spark_conf()

    def spark_jars(self) -> Sequence[MavenArtifact]:
        return self.base.spark_jars()

    def trino_catalogs(self, name: str) -> Mapping[str, Mapping[str, str]]:
        return self.base.trino_catalogs(name)

    def duckdb_attach(self) -> str:
        return self.base.duckdb_attach()

    def pyiceberg_properties(self) -> Mapping[str, str]:
        return self.base.pyiceberg_properties()

    def rest_properties(self) -> Mapping[str, str]:
        return self.base.rest_properties()

    def entries_of(self, table_format: str) -> FormatEntries | None:
        return self.base.entries_of(table_format)

    def ensure_ready(self) -> None:
        self.base.ensure_ready()
        self.overlay.ensure_ready()

    def tables(self) -> Sequence[TableName]:
        return self.base.tables()

    def pointer(self, table: TableName) -> str | None:
        return self.base.pointer(table)

    def pointers(self, tables: Iterable[TableName]) -> dict[TableName, str | None]:
        return self.base.pointers(tables)

    def has_view(self, name: TableName) -> bool:
        return self.base.has_view(name)

    def views(self) -> Sequence[TableName]:
        return self.base.views() if isinstance(self.base, ListsViews) else ()

    def ensure_namespace(self, namespace: str) -> None:
        self.base.ensure_namespace(namespace)

    def swap_pointer(self, table: TableName, expected: str, new: str | None) -> bool:
        return self.base.swap_pointer(table, expected, new)

    def state_hash(self) -> str:
        return self.base.state_hash()

    def drop(self, table: TableName, at: str) -> bool:
        for _ in range(_DROP_ATTEMPTS):
            before = self.base.pointer(table)
            if before is None:
                return False
            change = Change(table, before, None)  # conditional, so that the log has the state that was dropped
            if self.base.commit([change]):
                self.overlay.add_log_entry([change], Commit("drop"))
                return True
        raise CatalogBusyError(f"Other clients changed {table} {_DROP_ATTEMPTS} times in a row.", "Try again.")

    def undrop(self, table: TableName, drop: str = "") -> bool:
        done = self.base.undrop(table, drop)
        if done:
            self.overlay.add_log_entry([Change(table, None, self.base.pointer(table))], Commit("undrop"))
        return done

    def dropped(self) -> Sequence[TableName]:
        return self.base.dropped()

    def drops(self) -> Sequence[Drop]:
        return self.base.drops()

    # ---- branches -----------------------------------------------------------------------------------------------

    def branches(self) -> list[str]:
        return self.overlay.branches()

    def branch_refs(self) -> list[Ref]:
        return self.overlay.branch_refs()

    def branches_of(self, table: TableName, prefix: str) -> list[str]:
        return self.overlay.branches_of(table, prefix)

    def create_branch(self, name: str, from_ref: str = MAIN, commit: Commit | None = None) -> None:
        self._mirror_main(from_ref)
        self.overlay.create_branch(name, from_ref, commit)

    def fork(
        self, branch: str, tables: Sequence[TableName], commit: Commit | None = None
    ) -> dict[TableName, str | None]:
        self.overlay.mirror(self.base.pointers(tables))
        return self.overlay.fork(branch, tables, commit)

    def drop_branch(self, branch: str) -> bool:
        return self.overlay.drop_branch(branch)

    def changes(self, branch: str) -> list[Change]:
        return self.overlay.changes(branch)

    def conflicts(self, branch: str) -> tuple[TableName, ...]:
        return self._conflicts(self.overlay.changes(branch))

    def publish(self, branch: str, commit: Commit | None = None, tag: str = "") -> Published:
        changes = self.overlay.changes(branch)
        self._refuse_several(changes)
        # Changes that are committed already belong to a process that was killed before it could log them.
        if changes and not self.base.commit(changes) and not self._all_committed(changes):
            return self._conflict(changes)
        return self._log_publish(branch, changes, commit, tag)

    # ---- tags and the log ---------------------------------------------------------------------------------------

    def tags(self) -> list[Ref]:
        return self.overlay.tags()

    def create_tag(self, name: str, from_ref: str = MAIN, commit: Commit | None = None) -> None:
        self._mirror_main(from_ref)
        self.overlay.create_tag(name, from_ref, commit)

    def drop_tag(self, name: str) -> bool:
        return self.overlay.drop_tag(name)

    def tag_pointers(self, tag: str) -> dict[TableName, str] | None:
        return self.overlay.tag_pointers(tag)

    def log(self, table: TableName | None = None, limit: int = 100) -> list[LogEntry]:
        """Return what this lake published. Commits of other programs are only in each table's own history."""
        return self.overlay.log(table, limit)

    def published_by(self, run: str) -> LogEntry | None:
        """Return the log entry of a run's publish; a publish that was killed before it was logged is logged now."""
        logged = self.overlay.published_by(run)
        if logged is not None or not run:
            return logged
        branch = next((ref for ref in self.overlay.branch_refs() if ref.name == run_branch(run)), None)
        if branch is None:
            return None
        changes = self.overlay.changes(branch.name)
        if not changes or not self._all_committed(changes):
            return None
        self._log_publish(branch.name, changes, Commit("publish", branch.author, branch.message, run), branch.name)
        return self.overlay.published_by(run)

    def record_statement(self, table: TableName, before: str | None, commit: Commit) -> bool:
        return False

    def revert(self, entry: str, commit: Commit) -> Published:
        changes = [change.reversed() for change in self.overlay.entry(entry).tables]
        self._refuse_several(changes)
        if not self.base.commit(changes):
            return self._conflict(changes)
        now = self.base.pointers(change.table for change in changes)
        done = [replace(change, after=now[change.table]) for change in changes]
        return Published(True, self.overlay.add_log_entry(done, replace(commit, kind="revert")))

    def reachable(self, since: str = "") -> Sequence[ReachableFile]:
        """Refuse: deleting files by an incomplete answer would delete files that other programs use."""
        raise NotSupportedError(
            f"{self.base.display_name} may have readers and writers that this lake does not know, so it cannot list"
            " all files in use.",
            "Remove old files with the tool that owns the catalog.",
        )

    def forget_dropped(self, before: Callable[[TableName], str]) -> Sequence[TableName]:
        """Forget nothing: their files could not be removed either."""
        return ()

    # ---- everything ---------------------------------------------------------------------------------------------

    def dump_state(self) -> CatalogState:
        main = tuple(TableEntry(table, pointer) for table, pointer in sorted(self.base.all_pointers().items()))
        dropped = tuple(DroppedTable(MAIN, entry) for entry in self.base.dropped_entries())
        stored = self.overlay.dump_state()
        return replace(
            stored, main=main, dropped=(*dropped, *(table for table in stored.dropped if table.branch != MAIN))
        )

    def problems(self) -> Sequence[str]:
        return self.overlay.problems()

    def load_state(self, content: CatalogState) -> Sequence[str]:
        """Register the tables one by one, then store branches, tags and log at once. What is there already counts."""
        notes = [
            f"view {entry.table}: {self.base.display_name} takes no views of Iceberg"
            for entry in content.main
            if entry.is_view
        ]
        known = {entry.pointer for entry in self.base.dropped_entries()}
        for dropped in content.dropped:
            if dropped.branch == MAIN and dropped.entry.pointer not in known:
                self._register(dropped.entry)
                self.base.drop(dropped.entry.table, dropped.at)
        main = {entry.pointer: self._register(entry) for entry in content.main if not entry.is_view}
        stored = replace(content.moved(lambda pointer: main.get(pointer, pointer)), main=(), dropped=())
        stored = replace(stored, dropped=tuple(dropped for dropped in content.dropped if dropped.branch != MAIN))
        if not _has_refs_of(self.overlay.dump_state(), stored):
            self.overlay.load_state(stored)
        return notes

    def _register(self, entry: TableEntry) -> str:
        """Create a table with existing metadata and return its pointer, which a REST server chooses itself."""
        change = Change(entry.table, None, entry.pointer)
        if self.base.pointer(entry.table) is None:
            self.base.commit([change])
        if not self.base.is_committed(change):
            raise TableExistsError(
                f"{self.base.display_name} has another table {entry.table}.", "Restore into an empty catalog."
            )
        return str(self.base.pointer(entry.table))

    # ---- helpers ------------------------------------------------------------------------------------------------

    def _mirror_main(self, ref: str) -> None:
        """Copy the current pointers of main, before a branch or a tag is created from it."""
        if ref == MAIN:
            self.overlay.mirror({**dict.fromkeys(self.overlay.tables()), **self.base.all_pointers()})

    def _conflicts(self, changes: Sequence[Change]) -> tuple[TableName, ...]:
        now = self.base.pointers(change.table for change in changes)
        return tuple(change.table for change in changes if now[change.table] != change.before)

    def _conflict(self, changes: Sequence[Change]) -> Published:
        return Published(False, conflicts=self._conflicts(changes) or tuple(change.table for change in changes))

    def _all_committed(self, changes: Sequence[Change]) -> bool:
        return all(self.base.is_committed(change) for change in changes)

    def _refuse_several(self, changes: Sequence[Change]) -> None:
        if len(changes) > 1 and not self.capabilities.multi_table_publish:
            named = ", ".join(str(change.table) for change in changes)
            raise NotSupportedError(
                f"{self.base.display_name} cannot change several tables at once: {named}. Nothing was published.",
                "Catalogs that can: sql, nessie, and a REST server with transactions (docs/catalogs.md).",
            )

    def _log_publish(self, branch: str, changes: Sequence[Change], commit: Commit | None, tag: str) -> Published:
        """Log a publish with the pointers that the base catalog has now: a REST server writes metadata files of its own."""
        now = self.base.pointers(change.table for change in changes)
        self.overlay.mirror({change.table: change.before for change in changes})
        for change in changes:
            pointer = now[change.table]
            if change.after is not None and pointer not in (None, change.after):
                self.overlay.on(branch).swap_pointer(change.table, change.after, pointer)
        return self.overlay.publish(branch, commit, tag)


def _has_refs_of(present: CatalogState, wanted: CatalogState) -> bool:
    """Return whether an earlier call has stored branches, tags and log, which it does in one transaction."""
    return not present.is_empty and _names(present) == _names(wanted) and len(present.log) == len(wanted.log)


def _names(state: CatalogState) -> tuple[set[str], set[str]]:
    return {branch.ref.name for branch in state.branches}, {tag.ref.name for tag in state.tags}
