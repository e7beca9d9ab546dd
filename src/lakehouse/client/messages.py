"""A request to a service and its answer."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from functools import partial
from typing import Any
from urllib.parse import urlencode

from lakehouse.core.cancel import stop_with_scope
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import ServiceUnreachableError
from lakehouse.process.http_client import reason

#: What changes how long a client waits for a service.
WAIT_LONGER = (
    "It may still work on it. Wait longer: timeout_s in lake.toml, LAKE_TIMEOUT_S, or connect(url, timeout_s=…)."
)
#: What http.client raises when a connection fails.
FAILURES = (OSError, http.client.HTTPException)


@dataclass(frozen=True)
class Content:
    """The body of a request. It is read anew for each attempt."""

    type: str
    length: int
    read: Callable[[], Iterable[bytes]]


@dataclass(frozen=True)
class Request:
    """One request, of which several attempts may be made."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    content: Content | None = None
    accept: str = "application/json"
    repeatable: bool = True
    """Whether it may be sent again without a key."""
    once: bool = False
    """Whether it is sent once, because the service does not take a key for it."""
    key: str = ""
    """The Idempotency-Key of the work, where it is the same for other requests (default: a new one if it needs one)."""

    @property
    def target(self) -> str:
        """Path and parameters; those that are None or empty are left out."""
        given = {name: value for name, value in self.query.items() if value is not None and value != ""}
        return f"{self.path}?{urlencode(given)}" if given else self.path


class Response:
    """An answer whose body is read piece by piece. Close it, or read it to its end."""

    def __init__(
        self,
        connection: http.client.HTTPConnection,
        raw: http.client.HTTPResponse,
        url: str,
        release: Callable[[http.client.HTTPConnection], None],
    ) -> None:
        """
        Args:
            release: called with the connection when it can be used again.
        """
        self._connection, self._raw, self._url, self._release = connection, raw, url, release
        self.status = raw.status
        self.headers = raw.headers
        self.closed = False
        self._end = stop_with_scope(partial(hang_up, connection))

    def read(self, size: int = -1) -> bytes:
        """Read some of the body; ServiceUnreachableError if the connection ends early."""
        if self.closed:
            return b""
        try:
            data = self._raw.read(None if size < 0 else size)
        except FAILURES as exc:
            self.close()
            raise self._incomplete(exc) from exc
        except BaseException:
            self.close()
            raise
        if self._raw.isclosed():
            self.closed = True
            self._end()
            if self._raw.will_close:
                self._connection.close()
            else:
                self._release(self._connection)
        return data

    def lines(self) -> Iterator[bytes]:
        """The lines of the body as they arrive."""
        pending = b""
        while piece := self._read_some():
            *complete, pending = (pending + piece).split(b"\n")
            yield from complete
        if pending:
            yield pending

    def _read_some(self) -> bytes:
        try:
            data = self._raw.read1(65536)
        except FAILURES as exc:
            self.close()
            raise self._incomplete(exc) from exc
        if not data:
            self.close()
        return data

    def _incomplete(self, exc: BaseException) -> ServiceUnreachableError:
        if isinstance(exc, TimeoutError):
            return ServiceUnreachableError(f"{self._url} stopped sending in the middle of its answer.", WAIT_LONGER)
        return ServiceUnreachableError(
            f"{self._url} ended its answer early: {reason(exc)}.", "The log of the service has the reason."
        )

    def close(self) -> None:
        """End the connection, unless the body was read to its end: the service stops what it does for it."""
        if not self.closed:
            self.closed = True
            self._end()
            self._connection.close()


def hang_up(connection: http.client.HTTPConnection) -> None:
    """End a connection from another thread, which may wait for an answer on it."""
    with suppress(OSError):
        if connection.sock is not None:
            connection.sock.shutdown(socket.SHUT_RDWR)


def as_json(body: Mapping[str, Any]) -> Content:
    """A JSON object as the body of a request."""
    data = json.dumps(body).encode()
    return Content("application/json", len(data), lambda: [data])
