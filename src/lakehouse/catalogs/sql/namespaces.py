"""Rows of `iceberg_namespace_properties`, as Iceberg's JdbcCatalog writes them: one property marks that a namespace exists.

A namespace also exists if a table or another namespace below it does, as in JdbcCatalog.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lakehouse.catalogs.sql.database import Transaction

MARKER = "exists"
#: The widths of the columns, which SQLite does not enforce.
MAX_KEY, MAX_VALUE = 255, 1000
_OWN = "catalog_name = ? AND namespace = ?"
#: Where namespaces occur: the table, and its column.
_COLUMNS = {"iceberg_namespace_properties": "namespace", "iceberg_tables": "table_namespace"}


def names(db: Transaction, name: str) -> set[str]:
    """Return every namespace of a catalog name that has rows."""
    return {
        row[0]
        for table, column in _COLUMNS.items()
        for row in db.execute(f"SELECT DISTINCT {column} FROM {table} WHERE catalog_name = ?", (name,)).fetchall()
    }


def exists(db: Transaction, name: str, namespace: str) -> bool:
    """Return whether a namespace has rows of its own or of something below it."""
    return any(_has_rows(db, table, name, namespace, own=True) for table in _COLUMNS)


def is_empty(db: Transaction, name: str, namespace: str) -> bool:
    """Return whether a namespace has no tables, views and namespaces below it; its properties do not count."""
    return not any(_has_rows(db, table, name, namespace, own=table == "iceberg_tables") for table in _COLUMNS)


def _has_rows(db: Transaction, table: str, name: str, namespace: str, own: bool) -> bool:
    column, below = _COLUMNS[table], f"{namespace}."
    same = f"{column} = ? OR" if own else f"{column} <> ? AND"
    query = f"SELECT 1 FROM {table} WHERE catalog_name = ? AND ({same} substr({column}, 1, ?) = ?) LIMIT 1"
    return db.execute(query, (name, namespace, len(below), below)).fetchone() is not None


def ensure(db: Transaction, name: str, namespace: str) -> bool:
    """Create a namespace unless it has a row that marks it; False if it has."""
    return _add(db, name, namespace, MARKER, "true")


def properties(db: Transaction, name: str, namespace: str) -> dict[str, str]:
    """Return the properties of a namespace."""
    query = f"SELECT property_key, property_value FROM iceberg_namespace_properties WHERE {_OWN} ORDER BY 1"
    return {key: value for key, value in db.execute(query, (name, namespace)).fetchall() if key != MARKER}


def update(db: Transaction, name: str, namespace: str, updates: Mapping[str, str], removals: Iterable[str]) -> None:
    """Set and remove properties of a namespace."""
    for key in {*removals, *updates}:
        query = f"DELETE FROM iceberg_namespace_properties WHERE {_OWN} AND property_key = ?"
        db.execute(query, (name, namespace, key))
    # PyIceberg writes no marker where there are properties; without it, the last removal would end the namespace.
    ensure(db, name, namespace)
    for key, value in updates.items():
        _add(db, name, namespace, key, value)


def drop(db: Transaction, name: str, namespace: str) -> None:
    """Delete the properties of a namespace."""
    db.execute(f"DELETE FROM iceberg_namespace_properties WHERE {_OWN}", (name, namespace))


def _add(db: Transaction, name: str, namespace: str, key: str, value: str) -> bool:
    done = db.execute(
        "INSERT INTO iceberg_namespace_properties VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (name, namespace, key, value),
    )
    return done.rowcount == 1
