"""Requests to a service: connections that are used again, timeouts, retries, errors as their classes.

A request is sent again after a failure only if doing it twice is the same as doing it once: it reads, or it has an
Idempotency-Key, with which the service does the work once and repeats its answer.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import random
import ssl
import threading
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from lakehouse.client.messages import FAILURES, WAIT_LONGER, Request, Response, hang_up
from lakehouse.core import __version__
from lakehouse.core.cancel import current_scope, stop_with_scope
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import (
    BadSettingError,
    LakeError,
    ServiceError,
    ServiceUnreachableError,
    StatementCanceledError,
    TooManyRequestsError,
    UnauthorizedError,
    error_from_dict,
)
from lakehouse.core.setting import key_in
from lakehouse.process.http_client import reason

_CONNECT_TIMEOUT_S = 10.0
#: Pauses before the second, third and fourth attempt.
_PAUSES_S = (0.1, 0.4, 1.5)
_LONGEST_PAUSE_S = 30.0
#: The server closes a connection that is idle for 5 s: one that waited almost as long is not used again.
_IDLE_S, _MOST_IDLE = 4.0, 8
_MAX_ERROR_BODY = 1 << 20
_PROXY_STATUSES = (502, 503, 504)


class _ProxyError(ServiceError):
    """An answer that is not one of the service: of a proxy in front of it, or of another program."""

    code = "not_the_service"


class _ConnectTimeoutError(TimeoutError):
    """Nobody accepted the connection in time."""


class Transport:
    """Sends requests to one service. Threads may share it."""

    def __init__(
        self,
        url: str,
        key: str = "",
        timeout_s: float = 330.0,
        allow_http: bool = False,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.address = Address.parse(url)
        if key and not allow_http:
            self.address.check_may_carry_key()
        self._key, self._timeout_s = key_in(key, "The key of the service") if key else "", timeout_s
        self._tls = (tls or ssl.create_default_context()) if self.address.scheme == "https" else None
        self._lock = threading.Lock()
        self._idle: list[tuple[float, http.client.HTTPConnection]] = []

    def __repr__(self) -> str:
        return f"Transport({self.address})"

    # ---- requests -----------------------------------------------------------------------------------------------

    def pages(self, request: Request, name: str) -> list[Any]:
        """Read all pages of a list."""
        items: list[Any] = []
        token = ""
        while True:
            page = self.json(replace(request, query={**request.query, "page_token": token}))
            items += page[name]
            token = page.get("next_page_token") or ""
            if not token:
                return items

    def json(self, request: Request) -> Any:
        """Send a request and parse the JSON of its answer."""
        response = self.send(request)
        content = response.read()
        try:
            return json.loads(content) if content else None
        except ValueError as exc:
            raise ServiceError(
                f"{self.address}{request.path} did not answer with JSON.", "Is this the address of a lake's service?"
            ) from exc

    def send(self, request: Request) -> Response:
        """Send a request, again if an attempt fails and may be repeated; raises the error that the service reports."""
        headers = self._headers(request)
        for pause in (None,) if request.once else (*_PAUSES_S, None):
            try:
                response = self._attempt(request, headers)
            except FAILURES as exc:
                if pause is None or isinstance(exc, ssl.SSLError | TimeoutError):
                    raise self._unreachable(exc, request) from exc
                time.sleep(_jittered(pause))
                continue
            if response.status < 400:
                return response
            error = self._error(response, request)
            if pause is None or not _may_pass(response.status, error):
                raise error
            time.sleep(_wait_s(response, pause))
        raise AssertionError("the last attempt returns or raises")

    def close(self) -> None:
        """Close the connections that are not in use."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    # ---- one attempt --------------------------------------------------------------------------------------------

    def _attempt(self, request: Request, headers: Mapping[str, str]) -> Response:
        connection, url = self._connection(), f"{self.address}{request.path}"
        # The service ends what it does for a connection that is closed.
        end = stop_with_scope(partial(hang_up, connection))
        try:
            with suppress(BrokenPipeError, ConnectionResetError):  # it may have answered before it read all of the body
                self._write(connection, request, headers)
            raw = connection.getresponse()
        except FAILURES as exc:
            connection.close()
            if (scope := current_scope()) and scope.is_canceled:
                raise StatementCanceledError("The request was canceled.") from exc
            raise
        except BaseException:
            connection.close()
            raise
        finally:
            end()
        response = Response(connection, raw, url, self._release)
        if 300 <= raw.status < 400:
            response.close()
            raise ServiceError(
                f"{url} redirects to {raw.headers.get('location', 'another address')}.", "Use that address."
            )
        return response

    def _write(self, connection: http.client.HTTPConnection, request: Request, headers: Mapping[str, str]) -> None:
        body = request.content.read() if request.content else None
        connection.request(request.method, self.address.path + request.target, body=body, headers=dict(headers))

    def _headers(self, request: Request) -> dict[str, str]:
        headers = {"Accept": request.accept, "User-Agent": f"lakehouse/{__version__}"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        if request.content is not None:
            headers |= {"Content-Type": request.content.type, "Content-Length": str(request.content.length)}
        elif request.method == "POST":
            headers["Content-Length"] = "0"
        if request.key or not (request.repeatable or request.once):
            headers["Idempotency-Key"] = request.key or str(uuid.uuid4())
        return headers

    def _connection(self) -> http.client.HTTPConnection:
        now = time.monotonic()
        with self._lock:
            while self._idle:
                since, connection = self._idle.pop()
                if now - since < _IDLE_S:
                    return connection
                connection.close()
        address, timeout = self.address, min(_CONNECT_TIMEOUT_S, self._timeout_s)
        if self._tls is not None:
            connection = http.client.HTTPSConnection(address.host, address.port, timeout=timeout, context=self._tls)
        else:
            connection = http.client.HTTPConnection(address.host, address.port, timeout=timeout)
        try:
            connection.connect()
        except TimeoutError as exc:
            raise _ConnectTimeoutError(f"no connection within {timeout:g} s") from exc
        connection.sock.settimeout(self._timeout_s)
        return connection

    def _release(self, connection: http.client.HTTPConnection) -> None:
        """Take back a connection whose answer was read to its end."""
        with self._lock:
            if len(self._idle) < _MOST_IDLE:
                self._idle.append((time.monotonic(), connection))
                return
        connection.close()

    # ---- errors -------------------------------------------------------------------------------------------------

    def _error(self, response: Response, request: Request) -> LakeError:
        """The error of an answer."""
        try:
            content = response.read(_MAX_ERROR_BODY)
        except ServiceUnreachableError:
            content = b""
        response.close()
        try:
            payload = dict(json.loads(content))
        except (ValueError, TypeError):
            message = f"{self.address}{request.path} answered with the status {response.status}."
            return _ProxyError(message, "Is this the address of a lake's service?")
        return self._with_key_hint(rebuilt(payload, response.status))

    def _with_key_hint(self, error: LakeError) -> LakeError:
        if isinstance(error, UnauthorizedError) and not self._key:
            error.hint = "Give the key: LAKE_KEY, LAKE_KEY_FILE, --key-file FILE, or connect(url, key=…)."
        return error

    def _unreachable(self, exc: BaseException, request: Request) -> ServiceUnreachableError:
        if isinstance(exc, TimeoutError) and not isinstance(exc, _ConnectTimeoutError):
            return ServiceUnreachableError(
                f"The service {self.address} was silent for {self._timeout_s:g} s after {request.method} {request.path}.",
                WAIT_LONGER,
            )
        return ServiceUnreachableError(
            f"The service {self.address} does not answer: {reason(exc)}.", "Is it running? Start it: lake serve"
        )


def rebuilt(payload: dict[str, Any], status: int = 500, sql: str = "") -> LakeError:
    """The error that a service reports, of the class that its code belongs to."""
    error = error_from_dict(payload, sql)
    if error.code != payload.get("error"):  # an error that this version does not know
        error.code = str(payload.get("error"))
        error.is_user_error = 400 <= status < 500
    return error


def _may_pass(status: int, error: LakeError) -> bool:
    """Whether to try again. Not after an error of the service itself: it has tried again before it reports one."""
    return isinstance(error, TooManyRequestsError) or (isinstance(error, _ProxyError) and status in _PROXY_STATUSES)


def _wait_s(response: Response, pause: float) -> float:
    """How long to wait before the next attempt: what the service asks for, if it does."""
    asked = response.headers.get("Retry-After", "")
    return min(float(asked), _LONGEST_PAUSE_S) if asked.isdigit() else _jittered(pause)


def _jittered(pause: float) -> float:
    return pause * random.uniform(0.5, 1.0)  # noqa: S311 - so that clients do not return all at once


_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Address:
    """Where a service listens."""

    scheme: str
    host: str
    port: int
    path: str = ""
    """A prefix that a proxy puts before all paths; empty or begins with a slash."""

    @classmethod
    def parse(cls, url: str) -> Address:
        """Parse `http://host:port`; BadSettingError says what is wrong with it."""
        hint = "Write the address as lake serve prints it, e.g. http://127.0.0.1:8600."
        try:
            parts = urlsplit(url.strip())
            port = parts.port
        except ValueError as exc:
            raise BadSettingError(f"{url!r} is not the address of a service: {exc}.", hint) from exc
        if parts.scheme not in _PORTS or not parts.hostname or parts.query or parts.fragment:
            raise BadSettingError(f"{url!r} is not the address of a service.", hint)
        if parts.username is not None or parts.password is not None:
            raise BadSettingError("The address of a service holds no user and no password.", "Set the key: LAKE_KEY.")
        return cls(parts.scheme, parts.hostname, port or _PORTS[parts.scheme], parts.path.rstrip("/"))

    def check_may_carry_key(self) -> None:
        """Refuse to send a key in clear text over a network."""
        if self.scheme == "http" and not self.is_loopback:
            raise BadSettingError(
                f"The key would cross the network to {self.host} in clear text.",
                "Use https://, or set allow_http = true (LAKE_ALLOW_HTTP) on a network that you trust.",
            )

    @property
    def is_loopback(self) -> bool:
        """Whether the service is on this machine."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.path}"
