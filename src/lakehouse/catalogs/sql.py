"""The SQL catalog: Iceberg's own tables in one SQLite file, shared by Spark (JdbcCatalog), PyIceberg and us.

A table is a row that points at its newest metadata file, keyed by (catalog name, namespace, table). Reading a
pointer therefore needs nothing but sqlite3. The catalog name is more than a label: another name is another set of
pointers. That is how a dropped table is kept (its row moves to the catalog `lake__dropped`), and how branches work.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from lakehouse.core.errors import HomeError, TableExistsError
from lakehouse.core.names import CATALOG, TableName
from lakehouse.core.uris import file_uri

#: A writer that finds the file busy waits this long; the slowest commit of eight writers took under a second.
BUSY_TIMEOUT_MS = 30_000
#: Iceberg tries a commit 4 times by default, which 8 writers at once exhaust.
COMMIT_RETRIES = 30

_DROPPED = f"{CATALOG}__dropped"

# Iceberg's JdbcCatalog schema V1 (V0 lacks record_type and so has no views). Whoever comes first makes the tables.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS iceberg_tables (
  catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL,
  metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), iceberg_type VARCHAR(5),
  PRIMARY KEY (catalog_name, table_namespace, table_name));
CREATE TABLE IF NOT EXISTS iceberg_namespace_properties (
  catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL,
  property_key VARCHAR(255) NOT NULL, property_value VARCHAR(1000),
  PRIMARY KEY (catalog_name, namespace, property_key));
CREATE TABLE IF NOT EXISTS lake_dropped (
  id INTEGER PRIMARY KEY AUTOINCREMENT, namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL,
  dropped_at VARCHAR(40) NOT NULL);
"""


