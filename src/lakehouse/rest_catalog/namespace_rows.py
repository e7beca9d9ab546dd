"""The catalog's rows for namespaces, as JdbcCatalog writes them: properties, one of which says that it exists.

A namespace is also there when a table or a namespace below it is, as JdbcCatalog has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from lakehouse.rest_catalog.answers import Note, no_note
from lakehouse.rest_catalog.names import shown_namespace
from lakehouse.rest_catalog.problems import AlreadyThere, NoSuchNamespace, NotEmpty, Problem

if TYPE_CHECKING:
    from lakehouse.catalogs.sql.database import Database, Transaction

_MARKER = "exists"
#: The widths of the columns, which SQLite does not insist on.
_LONGEST_KEY, _LONGEST_VALUE = 255, 1000


class Namespaces:
    """The namespaces of every branch and their properties."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def keys(self, branch: str) -> set[str]:
        """Every namespace that has rows."""
        with self._database.reading() as db:
            return {
                row[0]
                for column, table in (
                    ("namespace", "iceberg_namespace_properties"),
                    ("table_namespace", "iceberg_tables"),
                )
                for row in db.execute(
                    f"SELECT DISTINCT {column} FROM {table} WHERE catalog_name = ?", (branch,)
                ).fetchall()
            }

    def is_there(self, branch: str, key: str) -> bool:
        """Whether there is such a namespace."""
        with self._database.reading() as db:
            return namespace_is_there(db, branch, key)

    def properties(self, branch: str, key: str) -> dict[str, str]:
        """A namespace's properties."""
        with self._database.reading() as db:
            _check_there(db, branch, key)
            return _properties(db, branch, key)

    def create(self, branch: str, key: str, properties: Mapping[str, str], note: Note = no_note) -> None:
        """Make a namespace."""
        _check(properties)
        with self._database.transaction() as db:
            if namespace_is_there(db, branch, key) or not _put(db, branch, key, {_MARKER: "true"}):
                raise AlreadyThere(f"Namespace already exists: {shown_namespace(key)}")
            _put(db, branch, key, properties)
            note(db)

    def change(
        self, branch: str, key: str, updates: Mapping[str, str], removals: Iterable[str], note: Note = no_note
    ) -> set[str]:
        """Set and remove properties; says which of the removals were there."""
        _check(updates)
        with self._database.transaction() as db:
            _check_there(db, branch, key)
            removed = set(removals) & set(_properties(db, branch, key))
            for name in [*removed, *updates]:
                db.execute(
                    "DELETE FROM iceberg_namespace_properties"
                    " WHERE catalog_name = ? AND namespace = ? AND property_key = ?",
                    (branch, key, name),
                )
            # PyIceberg makes no marker where there are properties; without it the last removal would end the namespace.
            _put(db, branch, key, {_MARKER: "true", **updates})
            note(db)
        return removed

    def drop(self, branch: str, key: str, note: Note = no_note) -> None:
        """Forget an empty namespace."""
        with self._database.transaction() as db:
            _check_there(db, branch, key)
            below = (branch, key, len(key) + 1, f"{key}.")
            for column, table in (("table_namespace", "iceberg_tables"), ("namespace", "iceberg_namespace_properties")):
                # Its own properties do not count as content.
                own = f"{column} = ? OR" if table == "iceberg_tables" else f"{column} <> ? AND"
                query = f"SELECT 1 FROM {table} WHERE catalog_name = ? AND ({own} substr({column}, 1, ?) = ?) LIMIT 1"
                if db.execute(query, below).fetchone():
                    raise NotEmpty(f"Namespace is not empty: {shown_namespace(key)}")
            db.execute(
                "DELETE FROM iceberg_namespace_properties WHERE catalog_name = ? AND namespace = ?", (branch, key)
            )
            note(db)


def namespace_is_there(db: Transaction, branch: str, key: str) -> bool:
    """Whether there is such a namespace, by a row of its own or of something below it."""
    for column, table in (("namespace", "iceberg_namespace_properties"), ("table_namespace", "iceberg_tables")):
        query = f"SELECT 1 FROM {table} WHERE catalog_name = ? AND ({column} = ? OR substr({column}, 1, ?) = ?) LIMIT 1"
        if db.execute(query, (branch, key, len(key) + 1, f"{key}.")).fetchone():
            return True
    return False


def _check_there(db: Transaction, branch: str, key: str) -> None:
    if not namespace_is_there(db, branch, key):
        raise NoSuchNamespace(f"Namespace does not exist: {shown_namespace(key)}")


def _properties(db: Transaction, branch: str, key: str) -> dict[str, str]:
    query = (
        "SELECT property_key, property_value FROM iceberg_namespace_properties"
        " WHERE catalog_name = ? AND namespace = ? ORDER BY property_key"
    )
    rows = db.execute(query, (branch, key)).fetchall()
    return {name: value for name, value in rows if name != _MARKER}


def _put(db: Transaction, branch: str, key: str, properties: Mapping[str, str]) -> bool:
    """Add properties; False if one was there already."""
    done = [
        db.execute(
            "INSERT INTO iceberg_namespace_properties (catalog_name, namespace, property_key, property_value)"
            " VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (branch, key, name, value),
        ).rowcount
        for name, value in properties.items()
    ]
    return all(done)


def _check(properties: Mapping[str, str]) -> None:
    if _MARKER in properties:
        raise Problem(f"The property {_MARKER!r} of a namespace is the catalog's own.")
    for name, value in properties.items():
        if not name or len(name) > _LONGEST_KEY or len(value) > _LONGEST_VALUE:
            raise Problem(
                f"The property {name[:40]!r} is too long.",
                f"A name may have {_LONGEST_KEY} characters, a value {_LONGEST_VALUE}.",
            )
