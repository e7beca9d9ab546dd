"""`Idempotency-Key`: a change that is sent twice with one key is done once and answered twice, also after a restart."""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool
from starlette.types import Message, Receive, Scope, Send

from lakehouse.core.errors import BadRequestError, KeyReusedError, OutcomeUnknownError
from lakehouse.http.database import ServiceDatabase

LIFETIME_S = 24 * 3600
_MAX_KEY = 200
#: The largest answer that is stored; answers to changes are small.
_MAX_ANSWER = 1 << 20
_WAIT_S, _PAUSE_S = 120.0, 0.05
_STORED_HEADERS = (b"content-type", b"location")


@dataclass(frozen=True)
class StoredAnswer:
    """What a request was answered with."""

    fingerprint: str
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    async def send(self, send: Send) -> None:
        """Send it again."""
        headers = [(name.encode(), value.encode()) for name, value in self.headers]
        headers += [(b"idempotency-replayed", b"true"), (b"content-length", str(len(self.body)).encode())]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": False})


class IdempotencyStore:
    """The answers by key."""

    def __init__(self, database: ServiceDatabase) -> None:
        self._database, self._server = database, secrets.token_hex(8)

    def claim(self, key: str, repeatable: bool) -> StoredAnswer | bool:
        """True: the caller does the work. False: another request with the key is doing it. Else its answer.

        Args:
            repeatable: the work may be done again if the service stopped while it was being done.
        """
        now = int(time.time())
        with self._database.transaction() as db:
            db.execute("DELETE FROM requests WHERE begun_at < ?", (now - LIFETIME_S,))
            row = db.execute("SELECT * FROM requests WHERE request_key = ?", (key,)).fetchone()
            if row is not None and row["status"] is not None:
                return StoredAnswer(
                    row["fingerprint"],
                    row["status"],
                    [tuple(each) for each in json.loads(row["headers"])],
                    row["answer"],
                )
            if row is not None and row["server"] == self._server:
                return False
            if row is not None and not repeatable:
                raise OutcomeUnknownError(
                    "The service stopped while a request with this Idempotency-Key ran, so it may have been committed.",
                    "Look at the table's history, then send it with another key if it is missing.",
                )
            db.execute(
                "INSERT OR REPLACE INTO requests (request_key, begun_at, server) VALUES (?, ?, ?)",
                (key, now, self._server),
            )
        return True

    def finish(self, key: str, answer: StoredAnswer) -> None:
        """Store the answer."""
        with self._database.transaction() as db:
            db.execute(
                "UPDATE requests SET fingerprint = ?, status = ?, headers = ?, answer = ? WHERE request_key = ?",
                (answer.fingerprint, answer.status, json.dumps(answer.headers), answer.body, key),
            )

    def release(self, key: str) -> None:
        """Let the same request be done again, because it failed or its answer is too large to store."""
        with self._database.transaction() as db:
            db.execute("DELETE FROM requests WHERE request_key = ? AND status IS NULL", (key,))


class OnceRequest:
    """One request with a key: its body is hashed and its answer recorded while they pass."""

    def __init__(self, store: IdempotencyStore, key: str, scope: Scope, receive: Receive, send: Send) -> None:
        if len(key) > _MAX_KEY or not key.isprintable():
            raise BadRequestError(f"An Idempotency-Key has at most {_MAX_KEY} printable characters.", "Use a UUID.")
        self._store, self._key, self._receive, self._send = store, key, receive, send
        self._hash = hashlib.sha256(f"{scope['method']} {scope['path']}?".encode() + scope.get("query_string", b""))
        self._read_all, self._status, self._headers = False, 0, list[tuple[str, str]]()
        self._body, self._size, self._sent_all = bytearray(), 0, False

    async def run(self, work: Callable[[Receive, Send], object], repeatable: bool) -> None:
        """Do the work, or answer as it was answered before."""
        deadline = time.monotonic() + _WAIT_S
        while (claimed := await run_in_threadpool(self._store.claim, self._key, repeatable)) is False:
            if time.monotonic() > deadline:
                raise OutcomeUnknownError("A request with the same Idempotency-Key is in progress.", "Try again later.")
            await asyncio.sleep(_PAUSE_S)
        if isinstance(claimed, StoredAnswer):
            if await self._fingerprint() != claimed.fingerprint:
                raise KeyReusedError("The Idempotency-Key was used for another request.", "Use a new one.")
            await claimed.send(self._send)
            return
        stored = False
        try:
            await work(self.receive, self.send)  # type: ignore[misc]
            if self._sent_all and self._status < 500 and self._size <= _MAX_ANSWER:
                answer = StoredAnswer(await self._fingerprint(), self._status, self._headers, bytes(self._body))
                await run_in_threadpool(self._store.finish, self._key, answer)
                stored = True
        finally:
            if not stored:
                await run_in_threadpool(self._store.release, self._key)

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._hash.update(message.get("body", b""))
            self._read_all = not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = [
                (name.decode(), value.decode()) for name, value in message["headers"] if name.lower() in _STORED_HEADERS
            ]
        elif message["type"] == "http.response.body":
            part = message.get("body", b"")
            self._size += len(part)
            if self._size <= _MAX_ANSWER:
                self._body += part
            self._sent_all = not message.get("more_body", False)
        await self._send(message)

    async def _fingerprint(self) -> str:
        while not self._read_all:
            if (await self.receive())["type"] == "http.disconnect":
                break
        return self._hash.hexdigest()
