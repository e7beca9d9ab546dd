"""HTTP over a Unix socket, the subset that a client of our own daemon needs.

The standard library's client would do, but importing it (and with it the email package) takes 40 ms, a tenth of the
whole time of a statement on the warm Spark.
"""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from lakehouse.process.sockets import connect_unix


class Unreachable(Exception):
    """Nothing listens on the socket."""


class ConnectionBroken(Exception):
    """The connection ended before the response was complete."""


def request(
    path: Path, method: str, target: str, body: Any, accept: str, timeout: float | None
) -> tuple[int, str, bytes]:
    """Send one request; returns the response's status, content type and body."""
    content = b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {target} HTTP/1.1", "Host: lake", f"Accept: {accept}", "Connection: close"]
    lines += ["Content-Type: application/json", f"Content-Length: {len(content)}", "", ""]
    try:
        with connect_unix(path, timeout) as connection:
            return _exchange(connection, "\r\n".join(lines).encode() + content)
    except OSError as exc:
        raise Unreachable from exc


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
