"""Plan an incremental read of a table: the rows to read, and the cursor for the next read.

A row is read again if its `updated_at` is not older than the watermark of the last read minus an overlap. The watermark
is the start of the oldest transaction that ran when the last snapshot was taken, because now() in PostgreSQL is the
start of a transaction: a row that the snapshot did not see cannot have an older `updated_at`. The overlap covers what
the watermark cannot: transactions whose start the database hides from this user, timestamps of an application's own
clock, prepared transactions. Reading a row twice changes nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime, timedelta

from lakehouse.core.dataclass import dataclass
from lakehouse.pipelines.postgres.relation import Relation
from lakehouse.pipelines.postgres.snapshot import DatabaseSnapshot


@dataclass(frozen=True)
class ReadPlan:
    """The rows to read of a table, and the cursor after the read."""

    since: datetime | None
    """None: all rows."""
    reason: str
    cursor: str
    """The cursor for the next read."""


def plan_read(snapshot: DatabaseSnapshot, relation: Relation, cursor: str, overlap: timedelta) -> ReadPlan:
    """Plan the read that follows one with this cursor."""
    if not relation.updated_at:
        return ReadPlan(None, "all rows: there is no updated_at column", "")
    source = f"{snapshot.address}/{relation}"
    # "mark" is the key that cursors in existing tables have.
    state = {"mark": snapshot.watermark.isoformat(), "source": source, "columns": relation.fingerprint}
    next_cursor = json.dumps(state)
    last = _parse(cursor)
    if not last:
        return ReadPlan(None, "all rows", next_cursor)
    if last.get("source") != source:
        return ReadPlan(None, f"all rows: before, they came from {last.get('source')}", next_cursor)
    if last.get("columns") != relation.fingerprint:
        # ALTER TABLE … ADD COLUMN … DEFAULT gives every row a value and changes no updated_at.
        return ReadPlan(None, "all rows: the columns have changed", next_cursor)
    since = datetime.fromisoformat(last["mark"]) - overlap
    return ReadPlan(since, f"rows changed since {since.isoformat(sep=' ', timespec='seconds')}", next_cursor)


def fingerprint(
    snapshot: DatabaseSnapshot, relation: Relation, key: Sequence[str], cursor: str, overlap: timedelta
) -> str:
    """Changes with the rows that a read with this cursor would find: keys and times of all rows, and the rows in the overlap.

    Empty if such a read would be one of all rows, because there is no cursor or the columns have changed.
    """
    plan = plan_read(snapshot, relation, cursor, overlap)
    if relation.updated_at and plan.since is None:
        return ""
    counts = snapshot.fetch(relation.digest_query(key, plan.since))
    facts = [f"{snapshot.address}/{relation}", relation.fingerprint, *map(str, counts[0])]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]


def _parse(cursor: str) -> dict[str, str]:
    try:
        state = json.loads(cursor)
        datetime.fromisoformat(state["mark"])
    except (ValueError, KeyError, TypeError):
        return {}  # no cursor, or not one of ours: reading all rows is always right
    return dict(state)
