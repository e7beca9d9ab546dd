"""Publishing: several pointers are replaced in one transaction, each only if it is still what the publisher has seen."""

from __future__ import annotations

from collections.abc import Iterable

from lakehouse.catalogs.sql import drops, log, namespaces, rows
from lakehouse.catalogs.sql.database import Transaction
from lakehouse.core.names import TableName
from lakehouse.core.refs import Change, Commit


class ConflictError(Exception):
    """A table has changed since the publisher read it; rolls back the transaction that it is raised in."""

    def __init__(self, table: TableName) -> None:
        self.table = table
        super().__init__(str(table))


def base_of(db: Transaction, branch: str) -> dict[TableName, str]:
    """Return the pointers of a branch's tables at the time it was created."""
    query = "SELECT namespace, table_name, metadata_location FROM lake_branch_tables WHERE branch = ?"
    return {TableName(space, table): location for space, table, location in db.execute(query, (branch,)).fetchall()}


def changes_on(db: Transaction, branch: str) -> list[Change]:
    """Return what a branch has changed since it was created, sorted by table."""
    base, current = base_of(db, branch), rows.pointers(db, branch)
    return [
        Change(table, base.get(table), current.get(table))
        for table in sorted({*base, *current})
        if base.get(table) != current.get(table)
    ]


def apply(db: Transaction, name: str, changes: Iterable[Change], commit: Commit) -> str:
    """Apply changes to a catalog and log them; ConflictError if a table is not in its change's `before` state.

    The tables are locked in the order of their names, so that two publishers of the same tables cannot deadlock.
    """
    ordered = sorted(changes, key=lambda change: change.table)
    for change in ordered:
        if not _apply(db, name, change):
            raise ConflictError(change.table)
    return log.write(db, name, commit, ordered)


def _apply(db: Transaction, name: str, change: Change) -> bool:
    if change.before is not None and change.after is not None:
        return rows.swap(db, name, change.table, change.before, change.after)
    if change.after is not None:
        namespaces.ensure(db, name, change.table.namespace)
        return rows.add(db, name, change.table, change.after, _type_of(db, change.after))
    if change.before is None or drops.drop(db, name, change.table, log.now(), change.before) is not None:
        return True
    return rows.swap(db, name, change.table, change.before, None, rows.VIEW)


def _type_of(db: Transaction, location: str) -> str | None:
    """Return TABLE or VIEW, as another row with the same pointer states."""
    query = (
        "SELECT iceberg_type FROM iceberg_tables WHERE metadata_location = ?"
        " UNION ALL SELECT iceberg_type FROM lake_tag_tables WHERE metadata_location = ? LIMIT 1"
    )
    row = db.execute(query, (location, location)).fetchone()
    return row[0] if row else "TABLE"
