"""Idempotency keys: a change that is sent twice with one key is executed once and answered twice, also after a restart.

The service stores them in its own database. The REST catalog stores them in the catalog's, in the transaction of the
change, so that a server that dies has committed both or neither.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from lakehouse.core.dataclass import dataclass

#: How long an answer is stored.
LIFETIME_S = 24 * 3600
MAX_KEY = 200

_TABLE = """
CREATE TABLE IF NOT EXISTS lake_idempotency_keys (
  request_key VARCHAR(512) NOT NULL PRIMARY KEY, begun_at BIGINT NOT NULL, server VARCHAR(32) NOT NULL,
  fingerprint VARCHAR(64) NOT NULL, status INTEGER, answer TEXT)
"""


class Transaction(Protocol):
    """An open transaction of SQLite or PostgreSQL."""

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Any: ...


class Database(Protocol):
    """Where the keys are stored."""

    def transaction(self) -> AbstractContextManager[Transaction]: ...


@dataclass(frozen=True)
class KeyedRequest:
    """A request with a key, as it is stored."""

    begun_at: int
    is_own: bool
    """Whether this server executes it, and not another one or an earlier one that has stopped."""
    fingerprint: str
    """A hash of the request; empty while it runs, if its body is hashed only then."""
    status: int | None
    """None while it runs."""
    answer: str


class IdempotencyStore:
    """The requests of a day by their keys."""

    def __init__(self, database: Database) -> None:
        self._database, self._server = database, secrets.token_hex(8)
        with database.transaction() as db:
            db.execute(_TABLE)

    def claim(self, key: str, fingerprint: str, is_abandoned: Callable[[KeyedRequest], bool]) -> KeyedRequest | None:
        """Return the earlier request with this key, or None: then the caller executes the request.

        Args:
            is_abandoned: decides whether a request without an answer has died, so that the caller replaces it.
        """
        now = int(time.time())
        with self._database.transaction() as db:
            db.execute("DELETE FROM lake_idempotency_keys WHERE begun_at < ?", (now - LIFETIME_S,))
            inserted = db.execute(
                "INSERT INTO lake_idempotency_keys (request_key, begun_at, server, fingerprint) VALUES (?, ?, ?, ?)"
                " ON CONFLICT DO NOTHING",
                (key, now, self._server, fingerprint),
            )
            if inserted.rowcount == 1:
                return None
            query = (
                "SELECT begun_at, server, fingerprint, status, answer FROM lake_idempotency_keys WHERE request_key = ?"
            )
            row = db.execute(query, (key,)).fetchone()
            if row is None:  # it was released right now: the caller asks again, as for one that runs
                return KeyedRequest(now, True, fingerprint, None, "")
            earlier = KeyedRequest(row[0], row[1] == self._server, row[2], row[3], row[4] or "")
            if earlier.status is not None or not is_abandoned(earlier):
                return earlier
            db.execute(
                "UPDATE lake_idempotency_keys SET begun_at = ?, server = ?, fingerprint = ? WHERE request_key = ?",
                (now, self._server, fingerprint, key),
            )
        return None

    def finish(self, key: str, fingerprint: str, status: int, answer: str) -> None:
        """Store the answer, unless the transaction of the change has stored it."""
        with self._database.transaction() as db:
            store_answer(db, key, fingerprint, status, answer)

    def release(self, key: str) -> None:
        """Let the same request be executed again, because it failed or has no answer that can be stored."""
        with self._database.transaction() as db:
            db.execute("DELETE FROM lake_idempotency_keys WHERE request_key = ? AND status IS NULL", (key,))


def store_answer(db: Transaction, key: str, fingerprint: str, status: int, answer: str) -> None:
    """Store the answer to a request in an open transaction, such as that of its change."""
    db.execute(
        "UPDATE lake_idempotency_keys SET fingerprint = ?, status = ?, answer = ?"
        " WHERE request_key = ? AND status IS NULL",
        (fingerprint, status, answer, key),
    )
