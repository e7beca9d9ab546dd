"""HTTP over a Unix socket, as much of it as two processes of ours need.

The standard library's client would do, but loading it (and with it the email package) takes 40 ms, a tenth of what a
statement on the warm Spark takes in all.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: The system allows 107 bytes for the path of a Unix socket.
_LONGEST_PATH = 100


class Unreachable(Exception):
    """Nobody listens."""


class Broken(Exception):
    """Somebody listened, and then the connection ended."""


def ask(path: Path, method: str, target: str, body: Any, accept: str, timeout: float | None) -> tuple[int, str, bytes]:
    """One request; the answer's status, content type and body."""
    content = b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {target} HTTP/1.1", "Host: lake", f"Accept: {accept}", "Connection: close"]
    lines += ["Content-Type: application/json", f"Content-Length: {len(content)}", "", ""]
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout)
        try:
            with short_path(path) as name:
                connection.connect(name)
        except OSError as exc:
            raise Unreachable from exc
        try:
            connection.sendall("\r\n".join(lines).encode() + content)
            return _answer(b"".join(iter(lambda: connection.recv(1 << 20), b"")))
        except OSError as exc:
            raise Broken from exc


def _answer(data: bytes) -> tuple[int, str, bytes]:
    head, _, body = data.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if len(body) != int(headers.get("content-length", -1)):
        raise Broken  # it ended in the middle of what it wanted to say
    return int(status.split(" ")[1]), headers.get("content-type", ""), body


@contextmanager
def short_path(path: Path) -> Iterator[str]:
    """A name for a socket that fits into what the system allows, however deep its folder is."""
    if len(os.fsencode(path)) <= _LONGEST_PATH or not sys.platform.startswith("linux"):
        yield str(path)
        return
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        yield str(path)
        return
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
