"""Who may ask: a bearer token where tokens are set; without them only programs on this machine, and no web page."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from lakehouse.rest_catalog.problems import Forbidden, NotAllowed

LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Guard:
    """Lets requests in or refuses them."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = [token.encode() for token in tokens if token]

    def check(self, headers: Mapping[str, str]) -> None:
        """Refuse a request without a right token, or one that a browser was made to send."""
        if self._tokens:
            self._check_token(headers.get("authorization", ""))
            return
        # Any web page can make a browser send requests to this machine, under a host name of its choice.
        # Engines are no browsers: they name no origin, and the host that they were given.
        host = urlsplit(f"//{headers.get('host', '')}").hostname or ""
        if "origin" in headers or host not in LOOPBACK:
            raise Forbidden("Without a token, only programs on this machine may ask.", "Set a token for the catalog.")

    def _check_token(self, given: str) -> None:
        kind, _, token = given.partition(" ")
        sent = token.strip().encode()
        if kind.lower() != "bearer" or not any(hmac.compare_digest(sent, known) for known in self._tokens):
            raise NotAllowed("The request has no token, or not one that is known here.")
