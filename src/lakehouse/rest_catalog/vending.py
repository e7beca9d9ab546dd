"""The storage settings for clients: the endpoint always, keys on request if the server may vend them.

Where the object store issues temporary keys (STS, as in MinIO), the keys are limited to the locations of the table. Other
stores have one pair of keys, which only an owner gets: the holder of the catalog's token, or of an admin's key without limits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from lakehouse.core.dataclass import dataclass
from lakehouse.process.http_client import NoAnswerError
from lakehouse.rest_catalog import sts
from lakehouse.rest_catalog.errors import RestError

_KEY_ID, _SECRET_KEY, _SESSION = "s3.access-key-id", "s3.secret-access-key", "s3.session-token"
#: Each setting under the names of PyIceberg and of Iceberg's Java library.
_PLAIN = {"s3.endpoint": ("s3.endpoint",), "s3.region": ("s3.region", "client.region")}
_DELEGATION = "vended-credentials"
_S3 = ("s3:", "s3a:", "s3n:")
#: Temporary keys are issued again after this share of their lifetime, so that a client has most of it left.
_REUSED_S = sts.LIFETIME_S / 12
_MAX_CACHED = 1000


@dataclass(frozen=True)
class Grant:
    """What a caller may have of the storage."""

    own_keys: bool = True
    """The pair of keys that the lake itself uses."""
    temporary_keys: bool = True
    """Keys for the folders of one table."""
    may_add: bool = True
    """Temporary keys also add objects."""


class CredentialVending:
    """The storage settings that clients may have."""

    def __init__(self, files: Mapping[str, str], vend_keys: bool) -> None:
        self._plain = {name: files[key] for key, names in _PLAIN.items() if files.get(key) for name in names}
        if self._plain.get("s3.endpoint"):
            virtual = files.get("s3.force-virtual-addressing", "false").lower() == "true"
            self._plain["s3.path-style-access"] = str(not virtual).lower()
        keys = (_KEY_ID, _SECRET_KEY, _SESSION)
        self._secret = {key: files[key] for key in keys if files.get(key)} if vend_keys else {}
        # Keys that are temporary themselves cannot issue others.
        self._issues_keys = bool(self._plain.get("s3.endpoint")) and _SESSION not in self._secret
        self._issued: dict[tuple[bool, Sequence[str]], tuple[float, dict[str, str]]] = {}
        self._lock = threading.Lock()

    @property
    def defaults(self) -> dict[str, str]:
        """The settings without secrets, for all clients."""
        return dict(self._plain)

    def vends_keys(self, delegation: str, grant: Grant) -> bool:
        """Return whether a request with this access delegation header may get keys."""
        asks = _DELEGATION in {mode.strip() for mode in delegation.split(",")}
        return bool(self._secret) and asks and (grant.own_keys or grant.temporary_keys)

    def config(self, locations: Sequence[str], delegation: str, grant: Grant) -> dict[str, Any]:
        """Return the storage part of a response for one table, which has files at these locations."""
        if not self.vends_keys(delegation, grant) or not all(_is_vendable(location) for location in locations):
            return {}
        keys = self._keys(tuple(locations), grant)
        if not keys:
            return {}
        config = {**self._plain, **keys}
        return {
            "config": config,
            "storage-credentials": [{"prefix": location, "config": config} for location in locations],
        }

    def credentials(self, locations: Sequence[str], grant: Grant) -> dict[str, Any]:
        """Return the response of the credentials endpoint."""
        return {"storage-credentials": self.config(locations, _DELEGATION, grant).get("storage-credentials", [])}

    def _keys(self, locations: tuple[str, ...], grant: Grant) -> dict[str, str]:
        """Return temporary keys; the lake's own if the store issues none and the caller may have those; else none."""
        issued_for = (grant.may_add, locations)
        with self._lock:
            issued_at, keys = self._issued.get(issued_for, (0.0, {}))
            if keys and time.monotonic() - issued_at < _REUSED_S:
                return keys
        issued = self._issue(locations, grant.may_add) if self._issues_keys and grant.temporary_keys else None
        if issued is None:
            return self._secret if grant.own_keys else {}
        keys = {_KEY_ID: issued.access_key, _SECRET_KEY: issued.secret_key, _SESSION: issued.session_token}
        with self._lock:
            if len(self._issued) >= _MAX_CACHED:
                self._issued.clear()
            self._issued[issued_for] = time.monotonic(), keys
        return keys

    def _issue(self, locations: Sequence[str], may_add: bool) -> sts.TemporaryKeys | None:
        """Return keys for these locations; None if the store does not issue any, which does not change while it runs."""
        region = self._plain.get("s3.region", "us-east-1")
        owner = sts.Owner(self._plain["s3.endpoint"], region, self._secret[_KEY_ID], self._secret[_SECRET_KEY])
        try:
            issued = sts.assume_role(owner, sts.table_policy(locations, may_add))
        except NoAnswerError as exc:
            raise RestError(
                "The object store does not answer.", status=503, kind="ServiceUnavailableException"
            ) from exc
        self._issues_keys = issued is not None
        return issued


def _is_vendable(location: str) -> bool:
    """Whether keys can be limited to the location: a policy takes some characters for wildcards."""
    return location.startswith(_S3) and not set(location) & set("*?$")
