"""The messages between a service and its query processes: a kind, a length, and bytes."""

from __future__ import annotations

import socket
import struct

#: A statement, its columns, a piece of its result, its end, an error.
RUN, HEADER, DATA, END, ERROR = b"R", b"H", b"D", b"E", b"X"
_HEAD = struct.Struct("!cQ")
_COPIED_BYTES = 16 << 10


class ConnectionLost(Exception):
    """The other process has ended."""


def send(connection: socket.socket, kind: bytes, content: bytes) -> None:
    """Send one message."""
    head = _HEAD.pack(kind, len(content))
    if len(content) < _COPIED_BYTES:
        connection.sendall(head + content)
    else:  # a large piece is not copied once more
        connection.sendall(head)
        connection.sendall(content)


def receive(connection: socket.socket) -> tuple[bytes, bytes]:
    """Receive one message; raises ConnectionLost, or TimeoutError if the socket has a timeout."""
    kind, size = _HEAD.unpack(_exactly(connection, _HEAD.size))
    return kind, _exactly(connection, size)


def _exactly(connection: socket.socket, size: int) -> bytes:
    content = bytearray(size)
    view, received = memoryview(content), 0
    while received < size:
        try:
            count = connection.recv_into(view[received:])
        except ConnectionError as exc:
            raise ConnectionLost from exc
        if not count:
            raise ConnectionLost
        received += count
    return bytes(content)
