"""Rows of `iceberg_tables`: the pointers, read and exchanged only if they are still what somebody saw."""

from __future__ import annotations

from collections.abc import Mapping

from lakehouse.catalogs.sql.database import Transaction
from lakehouse.core.names import TableName

KEY = "catalog_name = ? AND table_namespace = ? AND table_name = ?"
COPY = (
    "SELECT ?, table_namespace, table_name, metadata_location, previous_metadata_location, iceberg_type"
    " FROM iceberg_tables"
)
# Rows written by schema V0 or by PyIceberg have no type; they are all tables.
IS_TABLE = "(iceberg_type = 'TABLE' OR iceberg_type IS NULL)"


def pointers(db: Transaction, name: str) -> dict[TableName, str]:
    """Where everything points in a catalog, views included."""
    query = "SELECT table_namespace, table_name, metadata_location FROM iceberg_tables WHERE catalog_name = ?"
    rows = db.execute(query, (name,)).fetchall()
    return {TableName(namespace, table): location for namespace, table, location in rows}


def pointer(db: Transaction, name: str, table: TableName) -> str | None:
    """Where one table or view points."""
    query = f"SELECT metadata_location FROM iceberg_tables WHERE {KEY}"
    row = db.execute(query, (name, table.namespace, table.table)).fetchone()
    return row[0] if row else None


def exchange(db: Transaction, name: str, table: TableName, start: str, end: str) -> bool:
    """Point elsewhere, if it still points where it did."""
    done = db.execute(
        "UPDATE iceberg_tables SET metadata_location = ?, previous_metadata_location = ?"
        f" WHERE {KEY} AND metadata_location = ?",
        (end, start, name, table.namespace, table.table, start),
    )
    return done.rowcount == 1


def add(db: Transaction, name: str, table: TableName, location: str, kind: str | None) -> bool:
    """Put a table where none is."""
    ensure_namespace(db, name, table.namespace)
    done = db.execute(
        "INSERT INTO iceberg_tables VALUES (?, ?, ?, ?, NULL, ?) ON CONFLICT DO NOTHING",
        (name, table.namespace, table.table, location, kind),
    )
    return done.rowcount == 1


def put(db: Transaction, name: str, found: Mapping[TableName, str | None]) -> None:
    """Put tables where they were found, whatever is there; None takes one out."""
    for table, place in found.items():
        db.execute(f"DELETE FROM iceberg_tables WHERE {KEY}", (name, table.namespace, table.table))
        if place is not None:
            add(db, name, table, place, "TABLE")


def ensure_namespace(db: Transaction, name: str, namespace: str) -> None:
    """Make the namespace unless it is there, as JdbcCatalog does: by one property of it."""
    db.execute(
        "INSERT INTO iceberg_namespace_properties VALUES (?, ?, 'exists', 'true') ON CONFLICT DO NOTHING",
        (name, namespace),
    )
