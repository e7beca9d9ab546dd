"""`Idempotency-Key`: a change that is sent twice with one key is executed once and answered twice.

The response is stored in the transaction of the change, so a server that dies has committed both or neither. Responses
are stored for a day.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from lakehouse.rest_catalog.errors import CommitFailedError, RestError, UnprocessableError
from lakehouse.rest_catalog.messages import CatalogResponse, TransactionHook

if TYPE_CHECKING:
    from lakehouse.catalogs.sql.database import Database, Transaction

#: How long a response is stored, as the configuration states it to clients.
LIFETIME = "PT24H"
_LIFETIME_S = 24 * 3600
#: How long a request waits for an earlier one with the same key.
_WAIT_S = 30.0
_PAUSE_S = 0.05
#: A request that has not ended after this time died with its server; the next one with its key replaces it.
_ABANDONED_S = 600
_MAX_KEY = 200

_TABLE = """
CREATE TABLE IF NOT EXISTS lake_rest_requests (
  request_key VARCHAR(255) NOT NULL PRIMARY KEY, fingerprint VARCHAR(64) NOT NULL,
  begun_at BIGINT NOT NULL, status INTEGER, answer TEXT)
"""


class PendingResponse:
    """The response to one request, which the transaction of the change stores."""

    def __init__(self, key: str) -> None:
        self._key = key

    def store(self, response: CatalogResponse) -> TransactionHook:
        """Return the hook that stores the response."""

        def hook(db: Transaction) -> None:
            db.execute(
                "UPDATE lake_rest_requests SET status = ?, answer = ? WHERE request_key = ?",
                (response.status, response.to_json(), self._key),
            )

        return hook


class IdempotencyStore:
    """The responses by key."""

    def __init__(self, database: Database) -> None:
        self._database = database
        with database.transaction() as db:
            db.execute(_TABLE)

    def begin(self, key: str, fingerprint: str) -> CatalogResponse | None:
        """Return the stored response, or None: then the caller executes the request."""
        if len(key) > _MAX_KEY:
            raise RestError(f"The Idempotency-Key is longer than {_MAX_KEY} characters.")
        deadline = time.monotonic() + _WAIT_S
        while True:
            if self._claim(key, fingerprint):
                return None
            with self._database.reading() as db:
                query = "SELECT fingerprint, status, answer FROM lake_rest_requests WHERE request_key = ?"
                row = db.execute(query, (key,)).fetchone()
            if row and row[0] != fingerprint:
                raise UnprocessableError("The Idempotency-Key was used for another request.")
            if row and row[1] is not None:
                return CatalogResponse.from_json(row[1], row[2])
            if row and time.monotonic() > deadline:
                raise CommitFailedError("A request with the same Idempotency-Key is still in progress.")
            time.sleep(_PAUSE_S)

    def _claim(self, key: str, fingerprint: str) -> bool:
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

    def finish(self, key: str, response: CatalogResponse) -> None:
        """Store a response unless its change did: an error, or a request that changed nothing."""
        # Only the database knows whether the change did: its transaction may have been rolled back and repeated.
        with self._database.transaction() as db:
            db.execute(
                "UPDATE lake_rest_requests SET status = ?, answer = ? WHERE request_key = ? AND status IS NULL",
                (response.status, response.to_json(), key),
            )

    def release(self, key: str) -> None:
        """Allow the same request again after a failure of the server."""
        with self._database.transaction() as db:
            db.execute("DELETE FROM lake_rest_requests WHERE request_key = ? AND status IS NULL", (key,))
