"""Questions that a living server answers."""

from __future__ import annotations

import http.client
import socket
import urllib.error
import urllib.request

_PATIENCE_S = 2.0


def listens(host: str, port: int) -> bool:
    """Whether anybody takes connections there."""
    try:
        socket.create_connection((host, port), timeout=_PATIENCE_S).close()
    except OSError:
        return False
    return True


def answers(url: str, *statuses: int, containing: str = "") -> bool:
    """Whether a GET there gives one of the statuses (200 by default), and a text that contains this."""
    # No proxy: this is a server of our own on this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=_PATIENCE_S) as answer:
            status, text = answer.status, answer.read(100_000).decode(errors="replace")
    except urllib.error.HTTPError as exc:
        status, text = exc.code, ""
        exc.close()
    except (OSError, ValueError, http.client.HTTPException):
        return False
    return status in (statuses or (200,)) and containing in text
