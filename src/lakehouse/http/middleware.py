"""What happens around every request: its id, authentication, limits of the body, errors, the audit log.

This is a plain ASGI application. A middleware of Starlette's other kind hides the disconnect of a client, so that its query
would run on.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import logging
import secrets
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.routing import Match, Mount, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lakehouse.core.errors import (
    ForbiddenError,
    LakeError,
    MethodError,
    NotFoundError,
    RequestTooLargeError,
    SlowBodyError,
    UnauthorizedError,
)
from lakehouse.core.refs import acting_for
from lakehouse.http import catalog
from lakehouse.http.errors import error_response, unexpected
from lakehouse.http.idempotency import OnceRequest
from lakehouse.http.pages import failure_response, without_suffix
from lakehouse.http.principal import NOBODY, Principal
from lakehouse.http.service import Call, Service
from lakehouse.http.streaming import accepts_gzip
from lakehouse.operations import BY_ROUTE, PUBLIC, READ, Operation

#: The largest body that is not an upload.
MAX_BODY = 16 << 20
#: After this time a body must have arrived with at least this number of bytes per second.
_GRACE_S, _LEAST_BYTES_PER_S = 60.0, 1024
#: Smaller answers gain nothing from gzip, and other types little.
_LEAST_COMPRESSED, _COMPRESSED_TYPES = 1024, ("application/json", "application/x-ndjson", "text/csv", "text/html")
#: Polled all the time.
_NOT_AUDITED = ("/healthz", "/readyz", "/metrics")
#: For programs, which send a key; the session of a browser is not for them.
_WITHOUT_SESSIONS = (catalog.PATH, "/mcp")
_LOG = logging.getLogger(__name__)


class Gate:
    """Lets a request through to its route, or answers it with an error."""

    def __init__(self, app: ASGIApp, service: Service, router: Router) -> None:
        self._app, self._service, self._router = app, service, router

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        entry, answer = _Entry(scope), Answer(send, scope)
        answer.headers.append((b"x-request-id", entry.request_id.encode()))
        try:
            await self._admit(scope, receive, answer, entry)
        except LakeError as exc:
            await self._fail(exc, scope, receive, answer, entry)
        except Exception as exc:  # noqa: BLE001 - the client gets an answer, the log the reason
            # Starlette wraps an error that comes after the start of the answer.
            entry.facts["error"] = exc.__cause__.code if isinstance(exc.__cause__, LakeError) else LakeError.code
            if answer.status is None:  # else the application has answered
                await self._fail(unexpected(exc, entry.request_id), scope, receive, answer, entry)
        finally:
            self._record(entry, answer)

    async def _admit(self, scope: Scope, receive: Receive, answer: Answer, entry: _Entry) -> None:
        if scope["method"] == "HEAD" and not scope["path"].startswith(catalog.PATH + "/"):
            scope = {**scope, "method": "GET"}  # the same answer, of which only the head is sent
        scope = without_suffix(scope)
        operation = self._operation(scope)
        entry.route = operation.path
        entry.principal = await self._identify(scope, operation)
        body = Body(receive, scope, operation, self._service)
        with ExitStack() as slot, acting_for(entry.principal.author):
            if not operation.is_unlimited:
                slot.enter_context(self._limited(entry.principal))
            # Before the client has the whole answer: it may send its next request at once.
            answer.before_last = slot.close
            await self._handle(scope, body.receive, answer, entry, operation)

    def _limited(self, principal: Principal) -> AbstractContextManager[None]:
        return self._service.limits.admitted(principal.id) if principal.id else nullcontext()

    async def _handle(
        self, scope: Scope, receive: Receive, answer: Answer, entry: _Entry, operation: Operation
    ) -> None:
        key = Headers(scope=scope).get("idempotency-key", "") if operation.once else ""
        owned = f"{entry.principal.id}:{key}" if key else ""
        stable = "k" + hashlib.sha256(owned.encode()).hexdigest()[:24] if key else ""
        call = Call(self._service, entry.principal, entry.request_id, entry.facts, stable)
        scope.setdefault("state", {})["call"] = call
        if not key:
            await self._app(scope, receive, answer.send)
            return

        async def work(receive: Receive, send: Send) -> None:
            try:
                await self._app(scope, receive, send)
            except LakeError as exc:
                entry.facts["error"] = exc.code
                await error_response(exc, entry.principal)(scope, receive, send)

        await OnceRequest(self._service.idempotency, owned, scope, receive, answer.send).run(work, operation.repeatable)

    async def _fail(self, error: LakeError, scope: Scope, receive: Receive, answer: Answer, entry: _Entry) -> None:
        entry.facts["error"] = error.code
        if answer.status is not None:
            # Part of the answer is sent: the client notices by the missing last piece.
            _LOG.warning("request %s ended early: %s", entry.request_id, error.message)
            return
        if scope["path"].startswith(catalog.PATH + "/"):
            response = catalog.error_response(error)
        else:
            response = failure_response(scope, error, entry.principal, self._service.sessions)
        # The body may not have been read, so the connection cannot be used again.
        response.headers["Connection"] = "close"
        await response(scope, receive, answer.send)

    def _record(self, entry: _Entry, answer: Answer) -> None:
        """Write the audit log and count the request; requests without a key that say nothing are only counted."""
        seconds, status = time.monotonic() - entry.begun, answer.status or 499
        rows = entry.facts.get("rows")
        self._service.metrics.count(
            entry.method, entry.route, status, seconds, rows if entry.facts.get("statement") and rows else 0
        )
        if entry.route in _NOT_AUDITED and status < 400:
            return
        principal = entry.principal
        self._service.audit.write(
            {
                "request": entry.request_id,
                "who": principal.id,
                "name": principal.name,
                "scope": principal.scope,
                "client": entry.client,
                "method": entry.method,
                "path": entry.path,
                "status": status,
                "ms": round(seconds * 1000, 1),
                "bytes_out": answer.size,
                **entry.facts,
            }
        )

    def _operation(self, scope: Scope) -> Operation:
        """The operation that a request is for; raises NotFoundError if there is none."""
        other_methods = False
        for route in self._router.routes:
            match, _ = route.matches(scope)
            if match is Match.FULL:
                return self._operation_of(route, scope["method"])
            other_methods = other_methods or match is Match.PARTIAL
        path = f"{scope['method']} {scope['path']}"
        if other_methods:
            raise MethodError(f"{path}: the address exists, but not with this method.", "See /docs.")
        raise NotFoundError(f"There is no {path[:200]}.", "See /docs.")

    def _operation_of(self, route: Any, method: str) -> Operation:
        path = route.path
        if isinstance(route, Mount):
            # Anyone with a key; the catalog knows which of its routes change something.
            return Operation("catalog", method, path, READ, uploads=True)
        operation = BY_ROUTE.get((method, path))
        if operation is None:
            raise ForbiddenError(
                f"{method} {path} is not in the table of operations, which says who may use it.",
                "This is a bug: report it.",
            )
        return operation

    async def _identify(self, scope: Scope, operation: Operation) -> Principal:
        if operation.needs == PUBLIC:
            return NOBODY
        service, headers = self._service, Headers(scope=scope)
        if operation.path in _WITHOUT_SESSIONS:
            headers = Headers({name: value for name, value in headers.items() if name != "cookie"})
        principal = service.catalog.token_holder(scope) if service.catalog and operation.path == catalog.PATH else None
        try:
            if principal is None:
                principal = await run_in_threadpool(service.authenticator.identify, headers, scope["method"])
        except UnauthorizedError as exc:
            service.count_guess(exc, (scope.get("client") or ("",))[0])
            raise
        principal.check(operation.needs)
        return principal


class _Entry:
    """The facts of a request for the audit log."""

    def __init__(self, scope: Scope) -> None:
        self.begun, self.request_id = time.monotonic(), _request_id(scope)
        self.method, self.path = str(scope["method"])[:20], str(scope["path"])[:500]
        self.client = (scope.get("client") or ("",))[0]
        self.route, self.principal = "(none)", NOBODY
        self.facts: dict[str, Any] = {}


class Answer:
    """The answer that is being sent: its status, headers that every answer gets, and gzip where the client asks for it."""

    def __init__(self, send: Send, scope: Scope) -> None:
        self._send, self._has_body, self._is_complete = send, scope["method"] != "HEAD", False
        self._takes_gzip = accepts_gzip(Headers(scope=scope).get("accept-encoding", ""))
        self._start: Message | None = None
        self.before_last: Callable[[], None] = lambda: None
        """Called when all but the last piece is sent."""
        self.status: int | None = None
        self.size = 0
        self.headers: list[tuple[bytes, bytes]] = [
            (b"cache-control", b"no-store"),
            (b"x-content-type-options", b"nosniff"),
        ]

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = list(message.get("headers", ()))
            names = {name for name, _ in own}
            message["headers"] = own + [header for header in self.headers if header[0] not in names]
            self._start = message  # sent with the first part of the body, which may change it
            return
        if message["type"] == "http.response.body":
            if self._is_complete:
                return  # the head of an answer has no body, however many pieces there would be
            if not self._has_body:
                message = {"type": "http.response.body", "body": b"", "more_body": False}
            start, self._start = self._start, None
            if start is not None:
                start, message = self._compressed(start, message) if self._has_body else (start, message)
                await self._send(start)
            self.size += len(message.get("body", b""))
            self._is_complete = not message.get("more_body", False)
            if self._is_complete:
                self.before_last()
        await self._send(message)

    def _compressed(self, start: Message, body: Message) -> tuple[Message, Message]:
        """An answer of text in one part as gzip, if the client takes that and it is not too small."""
        headers, content = MutableHeaders(raw=list(start["headers"])), body.get("body", b"")
        is_text = headers.get("content-type", "").partition(";")[0] in _COMPRESSED_TYPES
        if body.get("more_body") or not is_text or len(content) < _LEAST_COMPRESSED or "content-encoding" in headers:
            return start, body
        headers.add_vary_header("Accept-Encoding")
        if self._takes_gzip:
            content = gzip.compress(content, 1)
            headers["Content-Encoding"], headers["Content-Length"] = "gzip", str(len(content))
        return {**start, "headers": headers.raw}, {**body, "body": content}


class Body:
    """The body of a request, within its limits of size and time."""

    def __init__(self, receive: Receive, scope: Scope, operation: Operation, service: Service) -> None:
        from lakehouse.lake.assemble import parse_size

        serve = service.settings.serve
        self._receive, self._idle_s = receive, float(serve.body_timeout)
        self._limit = parse_size("serve.max_upload", serve.max_upload) if operation.uploads else MAX_BODY
        self._begun, self._size, self._complete = time.monotonic(), 0, False
        length = Headers(scope=scope).get("content-length", "")
        if length.isdigit() and int(length) > self._limit:
            raise self._too_large()

    async def receive(self) -> Message:
        if self._complete:
            return await self._receive()
        try:
            message = await asyncio.wait_for(self._receive(), self._idle_s)
        except TimeoutError as exc:
            raise SlowBodyError(f"No byte of the body arrived for {self._idle_s:.0f} s.", "Send it again.") from exc
        if message["type"] == "http.request":
            self._size += len(message.get("body", b""))
            self._complete = not message.get("more_body", False)
            self._check()
        return message

    def _check(self) -> None:
        if self._size > self._limit:
            raise self._too_large()
        seconds = time.monotonic() - self._begun
        if not self._complete and seconds > _GRACE_S and self._size / seconds < _LEAST_BYTES_PER_S:
            raise SlowBodyError(
                f"The body arrives with less than {_LEAST_BYTES_PER_S} bytes per second.", "Send it again."
            )

    def _too_large(self) -> RequestTooLargeError:
        return RequestTooLargeError(
            f"The body is larger than {self._limit:,} bytes.", "Upload less at once, or raise serve.max_upload."
        )


def _request_id(scope: Scope) -> str:
    """The id that the client gave, if it is harmless in a log, else a new one."""
    given = Headers(scope=scope).get("x-request-id", "")
    return (
        given
        if 8 <= len(given) <= 64 and given.replace("-", "").isalnum() and given.isascii()
        else secrets.token_hex(8)
    )
