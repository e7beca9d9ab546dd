"""Probes: whether a server accepts connections or answers an HTTP request."""

from __future__ import annotations

import socket

from lakehouse.process.http_client import HttpRequest, NoAnswerError, send

_TIMEOUT_S = 2.0


def accepts_connections(host: str, port: int) -> bool:
    """Whether a TCP connection to the port succeeds."""
    try:
        socket.create_connection((host, port), timeout=_TIMEOUT_S).close()
    except OSError:
        return False
    return True


def answers(url: str, *statuses: int, containing: str = "") -> bool:
    """Whether a GET returns one of the statuses (default: 200) and a body that contains a text."""
    try:
        response = send(HttpRequest(url, timeout_s=_TIMEOUT_S, proxies=False), max_bytes=100_000)
    except NoAnswerError:
        return False
    return response.status in (statuses or (200,)) and containing in response.body.decode(errors="replace")
