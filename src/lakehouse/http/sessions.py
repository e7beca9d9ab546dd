"""Sign-in of browsers: signed session cookies, their CSRF tokens, and links that sign in once."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import asdict
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any

from lakehouse.core.errors import ForbiddenError, LakeError, UnauthorizedError
from lakehouse.http.database import ServiceDatabase
from lakehouse.http.keys import KeyStore
from lakehouse.http.principal import Principal
from lakehouse.process.files import write_private

#: A working day; afterwards one signs in again.
LIFETIME_S, TOKEN_LIFETIME_S = 12 * 3600, 3600
LINK_LIFETIME_S = 120.0
CSRF_HEADER = "x-csrf-token"
#: Methods that change nothing, so that they need no token.
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_SIGN_IN_AGAIN = "Sign in again: lake ui"
#: Who uses a link of `lake ui`: the user of this machine, who can write the lake's folder.
LOCAL_USER = Principal("owner", "admin", "this machine", is_process_user=True)


class Sessions:
    """Creates and verifies session cookies. A cookie holds who signed in; a key's rights are read from the key at each request."""

    def __init__(self, folder: Path, keys: KeyStore, database: ServiceDatabase, is_secure: bool) -> None:
        """
        Args:
            folder: the lake's folder, where the secret of the signatures is; so sessions outlive a restart.
            is_secure: browsers send the cookie over TLS only.
        """
        self._keys, self._database, self._is_secure = keys, database, is_secure
        self._secret = _secret(folder / "session.secret")
        # Cookies belong to a host, not to a port, so each lake has its own name.
        self.cookie = "lake_session_" + hashlib.sha256(self._secret).hexdigest()[:8]

    def of_key(self, identifier: str) -> str:
        """The cookie of a caller who has shown a key."""
        return self._new({"key": identifier, "mark": _mark(self._keys.get(identifier).hash)})

    def of_token(self, principal: Principal) -> str:
        """The cookie of a caller who has shown an OIDC token, with the rights of its claims; shorter, because they may change."""
        return self._new({"claims": asdict(principal)}, TOKEN_LIFETIME_S)

    def of_link(self) -> str:
        """The cookie of the user of this machine."""
        return self._new({"owner": True})

    def _new(self, caller: Mapping[str, Any], lifetime_s: int | None = None) -> str:
        expires = int(time.time()) + (LIFETIME_S if lifetime_s is None else lifetime_s)
        return self._signed({"session": secrets.token_hex(8), "expires": expires, **caller})

    def identify(self, cookie: str) -> Principal:
        """The caller whose cookie this is; raises UnauthorizedError."""
        payload = self._verified(cookie)
        if payload.get("owner"):
            return LOCAL_USER
        if claims := payload.get("claims"):
            limits = {name: tuple(claims[name]) for name in ("namespaces", "branches")}
            return Principal(**{**claims, **limits})
        try:
            key = self._keys.get(payload["key"])
        except LakeError as exc:
            raise UnauthorizedError("The key of this session is gone.", _SIGN_IN_AGAIN) from exc
        if key.state != "active" or _mark(key.hash) != payload["mark"]:
            raise UnauthorizedError(f"The key {key.id} of this session is {key.state}.", _SIGN_IN_AGAIN)
        return key.principal

    def is_open(self, headers: Mapping[str, str]) -> bool:
        """Whether a request comes from a browser that is signed in."""
        try:
            return self.identify(self.sent(headers)).scope != ""
        except UnauthorizedError:
            return False

    def end(self, cookie: str) -> None:
        """Refuse a session from now on."""
        payload = self._verified(cookie)
        with self._database.transaction() as db:
            db.execute("DELETE FROM ended_sessions WHERE expires < ?", (int(time.time()),))
            db.execute("INSERT OR IGNORE INTO ended_sessions VALUES (?, ?)", (payload["session"], payload["expires"]))

    def sent(self, headers: Mapping[str, str]) -> str:
        """The session cookie of a request; empty if it has none, or a key in its headers."""
        if headers.get("authorization") or headers.get("x-api-key"):
            return ""
        try:
            morsel = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return ""
        return morsel.value if morsel else ""

    def csrf(self, cookie: str) -> str:
        """The token that a page of the session sends with each change; no other site can read it."""
        return hmac.new(self._secret, b"csrf " + cookie.encode(), hashlib.sha256).hexdigest()

    def check_csrf(self, cookie: str, method: str, headers: Mapping[str, str]) -> None:
        """Raise ForbiddenError for a change of a session that does not come from one of its pages."""
        given = headers.get(CSRF_HEADER, "")
        if method not in _SAFE_METHODS and not hmac.compare_digest(given.encode(), self.csrf(cookie).encode()):
            raise ForbiddenError(
                "The request changes something, and its CSRF token is missing or of another session.",
                "Load the page again. Programs send a key instead of a cookie.",
            )

    def header(self, value: str) -> str:
        """Set-Cookie for a value; an empty one ends the session of the browser."""
        age = LIFETIME_S if value else 0
        secure = "; Secure" if self._is_secure else ""
        return f"{self.cookie}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}"

    def _signed(self, payload: Mapping[str, Any]) -> str:
        text = base64.urlsafe_b64encode(json.dumps(payload).encode()).decode().rstrip("=")
        return f"{text}.{self._signature(text)}"

    def _signature(self, text: str) -> str:
        return hmac.new(self._secret, b"session " + text.encode(), hashlib.sha256).hexdigest()

    def _verified(self, cookie: str) -> dict[str, Any]:
        text, _, signature = cookie.partition(".")
        if not hmac.compare_digest(signature.encode(), self._signature(text).encode()):
            raise UnauthorizedError("The session is not one of this service.", _SIGN_IN_AGAIN)
        try:
            payload: dict[str, Any] = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        except (binascii.Error, ValueError) as exc:
            raise UnauthorizedError("The session is not one of this service.", _SIGN_IN_AGAIN) from exc
        if payload["expires"] <= time.time() or self._has_ended(payload["session"]):
            raise UnauthorizedError("The session has ended.", _SIGN_IN_AGAIN)
        return payload

    def _has_ended(self, session: str) -> bool:
        with self._database.reading() as db:
            return db.execute("SELECT 1 FROM ended_sessions WHERE id = ?", (session,)).fetchone() is not None


class SignInLinks:
    """Links that sign the user of this machine in, once; `lake ui` creates them in the lake's folder, which only they can write."""

    def __init__(self, folder: Path) -> None:
        """
        Args:
            folder: the lake's folder.
        """
        self._folder = folder / "run" / "links"

    def create(self) -> str:
        """The token of a new link."""
        token = secrets.token_urlsafe(32)
        write_private(self._file(token), str(time.time() + LINK_LIFETIME_S))
        return token

    def use(self, token: str) -> None:
        """Raise ForbiddenError unless the link is new; of two that use it at once, one is refused."""
        file = self._file(token)
        try:
            expires = float(file.read_text())
            file.unlink()
        except (OSError, ValueError) as exc:
            raise ForbiddenError("The link was used before, or is not one of this lake.", _SIGN_IN_AGAIN) from exc
        if expires < time.time():
            raise ForbiddenError("The link has expired.", _SIGN_IN_AGAIN)

    def _file(self, token: str) -> Path:
        return self._folder / hashlib.sha256(token.encode()).hexdigest()


def _secret(file: Path) -> bytes:
    """The secret of a lake's signatures, created when it is first needed."""
    if not file.exists():
        write_private(file, secrets.token_hex(32))
    return file.read_text().strip().encode()


def _mark(text: str) -> str:
    """What tells a key from one that replaced it."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
