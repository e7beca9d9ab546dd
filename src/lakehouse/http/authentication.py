"""Authentication: an API key or an OIDC token in the header `Authorization`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lakehouse.core.errors import UnauthorizedError
from lakehouse.http.keys import KeyStore
from lakehouse.http.oidc import OidcVerifier
from lakehouse.http.principal import OWNER, Principal


@dataclass(frozen=True)
class Authenticator:
    """Finds out who sends a request."""

    keys: KeyStore
    oidc: OidcVerifier | None = None
    is_off: bool = False
    """Everybody is the owner: on loopback only, and only by LAKE_AUTH=off."""

    def identify(self, headers: Mapping[str, str]) -> Principal:
        """The caller; raises UnauthorizedError."""
        if self.is_off:
            return OWNER
        kind, _, token = headers.get("authorization", "").partition(" ")
        token = token.strip() if kind.lower() == "bearer" else headers.get("x-api-key", "").strip()
        if not token:
            raise UnauthorizedError(
                "The request has no key.", "Send it as Authorization: Bearer lake_…; create one: lake keys create"
            )
        if self.oidc is not None and token.count(".") == 2:
            return self.oidc.verify(token)
        return self.keys.verify(token)
