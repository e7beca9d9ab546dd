"""Access control: every request needs a bearer token."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence

from lakehouse.core.errors import BadSettingError
from lakehouse.rest_catalog.errors import UnauthorizedError


class Authenticator:
    """Accepts or refuses requests."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = [token.encode() for token in tokens if token]
        if not self._tokens:
            raise BadSettingError("The REST catalog has no token.", "Set at least one: without any, nobody has access.")

    def check(self, headers: Mapping[str, str]) -> None:
        """Refuse a request without a valid token; the comparison takes the same time for every token."""
        kind, _, token = headers.get("authorization", "").partition(" ")
        sent = token.strip().encode()
        # Every token is compared, so that the time does not depend on which one matches.
        matches = [hmac.compare_digest(sent, known) for known in self._tokens]
        if kind.lower() != "bearer" or not any(matches):
            raise UnauthorizedError("The token is missing or invalid.")
