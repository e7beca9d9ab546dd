"""The catalog's rows for tables and views: read, exchanged all at once, renamed.

The rows are those of Iceberg's JdbcCatalog, so Spark and PyIceberg, which reach the same database without us, see
every change. A pointer moves only if it is where the change was made from (compare and swap), and several move in one
transaction or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse.core.names import TableName
from lakehouse.rest_catalog.answers import Note, no_note
from lakehouse.rest_catalog.names import shown, shown_namespace
from lakehouse.rest_catalog.namespace_rows import namespace_is_there
from lakehouse.rest_catalog.problems import AlreadyThere, NoSuchNamespace, NoSuchTable, NoSuchView, Problem

if TYPE_CHECKING:
    from lakehouse.catalogs.sql.database import Database, Transaction

TABLE, VIEW = "TABLE", "VIEW"

_KEY = "catalog_name = ? AND table_namespace = ? AND table_name = ?"
# Rows of schema V0 and PyIceberg's have no type; they are all tables.
_OF_KIND = {TABLE: "(iceberg_type = 'TABLE' OR iceberg_type IS NULL)", VIEW: "iceberg_type = 'VIEW'"}
_WORD = {TABLE: "Table", VIEW: "View"}
#: The width of the column.
_LONGEST_LOCATION = 1000


class Moved(Exception):
    """A pointer is no longer where the change was made from; undoes the transaction it is raised in."""


@dataclass(frozen=True)
class Swap:
    """One pointer's move; from nothing, where the table or view is new."""

    name: TableName
    start: str | None
    end: str
    kind: str = TABLE


class Pointers:
    """Where the newest metadata of every table and view is, on every branch."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, branch: str, name: TableName, kind: str = TABLE) -> str | None:
        """Where the newest metadata is, or None if there is nothing of that kind and name."""
        query = f"SELECT metadata_location FROM iceberg_tables WHERE {_KEY} AND {_OF_KIND[kind]}"
        with self._database.reading() as db:
            row = db.execute(query, (branch, name.namespace, name.table)).fetchone()
        return str(row[0]) if row else None

    def get(self, branch: str, name: TableName, kind: str = TABLE) -> str:
        """Where the newest metadata is; a missing table or view is an error."""
        found = self.find(branch, name, kind)
        if found is None:
            raise missing(name, kind)
        return found

    def names(self, branch: str, namespace: str, kind: str, after: str = "", most: int = 0) -> list[str]:
        """The names in a namespace, in order: all of them, or at most so many after one."""
        query = (
            "SELECT table_name FROM iceberg_tables WHERE catalog_name = ? AND table_namespace = ?"
            f" AND {_OF_KIND[kind]} AND table_name > ? ORDER BY table_name"
        )
        with self._database.reading() as db:
            if not namespace_is_there(db, branch, namespace):
                raise NoSuchNamespace(f"Namespace does not exist: {shown_namespace(namespace)}")
            limit = f" LIMIT {int(most)}" if most else ""
            rows = db.execute(query + limit, (branch, namespace, after)).fetchall()
        return [row[0] for row in rows]

    def check_free(self, branch: str, name: TableName, kind: str) -> None:
        """Refuse a name that is taken, or whose namespace is not there."""
        with self._database.reading() as db:
            _check_free(db, branch, name, kind)

    def swap(self, branch: str, swaps: Sequence[Swap], note: Note = no_note) -> bool:
        """Move all pointers, or none if one has moved since: then False. A new name that is taken is an error."""

        def work(db: Transaction) -> None:
            # One order for all, so that two transactions cannot wait for each other.
            for swap in sorted(swaps, key=lambda each: each.name):
                _move(db, branch, swap)
            note(db)

        try:
            self._database.write(work)
        except Moved:
            return False
        return True

    def rename(self, branch: str, start: TableName, end: TableName, kind: str, note: Note = no_note) -> None:
        """Give a table or view another name, perhaps in another namespace."""
        with self._database.transaction() as db:
            there = f"SELECT 1 FROM iceberg_tables WHERE {_KEY} AND {_OF_KIND[kind]}"
            if db.execute(there, (branch, start.namespace, start.table)).fetchone() is None:
                raise missing(start, kind)
            try:
                _check_free(db, branch, end, kind)
            except AlreadyThere as exc:
                told = exc.message.partition(" ")[0]
                raise AlreadyThere(f"Cannot rename {shown(start)} to {shown(end)}. {told} already exists") from exc
            db.execute(
                f"UPDATE iceberg_tables SET table_namespace = ?, table_name = ? WHERE {_KEY}",
                (end.namespace, end.table, branch, start.namespace, start.table),
            )
            note(db)

    def drop_view(self, branch: str, name: TableName, note: Note = no_note) -> None:
        """Forget a view; its metadata file stays."""
        with self._database.transaction() as db:
            done = db.execute(
                f"DELETE FROM iceberg_tables WHERE {_KEY} AND {_OF_KIND[VIEW]}", (branch, name.namespace, name.table)
            )
            if not done.rowcount:
                raise missing(name, VIEW)
            note(db)


def missing(name: TableName, kind: str) -> Problem:
    """The error for a table or view that is not there."""
    problem = NoSuchTable if kind == TABLE else NoSuchView
    return problem(f"{_WORD[kind]} does not exist: {shown(name)}")


def _move(db: Transaction, branch: str, swap: Swap) -> None:
    if len(swap.end) > _LONGEST_LOCATION:
        raise Problem(f"The location of {shown(swap.name)} is longer than the catalog can hold.")
    key = (branch, swap.name.namespace, swap.name.table)
    if swap.start is None:
        _check_free(db, branch, swap.name, swap.kind)
        # Somebody else's transaction may put the same name there in the meantime; the key decides who was first.
        done = db.execute(
            "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, iceberg_type)"
            " VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (*key, swap.end, swap.kind),
        )
        if done.rowcount != 1:
            raise AlreadyThere(f"{_WORD[swap.kind]} already exists: {shown(swap.name)}")
        return
    if swap.start == swap.end:
        # Nothing moves, but the row is held until the transaction ends.
        hold = f"UPDATE iceberg_tables SET metadata_location = metadata_location WHERE {_KEY} AND metadata_location = ?"
        if db.execute(hold, (*key, swap.start)).rowcount != 1:
            raise Moved
        return
    done = db.execute(
        "UPDATE iceberg_tables SET metadata_location = ?, previous_metadata_location = ?"
        f" WHERE {_KEY} AND {_OF_KIND[swap.kind]} AND metadata_location = ?",
        (swap.end, swap.start, *key, swap.start),
    )
    if done.rowcount != 1:
        raise Moved


def _check_free(db: Transaction, branch: str, name: TableName, kind: str) -> None:
    if not namespace_is_there(db, branch, name.namespace):
        raise NoSuchNamespace(f"Namespace does not exist: {shown_namespace(name.namespace)}")
    query = f"SELECT iceberg_type FROM iceberg_tables WHERE {_KEY}"
    row = db.execute(query, (branch, name.namespace, name.table)).fetchone()
    if row is None:
        return
    found = row[0] or TABLE
    same = "already exists" if found == kind else "with same name already exists"
    raise AlreadyThere(f"{_WORD[found]} {same}: {shown(name)}")
