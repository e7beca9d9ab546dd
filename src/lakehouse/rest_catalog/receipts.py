"""`Idempotency-Key`: a change that is sent twice under one key is done once and answered twice.

The answer is written in the transaction that makes the change, so a server that dies in between has either done both
or neither. Answers are kept for a day.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from lakehouse.rest_catalog.answers import Answer, Note
from lakehouse.rest_catalog.problems import CommitFailed, Problem, Unprocessable

if TYPE_CHECKING:
    from lakehouse.catalogs.sql.database import Database, Transaction

#: How long an answer is kept, as clients are told it.
LIFETIME = "PT24H"
_LIFETIME_S = 24 * 3600
#: How long a request waits for the one that came before it under the same key.
_PATIENCE_S = 30.0
_PAUSE_S = 0.05
#: A request that has not ended after this died with its server; the next one under its key takes over.
_ABANDONED_S = 600
_LONGEST_KEY = 200

_TABLE = """
CREATE TABLE IF NOT EXISTS lake_rest_requests (
  request_key VARCHAR(255) NOT NULL PRIMARY KEY, fingerprint VARCHAR(64) NOT NULL,
  begun_at BIGINT NOT NULL, status INTEGER, answer TEXT)
"""


class Receipt:
    """The answer to one request, written down in the transaction that makes the change."""

    def __init__(self, key: str) -> None:
        self._key = key
        self.written = False

    def keep(self, answer: Answer) -> Note:
        """What the transaction must write."""

        def note(db: Transaction) -> None:
            db.execute(
                "UPDATE lake_rest_requests SET status = ?, answer = ? WHERE request_key = ?",
                (answer.status, answer.as_text(), self._key),
            )
            self.written = True

        return note


class Receipts:
    """The answers that were given under a key."""

    def __init__(self, database: Database) -> None:
        self._database = database
        with database.transaction() as db:
            db.execute(_TABLE)

    def begin(self, key: str, fingerprint: str) -> Answer | None:
        """The answer that was given already, or None: then the request is this caller's to do."""
        if len(key) > _LONGEST_KEY:
            raise Problem(f"The Idempotency-Key is longer than {_LONGEST_KEY} characters.")
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            if self._mine(key, fingerprint):
                return None
            with self._database.reading() as db:
                query = "SELECT fingerprint, status, answer FROM lake_rest_requests WHERE request_key = ?"
                row = db.execute(query, (key,)).fetchone()
            if row and row[0] != fingerprint:
                raise Unprocessable("The Idempotency-Key was used for another request.")
            if row and row[1] is not None:
                return Answer.from_text(row[1], row[2])
            if row and time.monotonic() > deadline:
                raise CommitFailed("A request with the same Idempotency-Key is still being done.")
            time.sleep(_PAUSE_S)

    def _mine(self, key: str, fingerprint: str) -> bool:
        now = int(time.time())
        with self._database.transaction() as db:
            db.execute(
                "DELETE FROM lake_rest_requests WHERE begun_at < ? OR (begun_at < ? AND status IS NULL)",
                (now - _LIFETIME_S, now - _ABANDONED_S),
            )
            done = db.execute(
                "INSERT INTO lake_rest_requests (request_key, fingerprint, begun_at) VALUES (?, ?, ?)"
                " ON CONFLICT DO NOTHING",
                (key, fingerprint, now),
            )
        return done.rowcount == 1

    def finish(self, receipt: Receipt, answer: Answer) -> None:
        """Keep an answer unless it was written down with the change: a refusal, or one that changed nothing."""
        if not receipt.written:
            with self._database.transaction() as db:
                receipt.keep(answer)(db)

    def forget(self, key: str) -> None:
        """Let the same request be tried again: nobody knows how it ended, or it may go better next time."""
        with self._database.transaction() as db:
            db.execute("DELETE FROM lake_rest_requests WHERE request_key = ? AND status IS NULL", (key,))
