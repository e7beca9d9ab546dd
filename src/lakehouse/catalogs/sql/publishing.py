"""Publishing: many pointers exchanged in one transaction, each only if it is still where the publisher saw it."""

from __future__ import annotations

from collections.abc import Iterable

from lakehouse.catalogs.sql import drops, log, rows
from lakehouse.catalogs.sql.database import Transaction
from lakehouse.core.names import TableName
from lakehouse.core.refs import Change, Commit


class Moved(Exception):
    """A table no longer points where a publisher thinks; undoes the transaction it is raised in."""

    def __init__(self, table: TableName) -> None:
        self.table = table
        super().__init__(str(table))


def base_of(db: Transaction, branch: str) -> dict[TableName, str]:
    """Where each table of a branch pointed when the branch was made."""
    query = "SELECT namespace, table_name, metadata_location FROM lake_branch_tables WHERE branch = ?"
    return {TableName(space, table): place for space, table, place in db.execute(query, (branch,)).fetchall()}


def changes_on(db: Transaction, branch: str) -> list[Change]:
    """What a branch has changed since it was made, by the tables' names."""
    base, here = base_of(db, branch), rows.pointers(db, branch)
    return [
        Change(table, base.get(table), here.get(table))
        for table in sorted({*base, *here})
        if base.get(table) != here.get(table)
    ]


def apply(db: Transaction, name: str, changes: Iterable[Change], commit: Commit) -> str:
    """Make changes those of a catalog and write them down; Moved if one of its tables is not what it was.

    The tables are taken in the order of their names, so that two who publish the same ones cannot wait for each other.
    """
    listed = sorted(changes, key=lambda change: change.table)
    for change in listed:
        if not _done(db, name, change):
            raise Moved(change.table)
    return log.write(db, name, commit, listed)


def _done(db: Transaction, name: str, change: Change) -> bool:
    if change.before is not None and change.after is not None:
        return rows.exchange(db, name, change.table, change.before, change.after)
    if change.after is not None:
        return rows.add(db, name, change.table, change.after, _kind(db, change.after))
    if change.before is None or drops.drop(db, name, change.table, log.now(), change.before) is not None:
        return True
    return _view_removed(db, name, change.table, change.before)


def _view_removed(db: Transaction, name: str, view: TableName, start: str) -> bool:
    done = db.execute(
        f"DELETE FROM iceberg_tables WHERE {rows.KEY} AND metadata_location = ? AND iceberg_type = 'VIEW'",
        (name, view.namespace, view.table, start),
    )
    return done.rowcount == 1


def _kind(db: Transaction, location: str) -> str | None:
    """TABLE or VIEW, as whoever made it wrote down."""
    query = (
        "SELECT iceberg_type FROM iceberg_tables WHERE metadata_location = ?"
        " UNION ALL SELECT iceberg_type FROM lake_tag_tables WHERE metadata_location = ? LIMIT 1"
    )
    row = db.execute(query, (location, location)).fetchone()
    return row[0] if row else "TABLE"
