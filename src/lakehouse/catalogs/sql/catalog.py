"""Implements `Catalog` in a SQL database that Spark, PyIceberg and Trino use as well."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from lakehouse.catalogs.sql import drops, log, namespaces, publishing, refs, rows, state
from lakehouse.catalogs.sql.database import Database, Transaction
from lakehouse.catalogs.sql.publishing import ConflictError
from lakehouse.catalogs.sql.rows import KEY, TABLE, VIEW
from lakehouse.core.catalog import CatalogCapabilities, NoClients
from lakehouse.core.clients import spark_catalog
from lakehouse.core.errors import NoSuchBranchError, NoSuchCommitError, NotSupportedError
from lakehouse.core.names import CATALOG, MAIN, TableName
from lakehouse.core.refs import Change, Commit, LogEntry, Published, ReachableFile, Ref, acting_author, hash_pointers
from lakehouse.core.state import CatalogState
from lakehouse.core.tables import Drop

_MAX_NAME, _MAX_TEXT = 255, 4000
_EMPTY: Mapping[str, str] = MappingProxyType({})


class SqlCatalog(NoClients):
    """Pointers to Iceberg tables in a database.

    Args:
        warehouse: the URI below which new tables are created.
        name: the catalog name whose rows this catalog holds: main's, or a branch's.
        io: PyIceberg's FileIO properties, where the warehouse needs some (`s3.endpoint`, …).
        spark_io: the same for Iceberg in Spark (`io-impl`, `s3.endpoint`, …).
        author: the author of commits that name none.
    """

    capabilities = CatalogCapabilities(multi_table_publish=True, statement_log=True)

    def __init__(
        self,
        database: Database,
        warehouse: str,
        name: str = CATALOG,
        *,
        io: Mapping[str, str] = _EMPTY,
        spark_io: Mapping[str, str] = _EMPTY,
        author: str = "",
    ) -> None:
        self.database, self.warehouse, self.name = database, warehouse, name
        self._io, self._spark_io, self.author = io, spark_io, author

    def on(self, branch: str) -> SqlCatalog:
        name = CATALOG if branch in ("", MAIN) else branch
        return SqlCatalog(self.database, self.warehouse, name, io=self._io, spark_io=self._spark_io, author=self.author)

    # ---- settings of other programs -----------------------------------------------------------------------------

    def spark_conf(self) -> Mapping[str, str]:
        properties = {
            "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
            **self.database.jdbc(),
            "jdbc.schema-version": "V1",
            "warehouse": self.warehouse,
            # Branches and tags share a table's files, so no engine may delete files that only this table knows.
            "table-default.gc.enabled": "false",
            **self._spark_io,
        }
        return spark_catalog(self.name, properties)

    def pyiceberg_properties(self) -> Mapping[str, str]:
        return {"type": "sql", "uri": self.database.sqlalchemy_url(), "warehouse": self.warehouse, **self._io}

    def trino_catalogs(self, name: str) -> Mapping[str, Mapping[str, str]]:
        """Refuse: through JDBC, Trino's DROP TABLE deletes files that branches need, and it has no driver for SQLite."""
        raise NotSupportedError(
            "Trino cannot open a SQL catalog safely, and one in a SQLite file not at all.",
            "Serve the lake as a REST catalog (lake up rest) and point Trino at it, or use the profile sql.",
        )

    def ensure_ready(self) -> None:
        """Create the tables: two Spark sessions that both find none would fail each other."""
        with self.database.reading():
            pass

    # ---- pointers -----------------------------------------------------------------------------------------------

    def tables(self) -> Sequence[TableName]:
        with self.database.reading() as db:
            return sorted(rows.pointers(db, self.name, TABLE))

    def pointer(self, table: TableName) -> str | None:
        return self.pointers([table])[table]

    def pointers(self, tables: Iterable[TableName]) -> dict[TableName, str | None]:
        with self.database.reading() as db:
            return {table: rows.pointer(db, self.name, table, TABLE) for table in tables}

    def has_view(self, name: TableName) -> bool:
        with self.database.reading() as db:
            return rows.pointer(db, self.name, name, VIEW) is not None

    def views(self) -> Sequence[TableName]:
        with self.database.reading() as db:
            return sorted(rows.pointers(db, self.name, VIEW))

    def ensure_namespace(self, namespace: str) -> None:
        self.database.write(lambda db: namespaces.ensure(db, self.name, namespace))

    def swap_pointer(self, table: TableName, expected: str, new: str | None) -> bool:
        return self.database.write(lambda db: rows.swap(db, self.name, table, expected, new))

    def mirror(self, pointers: Mapping[TableName, str | None]) -> None:
        """Copy the pointers of another catalog, whose branches this one stores (overlay.py)."""
        self.database.write(lambda db: rows.put(db, self.name, pointers))

    def state_hash(self) -> str:
        with self.database.reading() as db:
            return hash_pointers(rows.pointers(db, self.name))

    # ---- branches -----------------------------------------------------------------------------------------------

    def branches(self) -> list[str]:
        return [ref.name for ref in self.branch_refs()]

    def branch_refs(self) -> list[Ref]:
        with self.database.reading() as db:
            return refs.branches(db)

    def branches_of(self, table: TableName, prefix: str) -> list[str]:
        query = (
            "SELECT DISTINCT catalog_name FROM iceberg_tables"
            " WHERE substr(catalog_name, 1, ?) = ? AND table_namespace = ? AND table_name = ?"
        )
        with self.database.reading() as db:
            listed = db.execute(query, (len(prefix), prefix, table.namespace, table.table)).fetchall()
        return [row[0] for row in listed]

    def create_branch(self, name: str, from_ref: str = MAIN, commit: Commit | None = None) -> None:
        source = CATALOG if from_ref == MAIN else from_ref
        signed = self._signed(commit or Commit("branch"))
        self.database.write(lambda db: refs.create_branch(db, name, source, None, signed))

    def fork(
        self, branch: str, tables: Sequence[TableName], commit: Commit | None = None
    ) -> dict[TableName, str | None]:
        signed = self._signed(commit or Commit("branch"))

        def work(db: Transaction) -> dict[TableName, str | None]:
            refs.create_branch(db, branch, self.name, tables, signed)
            base = publishing.base_of(db, branch)
            return {table: base.get(table) for table in tables}

        return self.database.write(work)

    def drop_branch(self, branch: str) -> bool:
        return self.database.write(lambda db: refs.drop_branch(db, branch))

    def changes(self, branch: str) -> list[Change]:
        with self.database.reading() as db:
            self._check_branch(db, branch)
            return publishing.changes_on(db, branch)

    def conflicts(self, branch: str) -> tuple[TableName, ...]:
        with self.database.reading() as db:
            return self._conflicts(db, publishing.changes_on(db, branch))

    def publish(self, branch: str, commit: Commit | None = None, tag: str = "") -> Published:
        """Change the pointers, the log and the tag, and drop the branch, in one transaction."""
        signed = self._signed(commit or Commit())

        def work(db: Transaction) -> Published:
            self._check_branch(db, branch)
            changes = publishing.changes_on(db, branch)
            entry = publishing.apply(db, self.name, changes, signed) if changes else ""
            refs.drop_branch(db, branch)
            if tag and changes:
                refs.drop_tag(db, tag)
                refs.create_tag(db, tag, self.name, signed)
            return Published(True, entry)

        try:
            return self.database.write(work)
        except ConflictError as exc:
            return Published(False, conflicts=self.conflicts(branch) or (exc.table,))

    # ---- tags ---------------------------------------------------------------------------------------------------

    def tags(self) -> list[Ref]:
        with self.database.reading() as db:
            return refs.tags(db)

    def create_tag(self, name: str, from_ref: str = MAIN, commit: Commit | None = None) -> None:
        source = CATALOG if from_ref == MAIN else from_ref
        signed = self._signed(commit or Commit("tag"))
        self.database.write(lambda db: refs.create_tag(db, name, source, signed))

    def drop_tag(self, name: str) -> bool:
        return self.database.write(lambda db: refs.drop_tag(db, name))

    def tag_pointers(self, tag: str) -> dict[TableName, str] | None:
        with self.database.reading() as db:
            return refs.tag_pointers(db, tag) if refs.exists(db, "lake_tags", tag) else None

    # ---- the log ------------------------------------------------------------------------------------------------

    def log(self, table: TableName | None = None, limit: int = 100) -> list[LogEntry]:
        with self.database.reading() as db:
            return log.entries(db, self.name, table, limit)

    def record_statement(self, table: TableName, before: str | None, commit: Commit) -> bool:
        query = f"SELECT metadata_location, previous_metadata_location FROM iceberg_tables WHERE {KEY}"

        def work(db: Transaction) -> bool:
            row = db.execute(query, (self.name, table.namespace, table.table)).fetchone()
            if row is None or row[0] == before or row[1] != before:
                return False
            log.write(db, self.name, self._signed(commit), [Change(table, before, row[0])])
            return True

        return self.database.write(work)

    def add_log_entry(self, changes: Sequence[Change], commit: Commit) -> str:
        """Log changes that were made in another catalog (overlay.py), and return the entry's id."""
        return self.database.write(lambda db: log.write(db, self.name, self._signed(commit), changes))

    def published_by(self, run: str) -> LogEntry | None:
        with self.database.reading() as db:
            return log.of_run(db, self.name, run)

    def revert(self, entry: str, commit: Commit) -> Published:
        changes = [change.reversed() for change in self.entry(entry).tables]
        signed = self._signed(replace(commit, kind="revert"))
        try:
            return Published(True, self.database.write(lambda db: publishing.apply(db, self.name, changes, signed)))
        except ConflictError as exc:
            with self.database.reading() as db:
                return Published(False, conflicts=self._conflicts(db, changes) or (exc.table,))

    def entry(self, number: str) -> LogEntry:
        """Return a log entry by its id."""
        with self.database.reading() as db:
            logged = log.entry(db, self.name, int(number)) if number.isdecimal() and len(number) < 19 else None
        if logged is None:
            raise NoSuchCommitError(f"The log has no commit {number!r}.", "All of them: lake log")
        return logged

    def reachable(self, since: str = "") -> list[ReachableFile]:
        with self.database.reading() as db:
            return refs.reachable(db, since)

    # ---- everything ---------------------------------------------------------------------------------------------

    def dump_state(self) -> CatalogState:
        with self.database.reading() as db:
            return state.dump(db)

    def problems(self) -> Sequence[str]:
        with self.database.reading() as db:
            return (*self.database.problems(db), *state.problems(db))

    def load_state(self, content: CatalogState) -> Sequence[str]:
        def work(db: Transaction) -> None:
            self.database.restart_ids(db, "lake_log", state.load(db, content) + 1)

        self.database.write(work)
        return ()

    # ---- soft drop ----------------------------------------------------------------------------------------------

    def drop(self, table: TableName, at: str) -> bool:
        def work(db: Transaction) -> bool:
            start = drops.drop(db, self.name, table, at)
            if start is not None:
                log.write(db, self.name, self._signed(Commit("drop")), [Change(table, start, None)])
            return start is not None

        return self.database.write(work)

    def undrop(self, table: TableName, drop: str = "") -> bool:
        def work(db: Transaction) -> bool:
            end = drops.undrop(db, self.name, table, drop)
            if end is not None:
                log.write(db, self.name, self._signed(Commit("undrop")), [Change(table, None, end)])
            return end is not None

        return self.database.write(work)

    def dropped(self) -> Sequence[TableName]:
        with self.database.reading() as db:
            return drops.dropped(db, self.name)

    def drops(self) -> Sequence[Drop]:
        with self.database.reading() as db:
            return drops.drops(db, self.name)

    def forget_dropped(self, before: Callable[[TableName], str]) -> Sequence[TableName]:
        return self.database.write(lambda db: drops.forget_before(db, before))

    # ---- helpers ------------------------------------------------------------------------------------------------

    def _signed(self, commit: Commit) -> Commit:
        """Return the commit with an author, and with texts that fit their columns."""
        author = (commit.author or acting_author() or self.author)[:_MAX_NAME]
        return replace(commit, author=author, message=commit.message[:_MAX_TEXT], source=commit.source[:_MAX_TEXT])

    def _conflicts(self, db: Transaction, changes: Iterable[Change]) -> tuple[TableName, ...]:
        return tuple(change.table for change in changes if rows.pointer(db, self.name, change.table) != change.before)

    def _check_branch(self, db: Transaction, branch: str) -> None:
        if not refs.exists(db, "lake_branches", branch):
            known = ", ".join(ref.name for ref in refs.branches(db)[:10]) or "none"
            raise NoSuchBranchError(f"There is no branch {branch}.", f"There are: {known}.")
