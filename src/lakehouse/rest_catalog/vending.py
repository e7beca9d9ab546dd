"""The storage settings for clients: the endpoint always, the keys on request if the server may vend them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_SECRET = ("s3.access-key-id", "s3.secret-access-key", "s3.session-token")
#: Each setting under the names of PyIceberg and of Iceberg's Java library.
_PLAIN = {"s3.endpoint": ("s3.endpoint",), "s3.region": ("s3.region", "client.region")}
_DELEGATION = "vended-credentials"


class CredentialVending:
    """The storage settings that clients may have."""

    def __init__(self, files: Mapping[str, str], vend_keys: bool) -> None:
        self._plain = {name: files[key] for key, names in _PLAIN.items() if files.get(key) for name in names}
        if self._plain.get("s3.endpoint"):
            virtual = files.get("s3.force-virtual-addressing", "false").lower() == "true"
            self._plain["s3.path-style-access"] = str(not virtual).lower()
        self._secret = {key: files[key] for key in _SECRET if files.get(key)} if vend_keys else {}

    @property
    def defaults(self) -> dict[str, str]:
        """The settings without secrets, for all clients."""
        return dict(self._plain)

    def vends_keys(self, delegation: str) -> bool:
        """Return whether a request with this access delegation header gets keys."""
        return bool(self._secret) and _DELEGATION in {each.strip() for each in delegation.split(",")}

    def config(self, location: str, delegation: str) -> dict[str, Any]:
        """Return the storage part of a response for one table."""
        if not self.vends_keys(delegation) or not location.startswith(("s3:", "s3a:", "s3n:")):
            return {}
        config = {**self._plain, **self._secret}
        return {"config": config, "storage-credentials": [{"prefix": location, "config": config}]}

    def credentials(self, location: str) -> dict[str, Any]:
        """Return the response of the credentials endpoint."""
        return {"storage-credentials": self.config(location, _DELEGATION).get("storage-credentials", [])}
