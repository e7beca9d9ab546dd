"""Soft drops: a dropped table's row moves to another catalog name, from which it can be restored."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lakehouse.catalogs.sql.database import DuplicateKeyError, Transaction
from lakehouse.catalogs.sql.rows import KEY, TABLE, pointer
from lakehouse.catalogs.sql.schema import DROPPED
from lakehouse.core.errors import TableExistsError
from lakehouse.core.names import TableName
from lakehouse.core.tables import Drop


def drop(db: Transaction, name: str, table: TableName, at: str, start: str | None = None) -> str | None:
    """Move a table's row out of a catalog and return its pointer; None if it does not exist or is no longer `start`."""
    key = (name, table.namespace, table.table)
    dropped = pointer(db, name, table, TABLE)
    if dropped is None or (start is not None and dropped != start):
        return None
    number = db.execute(
        "INSERT INTO lake_dropped (namespace, table_name, dropped_at, branch) VALUES (?, ?, ?, ?) RETURNING id",
        (table.namespace, table.table, at, name),
    ).fetchone()[0]
    done = db.execute(
        f"UPDATE iceberg_tables SET catalog_name = ?, table_name = ? WHERE {KEY} AND metadata_location = ?",
        (DROPPED, f"{table.table}#{number}", *key, dropped),
    )
    if done.rowcount != 1:  # another transaction was first
        db.execute("DELETE FROM lake_dropped WHERE id = ?", (number,))
        return None
    return dropped


def undrop(db: Transaction, name: str, table: TableName, drop: str = "") -> str | None:
    """Restore the table of a drop, or the one that was dropped last under a name; returns its pointer, None if there is none."""
    ids = [int(dropped.id) for dropped in drops(db, name) if dropped.table == table and drop in ("", dropped.id)]
    if not ids:
        return None
    number = max(ids)
    try:
        row = db.execute(
            f"UPDATE iceberg_tables SET catalog_name = ?, table_name = ? WHERE {KEY} RETURNING metadata_location",
            (name, table.table, DROPPED, table.namespace, f"{table.table}#{number}"),
        ).fetchone()
    except DuplicateKeyError as exc:
        raise TableExistsError(
            f"There is a table {table} again, so the dropped one cannot be restored under that name.",
            f"Rename the new one first: lake sql 'alter table {table} rename to {table}_new'",
        ) from exc
    db.execute("DELETE FROM lake_dropped WHERE id = ?", (number,))
    return str(row[0])


def dropped(db: Transaction, name: str) -> Sequence[TableName]:
    """Return the names that `undrop` can restore."""
    query = "SELECT DISTINCT namespace, table_name FROM lake_dropped WHERE branch = ? ORDER BY 1, 2"
    return [TableName(namespace, table) for namespace, table in db.execute(query, (name,)).fetchall()]


def drops(db: Transaction, name: str) -> Sequence[Drop]:
    """Return all that `undrop` can restore."""
    query = "SELECT namespace, table_name, id, dropped_at FROM lake_dropped WHERE branch = ? ORDER BY 1, 2, 3"
    return [
        Drop(TableName(namespace, table), str(number), at)
        for namespace, table, number, at in db.execute(query, (name,)).fetchall()
    ]


def forget(db: Transaction, name: str) -> None:
    """Delete the dropped tables of a branch."""
    rows = db.execute("SELECT id, namespace, table_name FROM lake_dropped WHERE branch = ?", (name,)).fetchall()
    for number, namespace, table in rows:
        db.execute(f"DELETE FROM iceberg_tables WHERE {KEY}", (DROPPED, namespace, f"{table}#{number}"))
    db.execute("DELETE FROM lake_dropped WHERE branch = ?", (name,))


def forget_before(db: Transaction, before: Callable[[TableName], str]) -> list[TableName]:
    """Delete the tables that were dropped before a time of their own, on any branch, and return their names."""
    forgotten = []
    for number, namespace, table, at in db.execute(
        "SELECT id, namespace, table_name, dropped_at FROM lake_dropped ORDER BY id"
    ).fetchall():
        name = TableName(namespace, table)
        if at >= before(name):
            continue
        db.execute(f"DELETE FROM iceberg_tables WHERE {KEY}", (DROPPED, namespace, f"{table}#{number}"))
        db.execute("DELETE FROM lake_dropped WHERE id = ?", (number,))
        forgotten.append(name)
    return forgotten
