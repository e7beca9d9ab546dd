"""OIDC bearer tokens: signed by the issuer, for this audience; the user's groups give the scope."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import ServiceError, UnauthorizedError
from lakehouse.http.principal import SCOPES, Principal
from lakehouse.process.http_client import HttpRequest, NoAnswerError, send

if TYPE_CHECKING:
    from jwt import PyJWKClient

_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_KEYS_LIFETIME_S = 3600.0
_LEEWAY_S = 30
_TIMEOUT_S = 5.0
_MAX_ANSWER = 1 << 20


@dataclass
class OidcVerifier:
    """Verifies the tokens of one issuer."""

    issuer: str
    audience: str
    groups: Mapping[str, str]
    """The scope of each group."""
    claim: str = "groups"
    jwks_url: str = ""
    """Where the issuer's keys are (default: as its discovery document says)."""
    refetch_after_s: float = 30.0
    """A token with an unknown key makes the keys be fetched again, but not more often than this."""

    def verify(self, token: str) -> Principal:
        """The user of a token; raises UnauthorizedError."""
        import jwt

        try:
            claims = jwt.decode(
                token,
                self._key(token),
                algorithms=_ALGORITHMS,
                audience=self.audience,
                issuer=self.issuer,
                leeway=_LEEWAY_S,
                options={"require": ["exp", "sub", "iss", "aud"]},
            )
        except jwt.PyJWTError as exc:
            raise UnauthorizedError(f"The token is invalid: {exc}.", "Get a new one from the issuer.") from exc
        return Principal(str(claims["sub"]), self._scope(claims), str(claims.get("email") or claims.get("name") or ""))

    def _scope(self, claims: Mapping[str, Any]) -> str:
        """The highest scope that a group of the user has."""
        listed = claims.get(self.claim) or []
        names = listed.split() if isinstance(listed, str) else [str(name) for name in listed]
        scopes = {self.groups[name] for name in names if name in self.groups}
        highest = next((scope for scope in ("admin", "writer", "agent", "reader") if scope in scopes), "")
        if highest not in SCOPES:
            raise UnauthorizedError(
                f"None of the token's groups ({self.claim}) has a scope here.", "Set serve.oidc_groups in lake.toml."
            )
        return highest

    def _key(self, token: str) -> Any:
        """The issuer's key that a token names; a token without a name is accepted if the issuer has one key."""
        import jwt

        kid = jwt.get_unverified_header(token).get("kid")
        try:
            if kid:
                return self._keys.get_signing_key(str(kid)).key
            keys = self._keys.get_jwk_set().keys
        except (jwt.PyJWKClientConnectionError, OSError, ValueError) as exc:
            raise _no_answer(self._keys.uri) from exc
        if len(keys) != 1:
            raise UnauthorizedError("The token does not name the key that it is signed with.", "Get a new token.")
        return keys[0].key

    @cached_property
    def _keys(self) -> PyJWKClient:
        from jwt import PyJWKClient

        return PyJWKClient(
            self.jwks_url or self._discover(),
            lifespan=_KEYS_LIFETIME_S,
            timeout=_TIMEOUT_S,
            cooldown_duration=self.refetch_after_s,
        )

    def _discover(self) -> str:
        """Where the keys are, as the issuer's discovery document says."""
        url = self.issuer.rstrip("/") + "/.well-known/openid-configuration"
        try:
            return str(send(HttpRequest(url, timeout_s=_TIMEOUT_S), _MAX_ANSWER).json()["jwks_uri"])
        except (NoAnswerError, ValueError, KeyError, TypeError) as exc:
            raise _no_answer(url) from exc


def _no_answer(url: str) -> ServiceError:
    return ServiceError(f"The issuer of tokens does not answer at {url}.", "Check serve.oidc_issuer.")
