"""Listening and connecting sockets: Unix sockets at paths of any length, and TCP ports."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: The system allows 107 bytes for the path of a Unix socket.
_MAX_PATH_BYTES = 100
_PROBE_TIMEOUT_S = 2.0


@contextmanager
def connect_unix(path: Path, timeout_s: float | None = None) -> Iterator[socket.socket]:
    """Connect to a Unix socket; raises OSError if nothing listens there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout_s)
        with _short_path(path) as name:
            connection.connect(name)
        yield connection


def listen_unix(path: Path) -> socket.socket:
    """Listen on a Unix socket that only its owner can open, from the moment it exists."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    previous_mask = os.umask(0o177)
    try:
        with _short_path(path) as name:
            listener.bind(name)
    finally:
        os.umask(previous_mask)
    listener.listen(128)
    return listener


def bind_tcp(host: str, port: int) -> socket.socket:
    """Bind a TCP port; raises OSError if the port is taken or the host is no address of this machine."""
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    import ipaddress

    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@contextmanager
def _short_path(path: Path) -> Iterator[str]:
    """A name for the socket that fits the system's limit, however deep its folder is."""
    if len(os.fsencode(path)) <= _MAX_PATH_BYTES or not sys.platform.startswith("linux"):
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


def accepts_connections(host: str, port: int) -> bool:
    """Whether a TCP connection to the port succeeds."""
    try:
        socket.create_connection((host, port), timeout=_PROBE_TIMEOUT_S).close()
    except OSError:
        return False
    return True
