"""OIDC bearer tokens: signed by the issuer, for this audience; the user's groups give the scope."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lakehouse.core.errors import ServiceError, UnauthorizedError
from lakehouse.http.principal import SCOPES, Principal

_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_KEYS_LIFETIME_S = 3600.0
#: A token with an unknown key makes the keys be fetched again, but not more often than this.
_REFETCH_AFTER_S = 30.0
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
    _keys: dict[str, Any] = field(default_factory=dict, repr=False)
    _fetched: float = field(default=-_KEYS_LIFETIME_S, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def verify(self, token: str) -> Principal:
        """The user of a token; raises UnauthorizedError."""
        import jwt

        try:
            header = jwt.get_unverified_header(token)
            claims = jwt.decode(
                token,
                self._key(str(header.get("kid", ""))),
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
        names = listed.split() if isinstance(listed, str) else [str(each) for each in listed]
        scopes = {self.groups[name] for name in names if name in self.groups}
        highest = next((scope for scope in ("admin", "writer", "agent", "reader") if scope in scopes), "")
        if highest not in SCOPES:
            raise UnauthorizedError(
                f"None of the token's groups ({self.claim}) has a scope here.", "Set serve.oidc_groups in lake.toml."
            )
        return highest

    def _key(self, kid: str) -> Any:
        with self._lock:
            age = time.monotonic() - self._fetched
            if age > _KEYS_LIFETIME_S or (kid not in self._keys and age > _REFETCH_AFTER_S):
                self._keys, self._fetched = self._fetch_keys(), time.monotonic()
        found = self._keys.get(kid) if kid else next(iter(self._keys.values()), None)
        if found is None:
            raise UnauthorizedError("The token is signed with a key that the issuer does not list.", "Get a new token.")
        return found

    def _fetch_keys(self) -> dict[str, Any]:
        import jwt

        url = self.jwks_url or str(_get(self.issuer.rstrip("/") + "/.well-known/openid-configuration")["jwks_uri"])
        keys = jwt.PyJWKSet.from_dict(_get(url)).keys
        return {str(key.key_id or ""): key.key for key in keys if key.public_key_use in (None, "sig")}


def _get(url: str) -> dict[str, Any]:
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as response:
            return dict(json.loads(response.read(_MAX_ANSWER)))
    except (OSError, ValueError) as exc:
        raise ServiceError(f"The issuer of tokens does not answer at {url}.", "Check serve.oidc_issuer.") from exc
