"""`Idempotency-Key`: a change that is sent twice with one key is done once and answered twice, also after a restart."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from base64 import b64decode, b64encode
from collections.abc import Callable
from functools import partial

from starlette.concurrency import run_in_threadpool
from starlette.types import Message, Receive, Scope, Send

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import BadRequestError, KeyReusedError, OutcomeUnknownError, StatementLostError
from lakehouse.core.idempotency import MAX_KEY, IdempotencyStore, KeyedRequest

#: The largest answer that is stored; answers to changes are small.
_MAX_ANSWER = 1 << 20
_WAIT_S, _PAUSE_S = 120.0, 0.05
_STORED_HEADERS = (
    *(b"content-type", b"location"),
    *(b"x-lake-columns", b"x-lake-row-limit", b"x-lake-row-count", b"x-lake-truncated"),
)


@dataclass(frozen=True)
class StoredAnswer:
    """What a request was answered with."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def to_json(self) -> str:
        """Return headers and body as they are stored."""
        return json.dumps({"headers": self.headers, "body": b64encode(self.body).decode()})

    @classmethod
    def from_json(cls, status: int, text: str) -> StoredAnswer:
        """Parse what `to_json` returned."""
        stored = json.loads(text)
        return cls(status, [tuple(header) for header in stored["headers"]], b64decode(stored["body"]))

    async def send(self, send: Send) -> None:
        """Send it again."""
        headers = [(name.encode(), value.encode()) for name, value in self.headers]
        headers += [(b"idempotency-replayed", b"true"), (b"content-length", str(len(self.body)).encode())]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": False})


def _is_abandoned(request: KeyedRequest, repeatable: bool) -> bool:
    """Whether the service stopped during a request, which may then be executed again."""
    if request.is_own:
        return False
    if not repeatable:
        raise OutcomeUnknownError(
            "The service stopped while a request with this Idempotency-Key ran, so it may have been committed.",
            "Look at the table's history, then send it with another key if it is missing.",
        )
    return True


class OnceRequest:
    """One request with a key: its body is hashed and its answer recorded while they pass."""

    def __init__(self, store: IdempotencyStore, key: str, scope: Scope, receive: Receive, send: Send) -> None:
        if len(key) > MAX_KEY or not key.isprintable():
            raise BadRequestError(f"An Idempotency-Key has at most {MAX_KEY} printable characters.", "Use a UUID.")
        self._store, self._key, self._receive, self._send = store, key, receive, send
        self._hash = hashlib.sha256(f"{scope['method']} {scope['path']}?".encode() + scope.get("query_string", b""))
        self._read_all, self._status, self._headers = False, 0, list[tuple[str, str]]()
        self._body, self._size, self._sent_all = bytearray(), 0, False

    async def run(self, work: Callable[[Receive, Send], object], repeatable: bool) -> None:
        """Do the work, or answer as it was answered before."""
        deadline = time.monotonic() + _WAIT_S
        claim = partial(self._store.claim, self._key, "", partial(_is_abandoned, repeatable=repeatable))
        while (earlier := await run_in_threadpool(claim)) is not None and earlier.status is None:
            if time.monotonic() > deadline:
                raise OutcomeUnknownError("A request with the same Idempotency-Key is in progress.", "Try again later.")
            await asyncio.sleep(_PAUSE_S)
        if earlier is not None and earlier.status is not None:
            if await self._fingerprint() != earlier.fingerprint:
                raise KeyReusedError("The Idempotency-Key was used for another request.", "Use a new one.")
            await StoredAnswer.from_json(earlier.status, earlier.answer).send(self._send)
            return
        is_kept = False
        try:
            await work(self.receive, self.send)  # type: ignore[misc]
            is_final = self._status < 500 or (not repeatable and self._is_lost)
            if self._sent_all and is_final and self._size <= _MAX_ANSWER:
                answer = StoredAnswer(self._status, self._headers, bytes(self._body))
                await run_in_threadpool(
                    self._store.finish, self._key, await self._fingerprint(), answer.status, answer.to_json()
                )
                is_kept = True
        except asyncio.CancelledError:  # the service ends, and what came of the work is not known
            is_kept = not repeatable
            raise
        finally:
            if not is_kept:
                await run_in_threadpool(self._store.release, self._key)

    @property
    def _is_lost(self) -> bool:
        """Whether the answer says that the work may have been done: to do it again could do it twice."""
        is_json = self._body.startswith(b"{")
        return is_json and bool(json.loads(self._body).get("error") == StatementLostError.code)

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
