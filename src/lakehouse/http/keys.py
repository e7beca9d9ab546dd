"""API keys: created once, shown once, stored as argon2 hashes in a file that only its owner reads."""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import (
    BadRequestError,
    BadSettingError,
    NotFoundError,
    NotInstalledError,
    UnauthorizedError,
    UnknownChoiceError,
)
from lakehouse.core.names import check_part
from lakehouse.http.principal import SCOPES, Principal
from lakehouse.process.files import locked, write_private

if TYPE_CHECKING:
    from argon2 import PasswordHasher

FILE = "keys.json"
_BRAND = "lake"
_PREFIX_BYTES, _SECRET_BYTES = 5, 32
#: Verified keys that are remembered, so that argon2 runs once per key and not once per request.
_MAX_REMEMBERED = 1000


@dataclass(frozen=True)
class ApiKey:
    """A stored key, without its secret."""

    id: str
    """The prefix, which is shown in lists and logs."""
    scope: str
    hash: str = field(repr=False)
    name: str = ""
    namespaces: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()
    created_at: str = ""
    expires_at: str = ""
    """ISO 8601; empty: never."""
    revoked_at: str = ""

    @property
    def state(self) -> str:
        """active, expired or revoked."""
        if self.revoked_at:
            return "revoked"
        expired = self.expires_at and datetime.fromisoformat(self.expires_at) <= datetime.now(UTC)
        return "expired" if expired else "active"

    @property
    def principal(self) -> Principal:
        return Principal(self.id, self.scope, self.name, self.namespaces, self.branches)

    def shown(self) -> dict[str, object]:
        """Everything but the hash."""
        values = {name: value for name, value in asdict(self).items() if name != "hash"}
        return {**values, "state": self.state}


@dataclass(frozen=True)
class KeyRequest:
    """What a new key may do."""

    scope: str = "reader"
    name: str = ""
    namespaces: Sequence[str] = ()
    branches: Sequence[str] = ()
    expires_at: datetime | None = None


class KeyStore:
    """The keys of a lake."""

    def __init__(self, folder: Path) -> None:
        """
        Args:
            folder: the lake's folder.
        """
        self._file, self._lock_file = folder / FILE, folder / "run" / "keys.lock"
        self._lock = threading.Lock()
        self._stamp: tuple[int, ...] = ()
        self._keys: dict[str, ApiKey] = {}
        self._verified: dict[str, str] = {}

    def create(self, request: KeyRequest) -> tuple[ApiKey, str]:
        """Create a key; returns it with its text, which is not stored."""
        key, text = _new_key(request)
        self._change(lambda keys: {**keys, key.id: key})
        return key, text

    def create_first(self) -> str:
        """Create the admin key of a lake that has no key; empty if it has one."""
        with locked(self._lock_file):
            if self._read():
                return ""
        return self.create(KeyRequest("admin", "first"))[1]

    def all(self) -> list[ApiKey]:
        """Every key, oldest first."""
        return sorted(self._read().values(), key=lambda key: key.created_at)

    def revoke(self, identifier: str) -> ApiKey:
        """Refuse a key from now on; it stays in the list."""
        key = self.get(identifier)
        revoked = key if key.revoked_at else replace(key, revoked_at=_now())
        self._change(lambda keys: {**keys, key.id: revoked})
        return revoked

    def rotate(self, identifier: str) -> tuple[ApiKey, str]:
        """Revoke a key and create one with the same rights; of two rotations at once, one is refused."""
        old = self.get(identifier)
        expires = datetime.fromisoformat(old.expires_at) if old.expires_at else None
        new, text = _new_key(KeyRequest(old.scope, old.name, old.namespaces, old.branches, expires))

        def replaced(keys: dict[str, ApiKey]) -> dict[str, ApiKey]:
            known = keys[old.id]
            if known.state != "active":
                raise BadRequestError(
                    f"The key {old.id} is {known.state}, so it has no rights that another could take over.",
                    f"Create one: lake keys create --scope {old.scope}",
                )
            return {**keys, old.id: replace(known, revoked_at=_now()), new.id: new}

        self._change(replaced)
        return new, text

    def get(self, identifier: str) -> ApiKey:
        """A key by its prefix."""
        key = self._read().get(identifier.removeprefix(f"{_BRAND}_").partition("_")[0])
        if key is None:
            raise NotFoundError(f"There is no key {identifier[:20]!r}.", "List them: lake keys list")
        return key

    def verify(self, text: str) -> Principal:
        """The caller whose key this is; raises UnauthorizedError."""
        brand, _, rest = text.partition("_")
        identifier, _, secret = rest.partition("_")
        key = self._read().get(identifier) if brand == _BRAND and secret else None
        if key is None or not self._matches(key, text):
            raise UnauthorizedError("The key is missing or invalid.", "Send it as Authorization: Bearer lake_…")
        if key.state != "active":
            raise UnauthorizedError(f"The key {key.id} is {key.state}.", "Create another: lake keys create")
        return key.principal

    def _matches(self, key: ApiKey, text: str) -> bool:
        from argon2.exceptions import Argon2Error

        digest = hashlib.sha256(text.encode()).hexdigest()
        if self._verified.get(digest) == key.hash:
            return True
        with self._lock:  # one at a time: each takes 19 MB and some milliseconds
            try:
                _hasher().verify(key.hash, text)
            except Argon2Error:
                return False
            if len(self._verified) >= _MAX_REMEMBERED:
                self._verified.clear()
            self._verified[digest] = key.hash
        return True

    def _change(self, change: Callable[[dict[str, ApiKey]], dict[str, ApiKey]]) -> None:
        with locked(self._lock_file):
            keys = change(self._read())
            write_private(self._file, json.dumps([asdict(key) for key in keys.values()], indent=1))

    def _read(self) -> dict[str, ApiKey]:
        """The keys; the file is read again when it was replaced, so that a revoked key ends at once."""
        try:
            status = self._file.stat()
        except FileNotFoundError:
            return {}
        stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
        if stamp != self._stamp:
            self._keys = {key.id: key for key in self._parsed()}
            self._stamp = stamp
        return self._keys

    def _parsed(self) -> list[ApiKey]:
        try:
            listed = json.loads(self._file.read_text())
            return [
                ApiKey(**{**fields, **{name: tuple(fields[name]) for name in ("namespaces", "branches")}})
                for fields in listed
            ]
        except (OSError, ValueError, TypeError) as exc:
            raise BadSettingError(
                f"{self._file} does not hold the keys of the service.",
                "Restore it, or remove it to start without keys.",
            ) from exc


def _new_key(request: KeyRequest) -> tuple[ApiKey, str]:
    if request.scope not in SCOPES:
        raise UnknownChoiceError("scope", request.scope, SCOPES)
    identifier = secrets.token_hex(_PREFIX_BYTES)
    text = f"{_BRAND}_{identifier}_{secrets.token_urlsafe(_SECRET_BYTES)}"
    key = ApiKey(
        identifier,
        request.scope,
        _hasher().hash(text),
        request.name,
        tuple(check_part(namespace, "namespace") for namespace in request.namespaces),
        tuple(check_part(branch, "branch") for branch in request.branches),
        _now(),
        request.expires_at.astimezone(UTC).isoformat(timespec="seconds") if request.expires_at else "",
    )
    return key, text


def _hasher() -> PasswordHasher:
    try:
        import argon2
    except ImportError as exc:
        raise NotInstalledError("argon2-cffi", "serve") from exc
    # Keys are random and long: the least that is recommended for passwords is more than enough.
    return argon2.PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