class SqlCatalog:
    """Pointers to Iceberg tables in a SQLite file."""

    def __init__(self, file: Path, warehouse: Path, name: str = CATALOG) -> None:
        self.file, self.warehouse, self.name = file, warehouse, name

    # ---- settings for others ------------------------------------------------------------------------------------

    def spark_conf(self) -> Mapping[str, str]:
        """What a Spark session needs to see this catalog under its name."""
        prefix = f"spark.sql.catalog.{self.name}"
        return {
            prefix: "org.apache.iceberg.spark.SparkCatalog",
            f"{prefix}.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
            f"{prefix}.uri": f"jdbc:sqlite:{self.file}?journal_mode=WAL&busy_timeout={BUSY_TIMEOUT_MS}",
            f"{prefix}.jdbc.schema-version": "V1",
            f"{prefix}.warehouse": file_uri(self.warehouse),
            # Spark's cache would hide commits of PyIceberg and of other sessions.
            f"{prefix}.cache-enabled": "false",
            # Version 2, because PyIceberg reads version 3 but cannot write it.
            f"{prefix}.table-default.format-version": "2",
            f"{prefix}.table-default.commit.retry.num-retries": str(COMMIT_RETRIES),
            f"{prefix}.table-default.write.parquet.compression-codec": "zstd",
        }

    def pyiceberg_properties(self) -> Mapping[str, str]:
        """What `pyiceberg.catalog.load_catalog` needs."""
        return {"type": "sql", "uri": f"sqlite:///{self.file}", "warehouse": file_uri(self.warehouse)}

    def ready(self) -> None:
        """Make the tables, unless they are there: two Spark sessions that both find none would get in each other's way."""
        with self._connect():
            pass

    # ---- pointers -----------------------------------------------------------------------------------------------

    def tables(self) -> Sequence[TableName]:
        """Every Iceberg table, by name."""
        query = "SELECT table_namespace, table_name FROM iceberg_tables WHERE catalog_name = ? AND " + _IS_TABLE
        with self._connect() as db:
            rows = db.execute(query + " ORDER BY 1, 2", (self.name,)).fetchall()
        return [TableName(namespace, table) for namespace, table in rows]

    def pointer(self, table: TableName) -> str | None:
        """Where the newest metadata of a table is, or None if there is no such table."""
        query = (
            "SELECT metadata_location FROM iceberg_tables"
            f" WHERE catalog_name = ? AND table_namespace = ? AND table_name = ? AND {_IS_TABLE}"
        )
        with self._connect() as db:
            row = db.execute(query, (self.name, table.namespace, table.table)).fetchone()
        return str(row[0]) if row else None

    def has_view(self, name: TableName) -> bool:
        """Whether the name is a view's."""
        query = (
            "SELECT 1 FROM iceberg_tables WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?"
            " AND iceberg_type = 'VIEW'"
        )
        with self._connect() as db:
            return db.execute(query, (self.name, name.namespace, name.table)).fetchone() is not None

    # ---- namespaces ---------------------------------------------------------------------------------------------

    def ensure_namespace(self, namespace: str) -> None:
        """Make the namespace unless it is there, as JdbcCatalog does: by one property of it."""
        with self._connect() as db:
            db.execute(
                "INSERT OR IGNORE INTO iceberg_namespace_properties VALUES (?, ?, 'exists', 'true')",
                (self.name, namespace),
            )

    # ---- branches: the same tables under another catalog name ------------------------------------------------------

    def on(self, branch: str) -> SqlCatalog:
        """The catalog as a branch has it."""
        return SqlCatalog(self.file, self.warehouse, branch)

    def fork(self, branch: str, tables: Sequence[TableName]) -> dict[TableName, str | None]:
        """Give a branch these tables as they are now; says where each pointed, None for one that is not there yet."""
        base: dict[TableName, str | None] = {}
        with self._connect() as db:
            db.execute("BEGIN IMMEDIATE")
            for table in tables:
                key = (self.name, table.namespace, table.table)
                row = db.execute(f"SELECT metadata_location FROM iceberg_tables WHERE {_KEY}", key).fetchone()
                base[table] = row[0] if row else None
                db.execute(f"INSERT INTO iceberg_tables {_COPY} WHERE {_KEY}", (branch, *key))
                db.execute(
                    "INSERT OR IGNORE INTO iceberg_namespace_properties VALUES (?, ?, 'exists', 'true')",
                    (branch, table.namespace),
                )
        return base

    def move(self, table: TableName, start: str, end: str) -> None:
        """Point a table elsewhere, if it still points where it did."""
        with self._connect() as db:
            db.execute(
                f"UPDATE iceberg_tables SET metadata_location = ? WHERE {_KEY} AND metadata_location = ?",
                (end, self.name, table.namespace, table.table, start),
            )

    def publish(self, branch: str, base: Mapping[TableName, str | None]) -> bool:
        """Make a branch's tables those of this catalog: all of them or, if any has moved since `base`, none."""
        try:
            with self._connect() as db:
                db.execute("BEGIN IMMEDIATE")
                for table, start in base.items():
                    _publish_one(db, branch, self.name, table, start)
                _forget(db, branch)
        except _Moved:
            return False
        return True

    def branches(self) -> list[str]:
        """Every branch that has a table; not the place where dropped ones are kept."""
        query = "SELECT DISTINCT catalog_name FROM iceberg_tables WHERE catalog_name NOT IN (?, ?) ORDER BY 1"
        with self._connect() as db:
            return [row[0] for row in db.execute(query, (CATALOG, _DROPPED)).fetchall()]

    def branches_of(self, table: TableName, prefix: str) -> list[str]:
        """The branches with such a name that have a table."""
        query = (
            "SELECT DISTINCT catalog_name FROM iceberg_tables"
            " WHERE substr(catalog_name, 1, ?) = ? AND table_namespace = ? AND table_name = ?"
        )
        with self._connect() as db:
            rows = db.execute(query, (len(prefix), prefix, table.namespace, table.table)).fetchall()
        return [row[0] for row in rows]

    def discard(self, branch: str) -> None:
        """Forget a branch; its files are nobody's then."""
        with self._connect() as db:
            _forget(db, branch)

    # ---- soft drop ----------------------------------------------------------------------------------------------

    def drop(self, table: TableName, at: str) -> bool:
        """Move the table's row out of the catalog; its files stay. One transaction."""
        with self._connect() as db:
            db.execute("BEGIN IMMEDIATE")
            done = db.execute(
                "INSERT INTO lake_dropped (namespace, table_name, dropped_at)"
                " SELECT table_namespace, table_name, ? FROM iceberg_tables"
                f" WHERE catalog_name = ? AND table_namespace = ? AND table_name = ? AND {_IS_TABLE}",
                (at, self.name, table.namespace, table.table),
            )
            if not done.rowcount:
                return False
            db.execute(
                "UPDATE iceberg_tables SET catalog_name = ?, table_name = ?"
                " WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?",
                (_DROPPED, f"{table.table}#{done.lastrowid}", self.name, table.namespace, table.table),
            )
        return True

    def undrop(self, table: TableName) -> bool:
        """Bring back what was dropped last under that name. One transaction."""
        with self._connect() as db:
            db.execute("BEGIN IMMEDIATE")
            row = db.execute(
                "SELECT max(id) FROM lake_dropped WHERE namespace = ? AND table_name = ?",
                (table.namespace, table.table),
            ).fetchone()
            if row[0] is None:
                return False
            try:
                db.execute(
                    "UPDATE iceberg_tables SET catalog_name = ?, table_name = ?"
                    " WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?",
                    (self.name, table.table, _DROPPED, table.namespace, f"{table.table}#{row[0]}"),
                )
            except sqlite3.IntegrityError as exc:
                raise TableExistsError(
                    f"There is a table {table} again, so the dropped one cannot come back under that name.",
                    f"Rename the new one first: lake sql 'alter table {table} rename to {table}_new'",
                ) from exc
            db.execute("DELETE FROM lake_dropped WHERE id = ?", (row[0],))
        return True

    def dropped(self) -> Sequence[TableName]:
        """The names that `undrop` knows."""
        with self._connect() as db:
            rows = db.execute("SELECT DISTINCT namespace, table_name FROM lake_dropped ORDER BY 1, 2").fetchall()
        return [TableName(namespace, table) for namespace, table in rows]

    # ---- the file -----------------------------------------------------------------------------------------------

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        """A short-lived connection: committed if the block ends well, rolled back if it does not."""
        try:
            db = sqlite3.connect(self.file, timeout=BUSY_TIMEOUT_MS / 1000)
        except sqlite3.OperationalError as exc:
            raise HomeError(f"The catalog {self.file} cannot be opened: {exc}.", "lake doctor") from exc
        try:
            # user_version says that the tables are there, so that a read costs one page and not three DDLs.
            if not db.execute("PRAGMA user_version").fetchone()[0]:
                _make_tables(db)
            with db:
                yield db
        except sqlite3.DatabaseError as exc:
            raise HomeError(
                f"The catalog {self.file} cannot be used: {exc}.",
                "lake doctor tells more; if the file is damaged, restore it from a backup (the data files are whole).",
            ) from exc
        finally:
            db.close()


