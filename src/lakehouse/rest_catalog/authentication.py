"""Access control: a bearer token where tokens are set; without tokens only programs on this machine, and no web page."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from lakehouse.rest_catalog.errors import ForbiddenError, UnauthorizedError

LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Authenticator:
    """Accepts or refuses requests."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = [token.encode() for token in tokens if token]

    def check(self, headers: Mapping[str, str]) -> None:
        """Refuse a request without a valid token, or one that a web page makes a browser send."""
        if self._tokens:
            self._check_token(headers.get("authorization", ""))
            return
        # A web page can make a browser send requests to this machine, under any host name. Browsers send an Origin; engines
        # do not, and they send the configured host.
        host = urlsplit(f"//{headers.get('host', '')}").hostname or ""
        if "origin" in headers or host not in LOOPBACK:
            raise ForbiddenError(
                "Without a token, only programs on this machine have access.", "Set a token for the catalog."
            )

    def _check_token(self, header: str) -> None:
        kind, _, token = header.partition(" ")
        sent = token.strip().encode()
        if kind.lower() != "bearer" or not any(hmac.compare_digest(sent, known) for known in self._tokens):
            raise UnauthorizedError("The token is missing or invalid.")
