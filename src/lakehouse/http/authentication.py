"""Authentication: an API key or an OIDC token in the header `Authorization`."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import ForbiddenError, UnauthorizedError
from lakehouse.http.keys import KeyStore
from lakehouse.http.oidc import OidcVerifier
from lakehouse.http.principal import OWNER, Principal
from lakehouse.process.sockets import is_loopback


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
            _refuse_pages_of_others(headers)
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


def _refuse_pages_of_others(headers: Mapping[str, str]) -> None:
    """Without keys, a browser of this machine must not act for a page from elsewhere, whatever name that page has."""
    host, origin = headers.get("host", ""), headers.get("origin", "")
    if not is_loopback(urlsplit(f"//{host}").hostname or "") or (origin and urlsplit(origin).netloc != host):
        raise ForbiddenError(
            "Keys are off, so only programs of this machine are answered, and no pages of other sites.",
            "Use the address 127.0.0.1, or leave the keys on.",
        )
