"""The log: who published what and when, written in the transaction that publishes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from lakehouse.catalogs.sql.database import Transaction
from lakehouse.core.names import CATALOG, MAIN, TableName
from lakehouse.core.refs import Change, Commit, LogEntry

_ENTRY = "SELECT l.id, l.made_at, l.branch, l.kind, l.author, l.message, l.run, l.pipeline, l.source FROM lake_log l"

#: Tables that one statement inserts: a round trip for each would take most of a publish's time.
_BATCH = 100


def now() -> str:
    """Return the current time as the log holds it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def branch_name(name: str) -> str:
    """Return the branch of a catalog name: the rows of main have the catalog's own name."""
    return MAIN if name == CATALOG else name


def write(db: Transaction, name: str, commit: Commit, changes: Sequence[Change]) -> str:
    """Insert an entry and return its id."""
    row = db.execute(
        "INSERT INTO lake_log (made_at, kind, branch, run, author, pipeline, source, message)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
        (
            now(),
            commit.kind,
            branch_name(name),
            commit.run,
            commit.author,
            commit.pipeline,
            commit.source,
            commit.message,
        ),
    ).fetchone()
    for start in range(0, len(changes), _BATCH):
        batch = changes[start : start + _BATCH]
        values = [(row[0], change.table.namespace, change.table.table, change.before, change.after) for change in batch]
        placeholders = ", ".join(["(?, ?, ?, ?, ?)"] * len(batch))
        db.execute(f"INSERT INTO lake_log_tables VALUES {placeholders}", [value for row in values for value in row])
    return str(row[0])


def entries(db: Transaction, name: str, table: TableName | None, limit: int) -> list[LogEntry]:
    """Return the newest entries of a branch first: all of them, or those that changed a table."""
    where, values = " WHERE l.branch = ?", [branch_name(name)]
    if table is not None:
        where += (
            " AND EXISTS (SELECT 1 FROM lake_log_tables t"
            " WHERE t.log_id = l.id AND t.namespace = ? AND t.table_name = ?)"
        )
        values += [table.namespace, table.table]
    rows = db.execute(f"{_ENTRY}{where} ORDER BY l.id DESC LIMIT ?", (*values, limit)).fetchall()
    return [_entry(db, row) for row in rows]


def entry(db: Transaction, name: str, number: int) -> LogEntry | None:
    """Return an entry by its id."""
    row = db.execute(f"{_ENTRY} WHERE l.id = ? AND l.branch = ?", (number, branch_name(name))).fetchone()
    return _entry(db, row) if row else None


def of_run(db: Transaction, name: str, run: str) -> LogEntry | None:
    """Return the entry of a run's publish; None if it has not published, or was reverted since."""
    kinds = "('publish', 'merge', 'revert')"
    query = f"{_ENTRY} WHERE l.run = ? AND l.branch = ? AND l.kind IN {kinds} ORDER BY l.id DESC"
    entries = (_entry(db, row) for row in db.execute(query, (run, branch_name(name))).fetchall())
    is_reverted = False
    for logged in entries:
        if logged.commit.kind != "revert":
            return None if is_reverted else logged
        is_reverted = not is_reverted  # a revert may be reverted
    return None


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
