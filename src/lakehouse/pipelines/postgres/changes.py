"""Which rows of a table have to be read again, and the mark that the next reading begins at.

A row is read again if its `updated_at` is not older than the mark of the last reading less an overlap. The mark is the
beginning of the oldest transaction that ran when the last reading took its snapshot (or the moment itself), because
now() in PostgreSQL is the beginning of a transaction: what was not to be seen then cannot carry an older moment. The
overlap is for what the mark cannot know: transactions of users whose beginning the database hides from us, moments that
an application's own clock wrote, prepared transactions. Rows that are read twice change nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta

from lakehouse.pipelines.postgres.relation import Relation
from lakehouse.pipelines.postgres.view import View


@dataclass(frozen=True)
class Wanted:
    """The rows to read of a table, and what to remember afterwards."""

    since: datetime | None
    """Nothing: all rows."""
    reason: str
    """Why these."""
    cursor: str
    """What to give to the next reading."""


def wanted(view: View, relation: Relation, cursor: str, overlap: timedelta) -> Wanted:
    """What a reading that follows one with this cursor has to read."""
    source = f"{view.address}/{relation}"
    next_cursor = {"mark": view.mark.isoformat(), "source": source, "columns": relation.fingerprint}
    told = json.dumps(next_cursor) if relation.changed else ""
    if not relation.changed:
        return Wanted(None, "all rows: no column says when one was changed", told)
    last = _read(cursor)
    if not last:
        return Wanted(None, "all rows", told)
    if last.get("source") != source:
        return Wanted(None, f"all rows: before, they came from {last.get('source')}", told)
    if last.get("columns") != relation.fingerprint:
        # ALTER TABLE … ADD COLUMN … DEFAULT gives every row a value and changes no updated_at.
        return Wanted(None, "all rows: the columns have changed", told)
    since = datetime.fromisoformat(last["mark"]) - overlap
    return Wanted(since, f"rows changed since {since.isoformat(sep=' ', timespec='seconds')}", told)


def _read(cursor: str) -> dict[str, str]:
    try:
        found = json.loads(cursor)
        datetime.fromisoformat(found["mark"])
    except (ValueError, KeyError, TypeError):
        return {}  # none, or one that somebody else wrote: to read everything is always right
    return dict(found)
