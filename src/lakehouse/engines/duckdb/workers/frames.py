"""The messages between a service and its query processes: a kind, a length, and bytes."""

from __future__ import annotations

import socket
import struct

#: A statement, its columns, a piece of its result, its end, an error.
RUN, HEADER, DATA, END, ERROR = b"R", b"H", b"D", b"E", b"X"
_HEAD = struct.Struct("!cQ")
#: Smaller messages are copied, to be sent with their head or with others.
SMALL_BYTES = 16 << 10


class ConnectionLost(Exception):
    """The other process has ended."""


def message(kind: bytes, content: bytes) -> bytes:
    """One message as bytes."""
    return _HEAD.pack(kind, len(content)) + content


def send(connection: socket.socket, kind: bytes, content: bytes) -> None:
    """Send one message."""
    if len(content) < SMALL_BYTES:
        connection.sendall(message(kind, content))
    else:  # a large piece is not copied once more
        connection.sendall(_HEAD.pack(kind, len(content)))
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
