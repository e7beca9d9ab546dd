"""The SQL catalog itself: Iceberg's own tables in a database that Spark, PyIceberg, Trino and we share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from lakehouse.catalogs.sql import drops, log, publishing, refs, rows
from lakehouse.catalogs.sql.database import Database, Transaction
from lakehouse.catalogs.sql.publishing import Moved
from lakehouse.catalogs.sql.rows import IS_TABLE, KEY
from lakehouse.core.errors import NoSuchBranchError, NoSuchCommitError
from lakehouse.core.names import CATALOG, MAIN, TableName
from lakehouse.core.refs import Change, Commit, LogEntry, Published, Reached, Ref, state_of
from lakehouse.core.spark_catalog import spark_catalog

_LONGEST_NAME, _LONGEST_TEXT = 255, 4000
_NOTHING: Mapping[str, str] = MappingProxyType({})


class SqlCatalog:
    """Pointers to Iceberg tables in a database.

    Args:
        warehouse: where new tables go, as a URI.
        name: the catalog name whose rows are looked at: main's, or a branch's.
        io: properties of PyIceberg's file access, where the warehouse needs some (`s3.endpoint`, …).
        spark_io: the same for Iceberg in Spark (`io-impl`, `s3.endpoint`, …).
        author: who is written down where a commit names nobody.
    """

    all_at_once = True

    def __init__(
        self,
        database: Database,
        warehouse: str,
        name: str = CATALOG,
        *,
        io: Mapping[str, str] = _NOTHING,
        spark_io: Mapping[str, str] = _NOTHING,
        author: str = "",
    ) -> None:
        self.database, self.warehouse, self.name = database, warehouse, name
        self._io, self._spark_io, self.author = io, spark_io, author

    def on(self, branch: str) -> SqlCatalog:
        """The catalog as a branch has it."""
        name = CATALOG if branch in ("", MAIN) else branch
        return SqlCatalog(self.database, self.warehouse, name, io=self._io, spark_io=self._spark_io, author=self.author)

    # ---- settings for others ------------------------------------------------------------------------------------

    def spark_conf(self) -> Mapping[str, str]:
        """What a Spark session needs to see this catalog under its name. It may hold a password."""
        facts = {
            "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
            **self.database.jdbc(),
            "jdbc.schema-version": "V1",
            "warehouse": self.warehouse,
            # Branches and tags share a table's files: no engine may delete any by asking this table alone.
            "table-default.gc.enabled": "false",
            **self._spark_io,
        }
        return spark_catalog(self.name, facts)

    def pyiceberg_properties(self) -> Mapping[str, str]:
        """What `pyiceberg.catalog.load_catalog` needs. It may hold a password."""
        return {"type": "sql", "uri": self.database.sqlalchemy_url(), "warehouse": self.warehouse, **self._io}

    def ready(self) -> None:
        """Make the tables, unless they are there: two Spark sessions that both find none would get in each other's way."""
        with self.database.reading():
            pass

    # ---- pointers -----------------------------------------------------------------------------------------------

    def tables(self) -> Sequence[TableName]:
        """Every Iceberg table, by name."""
        query = f"SELECT table_namespace, table_name FROM iceberg_tables WHERE catalog_name = ? AND {IS_TABLE}"
        with self.database.reading() as db:
            found = db.execute(query + " ORDER BY 1, 2", (self.name,)).fetchall()
        return [TableName(namespace, table) for namespace, table in found]

    def pointer(self, table: TableName) -> str | None:
        """Where the newest metadata of a table is, or None if there is no such table."""
        query = f"SELECT metadata_location FROM iceberg_tables WHERE {KEY} AND {IS_TABLE}"
        with self.database.reading() as db:
            row = db.execute(query, (self.name, table.namespace, table.table)).fetchone()
        return str(row[0]) if row else None

    def pointers(self, tables: Iterable[TableName]) -> dict[TableName, str | None]:
        """Where several tables point at one and the same moment."""
        query = f"SELECT metadata_location FROM iceberg_tables WHERE {KEY} AND {IS_TABLE}"
        with self.database.reading() as db:
            found = {each: db.execute(query, (self.name, each.namespace, each.table)).fetchone() for each in tables}
        return {table: row[0] if row else None for table, row in found.items()}

    def has_view(self, name: TableName) -> bool:
        """Whether the name is a view's."""
        query = f"SELECT 1 FROM iceberg_tables WHERE {KEY} AND iceberg_type = 'VIEW'"
        with self.database.reading() as db:
            return db.execute(query, (self.name, name.namespace, name.table)).fetchone() is not None

    def ensure_namespace(self, namespace: str) -> None:
        """Make the namespace unless it is there."""
        self.database.write(lambda db: rows.ensure_namespace(db, self.name, namespace))

    def move(self, table: TableName, start: str, end: str | None) -> bool:
        """Point a table elsewhere (or, with None, forget it), if it still points where it did."""
        if end is not None:
            return self.database.write(lambda db: rows.exchange(db, self.name, table, start, end))
        gone = f"DELETE FROM iceberg_tables WHERE {KEY} AND metadata_location = ?"
        key = (self.name, table.namespace, table.table, start)
        return self.database.write(lambda db: db.execute(gone, key).rowcount == 1)

    def mirror(self, found: Mapping[TableName, str | None]) -> None:
        """Take over where another catalog's tables are, which this one keeps branches for (aside.py)."""
        self.database.write(lambda db: rows.put(db, self.name, found))

    # ---- branches -----------------------------------------------------------------------------------------------

    def branches(self) -> list[str]:
        """The names of every branch beside main."""
        return [ref.name for ref in self.branch_refs()]

    def branch_refs(self) -> list[Ref]:
        """Every branch beside main, with who made it from what and when."""
        with self.database.reading() as db:
            return refs.branches(db)

    def branches_of(self, table: TableName, prefix: str) -> list[str]:
        """The branches with such a name that have a table."""
        query = (
            "SELECT DISTINCT catalog_name FROM iceberg_tables"
            " WHERE substr(catalog_name, 1, ?) = ? AND table_namespace = ? AND table_name = ?"
        )
        with self.database.reading() as db:
            found = db.execute(query, (len(prefix), prefix, table.namespace, table.table)).fetchall()
        return [row[0] for row in found]

    def create_branch(self, name: str, from_ref: str = MAIN, commit: Commit | None = None) -> None:
        """A branch of all tables as main, another branch or a tag has them."""
        source = CATALOG if from_ref == MAIN else from_ref
        made = self._signed(commit or Commit("branch"))
        self.database.write(lambda db: refs.make_branch(db, name, source, None, made))

    def fork(self, branch: str, tables: Sequence[TableName]) -> dict[TableName, str | None]:
        """Give a branch some tables as they are here; says where each pointed, None for one that is not there yet."""

        def work(db: Transaction) -> dict[TableName, str | None]:
            refs.make_branch(db, branch, self.name, tables, self._signed(Commit("branch")))
            base = publishing.base_of(db, branch)
            return {table: base.get(table) for table in tables}

        return self.database.write(work)

    def changes(self, branch: str) -> list[Change]:
        """What a branch has changed since it was made."""
        with self.database.reading() as db:
            self._check_branch(db, branch)
            return publishing.changes_on(db, branch)

    def conflicts(self, branch: str) -> tuple[TableName, ...]:
        """The tables that a branch has changed and this catalog as well, since the branch was made."""
        with self.database.reading() as db:
            return self._moved(db, publishing.changes_on(db, branch))

    def publish(self, branch: str, commit: Commit | None = None, tag: str = "") -> Published:
        """Make a branch's changes those of this catalog, all of them or, if any of their tables has moved, none.

        One transaction: the tables' pointers, the log, the tag if one is asked for, and the branch forgotten.
        """
        signed = self._signed(commit or Commit())

        def work(db: Transaction) -> Published:
            self._check_branch(db, branch)
            changes = publishing.changes_on(db, branch)
            entry = publishing.apply(db, self.name, changes, signed) if changes else ""
            refs.forget_branch(db, branch)
            if tag and changes:
                refs.forget_tag(db, tag)
                refs.make_tag(db, tag, self.name, signed)
            return Published(True, entry)

        try:
            return self.database.write(work)
        except Moved as exc:
            return Published(False, moved=self.conflicts(branch) or (exc.table,))

    def discard(self, branch: str) -> bool:
        """Forget a branch; its files are nobody's then. False if there is none."""
        return self.database.write(lambda db: refs.forget_branch(db, branch))

    # ---- tags ---------------------------------------------------------------------------------------------------

    def tags(self) -> list[Ref]:
        """Every tag, with who made it from what and when."""
        with self.database.reading() as db:
            return refs.tags(db)

    def create_tag(self, name: str, from_ref: str = MAIN, commit: Commit | None = None) -> None:
        """Remember where all tables of main, a branch or another tag are, under a name."""
        source = CATALOG if from_ref == MAIN else from_ref
        made = self._signed(commit or Commit("tag"))
        self.database.write(lambda db: refs.make_tag(db, name, source, made))

    def drop_tag(self, name: str) -> bool:
        """Forget a tag; False if there is none."""
        return self.database.write(lambda db: refs.forget_tag(db, name))

    def tagged(self, tag: str) -> dict[TableName, str] | None:
        """Where everything pointed when a tag was made; None if there is no such tag."""
        with self.database.reading() as db:
            return refs.tagged(db, tag) if refs.existing(db, "lake_tags", tag) else None

    # ---- the log ------------------------------------------------------------------------------------------------

    def log(self, table: TableName | None = None, limit: int = 100) -> list[LogEntry]:
        """What was published here, the newest first: all of it, or what touched a table."""
        with self.database.reading() as db:
            return log.entries(db, self.name, table, limit)

    def note(self, table: TableName, before: str | None, commit: Commit) -> bool:
        """Write down a change that an engine made by itself; False if it was none, or not the only one since."""
        query = f"SELECT metadata_location, previous_metadata_location FROM iceberg_tables WHERE {KEY}"

        def work(db: Transaction) -> bool:
            row = db.execute(query, (self.name, table.namespace, table.table)).fetchone()
            if row is None or row[0] == before or row[1] != before:
                return False
            log.write(db, self.name, self._signed(commit), [Change(table, before, row[0])])
            return True

        return self.database.write(work)

    def write_down(self, changes: Sequence[Change], commit: Commit) -> str:
        """An entry of the log for what was done elsewhere; says its number."""
        return self.database.write(lambda db: log.write(db, self.name, self._signed(commit), changes))

    def published_by(self, run: str) -> LogEntry | None:
        """What a run published here, if it did."""
        with self.database.reading() as db:
            return log.of_run(db, self.name, run)

    def revert(self, entry: str, commit: Commit) -> Published:
        """Undo a publish in all its tables at once, if each is still as that publish left it."""
        undone = self.entry(entry)
        changes = [Change(each.table, each.after, each.before) for each in undone.tables]
        signed = self._signed(replace(commit, kind="revert"))
        try:
            return Published(True, self.database.write(lambda db: publishing.apply(db, self.name, changes, signed)))
        except Moved as exc:
            with self.database.reading() as db:
                return Published(False, moved=self._moved(db, changes) or (exc.table,))

    def entry(self, number: str) -> LogEntry:
        """One entry of the log by its number."""
        with self.database.reading() as db:
            found = log.entry(db, self.name, int(number)) if number.isdecimal() and len(number) < 19 else None
        if found is None:
            raise NoSuchCommitError(f"The log has no commit {number!r}.", "All of them: lake log")
        return found

    def state(self) -> str:
        """A hash of where everything points: it changes whenever anything does."""
        with self.database.reading() as db:
            return state_of(rows.pointers(db, self.name))

    def reachable(self, since: str = "") -> list[Reached]:
        """Every metadata file that something may still lead to: whoever deletes files keeps what these need.

        Args:
            since: entries of the log before that moment no longer count.
        """
        with self.database.reading() as db:
            return refs.reachable(db, since)

    # ---- soft drop ----------------------------------------------------------------------------------------------

    def drop(self, table: TableName, at: str) -> bool:
        """Move the table's row out of the catalog; its files stay."""

        def work(db: Transaction) -> bool:
            start = drops.drop(db, self.name, table, at)
            if start is not None:
                log.write(db, self.name, self._signed(Commit("drop")), [Change(table, start, None)])
            return start is not None

        return self.database.write(work)

    def undrop(self, table: TableName) -> bool:
        """Bring back what was dropped last under that name."""

        def work(db: Transaction) -> bool:
            end = drops.undrop(db, self.name, table)
            if end is not None:
                log.write(db, self.name, self._signed(Commit("undrop")), [Change(table, None, end)])
            return end is not None

        return self.database.write(work)

    def dropped(self) -> Sequence[TableName]:
        """The names that `undrop` knows."""
        with self.database.reading() as db:
            return drops.dropped(db, self.name)

    # ---- parts --------------------------------------------------------------------------------------------------

    def _signed(self, commit: Commit) -> Commit:
        """A commit with an author, and no text longer than its column."""
        author = (commit.author or self.author)[:_LONGEST_NAME]
        return replace(
            commit, author=author, message=commit.message[:_LONGEST_TEXT], source=commit.source[:_LONGEST_TEXT]
        )

    def _moved(self, db: Transaction, changes: Iterable[Change]) -> tuple[TableName, ...]:
        return tuple(each.table for each in changes if rows.pointer(db, self.name, each.table) != each.before)

    def _check_branch(self, db: Transaction, branch: str) -> None:
        if not refs.existing(db, "lake_branches", branch):
            known = ", ".join(ref.name for ref in refs.branches(db)[:10]) or "none"
            raise NoSuchBranchError(f"There is no branch {branch}.", f"There are: {known}.")
