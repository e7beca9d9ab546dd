"""The messages between a service and its query processes: a kind, a length, and bytes."""

from __future__ import annotations

import socket
import struct

#: A statement, its columns, a piece of its result, its end, an error.
RUN, HEADER, DATA, END, ERROR = b"R", b"H", b"D", b"E", b"X"
_HEAD = struct.Struct("!cQ")


class ConnectionLost(Exception):
    """The other process has ended."""


def send(connection: socket.socket, kind: bytes, content: bytes) -> None:
    """Send one message."""
    connection.sendall(_HEAD.pack(kind, len(content)) + content)


def receive(connection: socket.socket) -> tuple[bytes, bytes]:
    """Receive one message; raises ConnectionLost, or TimeoutError if the socket has a timeout."""
    kind, size = _HEAD.unpack(_exactly(connection, _HEAD.size))
    return kind, _exactly(connection, size)


def _exactly(connection: socket.socket, size: int) -> bytes:
    parts: list[bytes] = []
    while size:
        try:
            part = connection.recv(min(size, 1 << 20))
        except ConnectionError as exc:
            raise ConnectionLost from exc
        if not part:
            raise ConnectionLost
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
