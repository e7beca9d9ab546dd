"""Probes: whether a server accepts connections or answers an HTTP request."""

from __future__ import annotations

import http.client
import json
import socket
import urllib.error
import urllib.request
from typing import Any

_TIMEOUT_S = 2.0
# No proxy: these are servers on this machine.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


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
        with _OPENER.open(url, timeout=_TIMEOUT_S) as response:
            status, text = response.status, response.read(100_000).decode(errors="replace")
    except urllib.error.HTTPError as exc:
        status, text = exc.code, ""
        exc.close()
    except (OSError, ValueError, http.client.HTTPException):
        return False
    return status in (statuses or (200,)) and containing in text


def fetch_json(request: urllib.request.Request) -> Any | None:
    """The JSON body of a response; None if the server does not answer with one."""
    try:
        with _OPENER.open(request, timeout=_TIMEOUT_S + 3) as response:
            return json.load(response)
    except (OSError, ValueError, http.client.HTTPException):
        return None
