"""Rows of `iceberg_tables`, as Iceberg's JdbcCatalog writes them.

Spark, PyIceberg and Trino read and write the same rows without us. So a pointer is replaced only if it is still the one
that the caller has seen, and each statement that depends on this states it in its WHERE clause.
"""

from __future__ import annotations

from collections.abc import Mapping

from lakehouse.catalogs.sql import namespaces
from lakehouse.catalogs.sql.database import Transaction
from lakehouse.core.names import TableName

TABLE, VIEW = "TABLE", "VIEW"
KEY = "catalog_name = ? AND table_namespace = ? AND table_name = ?"
#: The condition for each type. Rows of schema V0 and PyIceberg's have no type; they are all tables.
OF_TYPE = {TABLE: "(iceberg_type = 'TABLE' OR iceberg_type IS NULL)", VIEW: "iceberg_type = 'VIEW'", "": "1 = 1"}
COPY = (
    "SELECT ?, table_namespace, table_name, metadata_location, previous_metadata_location, iceberg_type"
    " FROM iceberg_tables"
)


def pointers(db: Transaction, name: str, kind: str = "") -> dict[TableName, str]:
    """Return the pointers of a catalog name: of its tables, of its views, or of both."""
    query = (
        "SELECT table_namespace, table_name, metadata_location FROM iceberg_tables"
        f" WHERE catalog_name = ? AND {OF_TYPE[kind]}"
    )
    rows = db.execute(query, (name,)).fetchall()
    return {TableName(namespace, table): location for namespace, table, location in rows}


def pointer(db: Transaction, name: str, table: TableName, kind: str = "") -> str | None:
    """Return the pointer of a table or view, or None if there is none."""
    query = f"SELECT metadata_location FROM iceberg_tables WHERE {KEY} AND {OF_TYPE[kind]}"
    row = db.execute(query, (name, table.namespace, table.table)).fetchone()
    return row[0] if row else None


def swap(db: Transaction, name: str, table: TableName, expected: str, new: str | None, kind: str = "") -> bool:
    """Replace a pointer (None deletes the row) if it is still `expected`.

    Where `new` is the same, the row stays locked until the transaction ends.
    """
    condition = f"{KEY} AND {OF_TYPE[kind]} AND metadata_location = ?"
    key = (name, table.namespace, table.table, expected)
    if new is None:
        return db.execute(f"DELETE FROM iceberg_tables WHERE {condition}", key).rowcount == 1
    if new == expected:
        hold = f"UPDATE iceberg_tables SET metadata_location = metadata_location WHERE {condition}"
        return db.execute(hold, key).rowcount == 1
    update = "UPDATE iceberg_tables SET metadata_location = ?, previous_metadata_location = ?"
    return db.execute(f"{update} WHERE {condition}", (new, expected, *key)).rowcount == 1


def add(db: Transaction, name: str, table: TableName, location: str, kind: str | None) -> bool:
    """Insert a table or view; False if the name is taken."""
    done = db.execute(
        "INSERT INTO iceberg_tables VALUES (?, ?, ?, ?, NULL, ?) ON CONFLICT DO NOTHING",
        (name, table.namespace, table.table, location, kind),
    )
    return done.rowcount == 1


def put(db: Transaction, name: str, pointers: Mapping[TableName, str | None]) -> None:
    """Insert or replace tables, whatever is there; None deletes one."""
    for table, location in pointers.items():
        delete(db, name, table)
        if location is not None:
            namespaces.ensure(db, name, table.namespace)
            add(db, name, table, location, TABLE)


def names(db: Transaction, name: str, namespace: str, kind: str, after: str = "", limit: int = 0) -> list[str]:
    """Return the names in a namespace in order: all of them, or at most `limit` after one."""
    query = (
        "SELECT table_name FROM iceberg_tables WHERE catalog_name = ? AND table_namespace = ?"
        f" AND {OF_TYPE[kind]} AND table_name > ? ORDER BY table_name" + (f" LIMIT {int(limit)}" if limit else "")
    )
    return [row[0] for row in db.execute(query, (name, namespace, after)).fetchall()]


def type_of(db: Transaction, name: str, table: TableName) -> str | None:
    """Return TABLE or VIEW, whichever has this name; None if it is free."""
    query = f"SELECT coalesce(iceberg_type, '{TABLE}') FROM iceberg_tables WHERE {KEY}"
    row = db.execute(query, (name, table.namespace, table.table)).fetchone()
    return row[0] if row else None


def rename(db: Transaction, name: str, table: TableName, new: TableName) -> None:
    """Rename a table or view, perhaps into another namespace."""
    db.execute(
        f"UPDATE iceberg_tables SET table_namespace = ?, table_name = ? WHERE {KEY}",
        (new.namespace, new.table, name, table.namespace, table.table),
    )


def delete(db: Transaction, name: str, table: TableName, kind: str = "") -> bool:
    """Delete the row of a table or view; False if there is none."""
    query = f"DELETE FROM iceberg_tables WHERE {KEY} AND {OF_TYPE[kind]}"
    return db.execute(query, (name, table.namespace, table.table)).rowcount == 1