def _make_tables(db: sqlite3.Connection) -> None:
    """Make the tables. Changing the journal's mode does not wait for a busy file by itself, so this does."""
    deadline = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
            db.executescript("BEGIN IMMEDIATE;" + _SCHEMA + "PRAGMA user_version=1; COMMIT;")
            return
        except sqlite3.OperationalError as exc:
            if "locked" not in str(exc) or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


class _Moved(Exception):
    """A table no longer points where a publisher thinks; undoes the transaction it is raised in."""


def _publish_one(db: sqlite3.Connection, branch: str, name: str, table: TableName, start: str | None) -> None:
    key = (name, table.namespace, table.table)
    row = db.execute(f"SELECT metadata_location FROM iceberg_tables WHERE {_KEY}", (branch, *key[1:])).fetchone()
    if row is None or row[0] == start:
        return
    if start is None:
        done = db.execute(f"INSERT OR IGNORE INTO iceberg_tables {_COPY} WHERE {_KEY}", (name, branch, *key[1:]))
        db.execute("INSERT OR IGNORE INTO iceberg_namespace_properties VALUES (?, ?, 'exists', 'true')", (name, key[1]))
    else:
        done = db.execute(
            "UPDATE iceberg_tables SET metadata_location = ?, previous_metadata_location = ?"
            f" WHERE {_KEY} AND metadata_location = ?",
            (row[0], start, *key, start),
        )
    if done.rowcount != 1:
        raise _Moved


def _forget(db: sqlite3.Connection, branch: str) -> None:
    db.execute("DELETE FROM iceberg_tables WHERE catalog_name = ?", (branch,))
    db.execute("DELETE FROM iceberg_namespace_properties WHERE catalog_name = ?", (branch,))


_KEY = "catalog_name = ? AND table_namespace = ? AND table_name = ?"
_COPY = (
    "SELECT ?, table_namespace, table_name, metadata_location, previous_metadata_location, iceberg_type"
    " FROM iceberg_tables"
)
# Rows written by schema V0 or by PyIceberg have no type; they are all tables.
_IS_TABLE = "(iceberg_type = 'TABLE' OR iceberg_type IS NULL)"
