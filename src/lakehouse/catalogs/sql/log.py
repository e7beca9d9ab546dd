"""The log: who published what and when, written in the transaction that did it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from lakehouse.catalogs.sql.database import Transaction
from lakehouse.core.names import CATALOG, MAIN, TableName
from lakehouse.core.refs import Change, Commit, LogEntry

_ENTRY = "SELECT l.id, l.made_at, l.branch, l.kind, l.author, l.message, l.run, l.pipeline, l.source FROM lake_log l"

#: Tables that are written down by one statement: a round trip each would be most of a publish.
_AT_ONCE = 100


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def called(name: str) -> str:
    """What people call a catalog name: main is kept under the catalog's own."""
    return MAIN if name == CATALOG else name


def write(db: Transaction, name: str, commit: Commit, changes: Sequence[Change]) -> str:
    """Write an entry down; says its number."""
    row = db.execute(
        "INSERT INTO lake_log (made_at, kind, branch, run, author, pipeline, source, message)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
        (
            now(),
            commit.kind,
            called(name),
            commit.run,
            commit.author,
            commit.pipeline,
            commit.source,
            commit.message,
        ),
    ).fetchone()
    for place in range(0, len(changes), _AT_ONCE):
        part = changes[place : place + _AT_ONCE]
        values = [(row[0], each.table.namespace, each.table.table, each.before, each.after) for each in part]
        listed = ", ".join(["(?, ?, ?, ?, ?)"] * len(part))
        db.execute(f"INSERT INTO lake_log_tables VALUES {listed}", [each for row in values for each in row])
    return str(row[0])


def entries(db: Transaction, name: str, table: TableName | None, limit: int) -> list[LogEntry]:
    """The newest entries of a branch, those that touched a table if one is named."""
    where, values = " WHERE l.branch = ?", [called(name)]
    if table is not None:
        where += (
            " AND EXISTS (SELECT 1 FROM lake_log_tables t"
            " WHERE t.log_id = l.id AND t.namespace = ? AND t.table_name = ?)"
        )
        values += [table.namespace, table.table]
    rows = db.execute(f"{_ENTRY}{where} ORDER BY l.id DESC LIMIT ?", (*values, limit)).fetchall()
    return [_entry(db, row) for row in rows]


def entry(db: Transaction, name: str, number: int) -> LogEntry | None:
    """One entry by its number."""
    row = db.execute(f"{_ENTRY} WHERE l.id = ? AND l.branch = ?", (number, called(name))).fetchone()
    return _entry(db, row) if row else None


def of_run(db: Transaction, name: str, run: str) -> LogEntry | None:
    """What a run published, if it did."""
    query = f"{_ENTRY} WHERE l.run = ? AND l.branch = ? AND l.kind IN ('publish', 'merge') ORDER BY l.id DESC LIMIT 1"
    row = db.execute(query, (run, called(name))).fetchone()
    return _entry(db, row) if row else None


def _entry(db: Transaction, row: tuple[object, ...]) -> LogEntry:
    query = (
        "SELECT namespace, table_name, before_location, after_location FROM lake_log_tables"
        " WHERE log_id = ? ORDER BY 1, 2"
    )
    changes = tuple(
        Change(TableName(namespace, table), before, after)
        for namespace, table, before, after in db.execute(query, (row[0],)).fetchall()
    )
    number, at, branch, kind, author, message, run, pipeline, source = map(str, row)
    return LogEntry(number, at, branch, Commit(kind, author, message, run, pipeline, source), changes)
