"""Authentication: an API key or an OIDC token in the header `Authorization`, or the session cookie of a browser."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import ForbiddenError, MissingKeyError
from lakehouse.http.keys import KeyStore
from lakehouse.http.oidc import OidcVerifier
from lakehouse.http.principal import OWNER, Principal
from lakehouse.http.sessions import Sessions
from lakehouse.process.sockets import is_loopback


@dataclass(frozen=True)
class Authenticator:
    """Finds out who sends a request."""

    keys: KeyStore
    sessions: Sessions
    oidc: OidcVerifier | None = None
    is_off: bool = False
    """Everybody is the owner: on loopback only, and only by LAKE_AUTH=off."""

    def identify(self, headers: Mapping[str, str], method: str = "GET") -> Principal:
        """The caller; raises UnauthorizedError, and ForbiddenError for a change that another site makes a browser send."""
        if self.is_off:
            _refuse_pages_of_others(headers)
            return OWNER
        if cookie := self.sessions.sent(headers):
            principal = self.sessions.identify(cookie)
            self.sessions.check_csrf(cookie, method, headers)
            return principal
        return self._of_token(headers)

    def _of_token(self, headers: Mapping[str, str]) -> Principal:
        kind, _, token = headers.get("authorization", "").partition(" ")
        token = token.strip() if kind.lower() == "bearer" else headers.get("x-api-key", "").strip()
        return self.verify(token)

    def verify(self, token: str) -> Principal:
        """The caller whose key or OIDC token this is; raises UnauthorizedError."""
        if not token:
            raise MissingKeyError(
                "The request has no key.", "Send it as Authorization: Bearer lake_…; create one: lake keys create"
            )
        if self.oidc is not None and _is_oidc(token):
            return self.oidc.verify(token)
        return self.keys.verify(token)

    def open_session(self, token: str) -> tuple[Principal, str]:
        """The caller whose key or OIDC token this is, and the cookie of a new session; raises UnauthorizedError."""
        principal = self.verify(token)
        is_token = self.oidc is not None and _is_oidc(token)
        return principal, self.sessions.of_token(principal) if is_token else self.sessions.of_key(principal.id)


def _is_oidc(token: str) -> bool:
    return token.count(".") == 2


def is_of_another_site(headers: Mapping[str, str]) -> bool:
    """Whether a browser says that a page of another site sent the request."""
    origin = headers.get("origin", "")
    return bool(origin) and urlsplit(origin).netloc != headers.get("host", "")


def _refuse_pages_of_others(headers: Mapping[str, str]) -> None:
    """Without keys, a browser of this machine must not act for a page from elsewhere, whatever name that page has."""
    if not is_loopback(urlsplit(f"//{headers.get('host', '')}").hostname or "") or is_of_another_site(headers):
        raise ForbiddenError(
            "Keys are off, so only programs of this machine are answered, and no pages of other sites.",
            "Use the address 127.0.0.1, or leave the keys on.",
        )
