"""HTTP over a Unix socket, with the standard library."""

from __future__ import annotations

import http.client
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
    connection = http.client.HTTPConnection("lake", timeout=timeout)
    connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.sock.settimeout(timeout)
    try:
        with short_path(path) as name:
            connection.sock.connect(name)
    except OSError as exc:
        connection.close()
        raise Unreachable from exc
    try:
        headers = {"Content-Type": "application/json", "Accept": accept}
        connection.request(method, target, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, response.headers.get("Content-Type", ""), response.read()
    except (OSError, http.client.HTTPException) as exc:
        raise Broken from exc
    finally:
        connection.close()


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
