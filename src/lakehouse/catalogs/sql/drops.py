"""Soft drops: a dropped table's row moves to another catalog name, from where it can come back."""

from __future__ import annotations

from collections.abc import Sequence

from lakehouse.catalogs.sql.database import DuplicateKeyError, Transaction
from lakehouse.catalogs.sql.rows import IS_TABLE, KEY
from lakehouse.catalogs.sql.schema import DROPPED
from lakehouse.core.errors import TableExistsError
from lakehouse.core.names import TableName


def drop(db: Transaction, name: str, table: TableName, at: str, start: str | None = None) -> str | None:
    """Move a table's row out of a catalog; says where it pointed, None if it is not there or no longer at `start`."""
    key = (name, table.namespace, table.table)
    query = f"SELECT metadata_location FROM iceberg_tables WHERE {KEY} AND {IS_TABLE}"
    row = db.execute(query, key).fetchone()
    if row is None or (start is not None and row[0] != start):
        return None
    kept = db.execute(
        "INSERT INTO lake_dropped (namespace, table_name, dropped_at, branch) VALUES (?, ?, ?, ?) RETURNING id",
        (table.namespace, table.table, at, name),
    ).fetchone()[0]
    done = db.execute(
        f"UPDATE iceberg_tables SET catalog_name = ?, table_name = ? WHERE {KEY} AND metadata_location = ?",
        (DROPPED, f"{table.table}#{kept}", *key, row[0]),
    )
    if done.rowcount != 1:  # somebody else was faster
        db.execute("DELETE FROM lake_dropped WHERE id = ?", (kept,))
        return None
    return str(row[0])


def undrop(db: Transaction, name: str, table: TableName) -> str | None:
    """Bring back what was dropped last under that name; says where it points, None if there is nothing to bring back."""
    found = db.execute(
        "SELECT max(id) FROM lake_dropped WHERE namespace = ? AND table_name = ? AND branch = ?",
        (table.namespace, table.table, name),
    ).fetchone()[0]
    if found is None:
        return None
    try:
        row = db.execute(
            f"UPDATE iceberg_tables SET catalog_name = ?, table_name = ? WHERE {KEY} RETURNING metadata_location",
            (name, table.table, DROPPED, table.namespace, f"{table.table}#{found}"),
        ).fetchone()
    except DuplicateKeyError as exc:
        raise TableExistsError(
            f"There is a table {table} again, so the dropped one cannot come back under that name.",
            f"Rename the new one first: lake sql 'alter table {table} rename to {table}_new'",
        ) from exc
    db.execute("DELETE FROM lake_dropped WHERE id = ?", (found,))
    return str(row[0])


def dropped(db: Transaction, name: str) -> Sequence[TableName]:
    """The names that `undrop` knows."""
    query = "SELECT DISTINCT namespace, table_name FROM lake_dropped WHERE branch = ? ORDER BY 1, 2"
    return [TableName(namespace, table) for namespace, table in db.execute(query, (name,)).fetchall()]


def forget(db: Transaction, name: str) -> None:
    """What was dropped on a branch goes with the branch."""
    rows = db.execute("SELECT id, namespace, table_name FROM lake_dropped WHERE branch = ?", (name,)).fetchall()
    for kept, namespace, table in rows:
        db.execute(f"DELETE FROM iceberg_tables WHERE {KEY}", (DROPPED, namespace, f"{table}#{kept}"))
    db.execute("DELETE FROM lake_dropped WHERE branch = ?", (name,))
