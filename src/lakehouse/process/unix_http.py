"""HTTP over a Unix socket, the subset that a client of our own daemon needs.

The standard library's client would do, but importing it (and with it the email package) takes 40 ms, a tenth of the
whole time of a statement on the warm Spark.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

from lakehouse.core.cancel import stop_with_scope, stopped_by
from lakehouse.process.sockets import connect_unix

_FIRST_LINE_TIMEOUT_S = 30.0


class Unreachable(Exception):
    """Nothing listens on the socket."""


class ConnectionBroken(Exception):
    """The connection ended before the response was complete."""


def open_stream(path: Path, target: str, body: Any) -> tuple[ExitStack, bytes]:
    """Send a POST whose response stays open; returns the connection and the first line of the response's body."""
    content = json.dumps(body).encode()
    head = f"POST {target} HTTP/1.1\r\nHost: lake\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    opened = ExitStack()
    try:
        connection = opened.enter_context(connect_unix(path, _FIRST_LINE_TIMEOUT_S))
    except OSError as exc:
        raise Unreachable from exc
    data = b""
    try:
        connection.sendall(head.encode() + content)
        # After the headers comes the length of the first chunk, and the line that is the chunk.
        while data.partition(b"\r\n\r\n")[2].count(b"\n") < 2:
            received = connection.recv(1 << 16)
            if not received:
                raise ConnectionBroken
            data += received
        if data.split(b" ", 2)[1] != b"200":
            raise ConnectionBroken
    except (OSError, ConnectionBroken) as exc:
        opened.close()
        raise ConnectionBroken from exc
    connection.settimeout(None)
    return opened, data.partition(b"\r\n\r\n")[2].split(b"\n")[1]


def request(
    path: Path,
    method: str,
    target: str,
    body: Any,
    timeout: float | None,
    stop: Callable[[], None] | None = None,
) -> tuple[int, str, bytes]:
    """Send one request; returns the response's status, content type and body.

    Args:
        stop: what a canceled scope calls while the response is waited for; by default, and if it is abandoned, the connection is ended.
    """
    message = _message(method, target, body, "*/*")
    try:
        with connect_unix(path, timeout) as connection:
            hang_up = partial(_hang_up, connection)
            with stopped_by(stop or hang_up, hang_up):
                return _exchange(connection, message)
    except OSError as exc:
        raise Unreachable from exc


class ResponseStream:
    """A response whose body is read piece by piece; a file for libraries that read from one."""

    def __init__(self, opened: ExitStack, connection: socket.socket, message: bytes) -> None:
        from http.client import HTTPException, HTTPResponse

        self._opened, self._connection = opened, connection
        self._end = stop_with_scope(partial(_hang_up, connection))
        self._response = HTTPResponse(connection)
        try:
            connection.sendall(message)
            self._response.begin()
        except (OSError, HTTPException) as exc:
            self.close()
            raise ConnectionBroken from exc
        self.status = self._response.status

    @property
    def closed(self) -> bool:
        return self._connection.fileno() < 0

    def read(self, size: int | None = None) -> bytes:
        """Read up to `size` bytes; fewer at the end only."""
        from http.client import HTTPException

        try:
            return self._response.read(size)
        except (OSError, HTTPException) as exc:
            raise OSError("the connection ended") from exc

    def close(self) -> None:
        """End the connection; a statement that still runs is canceled by that."""
        if not self.closed:
            self._end()
            _hang_up(self._connection)
            self._response.close()
            self._opened.close()

    def __enter__(self) -> ResponseStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def stream(path: Path, target: str, body: Any, accept: str) -> ResponseStream:
    """Send a POST; the body of the response is read from what this returns."""
    message, opened = _message("POST", target, body, accept), ExitStack()
    try:
        connection = opened.enter_context(connect_unix(path, None))
    except OSError as exc:
        raise Unreachable from exc
    return ResponseStream(opened, connection, message)


def _message(method: str, target: str, body: Any, accept: str) -> bytes:
    content = b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {target} HTTP/1.1", "Host: lake", f"Accept: {accept}", "Connection: close"]
    lines += ["Content-Type: application/json", f"Content-Length: {len(content)}", "", ""]
    return "\r\n".join(lines).encode() + content


def _hang_up(connection: socket.socket) -> None:
    """End the connection from another thread: the daemon then cancels the statement."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _exchange(connection: socket.socket, message: bytes) -> tuple[int, str, bytes]:
    try:
        connection.sendall(message)
        data = b"".join(iter(lambda: connection.recv(1 << 20), b""))
    except OSError as exc:
        raise ConnectionBroken from exc
    head, _, body = data.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if len(body) != int(headers.get("content-length", -1)):
        raise ConnectionBroken
    return int(status.split(" ")[1]), headers.get("content-type", ""), body
