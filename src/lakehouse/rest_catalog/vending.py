"""What a client is told of the storage: where it is always, the keys to it only if it asks and the server may tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_SECRET = ("s3.access-key-id", "s3.secret-access-key", "s3.session-token")
#: The same setting under the names of PyIceberg and of Iceberg's Java.
_PLAIN = {"s3.endpoint": ("s3.endpoint",), "s3.region": ("s3.region", "client.region")}
_WAY = "vended-credentials"


class Vending:
    """The settings of the storage, as clients may have them."""

    def __init__(self, files: Mapping[str, str], may_tell: bool) -> None:
        self._plain = {name: files[key] for key, names in _PLAIN.items() if files.get(key) for name in names}
        if self._plain.get("s3.endpoint"):
            virtual = files.get("s3.force-virtual-addressing", "false").lower() == "true"
            self._plain["s3.path-style-access"] = str(not virtual).lower()
        self._secret = {key: files[key] for key in _SECRET if files.get(key)} if may_tell else {}

    @property
    def defaults(self) -> dict[str, str]:
        """What everybody is told: no secret among it."""
        return dict(self._plain)

    def tells(self, asked: str) -> bool:
        """Whether there are keys to tell to somebody who asks so."""
        return bool(self._secret) and _WAY in {way.strip() for way in asked.split(",")}

    def config(self, location: str, asked: str) -> dict[str, Any]:
        """The part of an answer that concerns the storage of one table."""
        if not self.tells(asked) or not location.startswith(("s3:", "s3a:", "s3n:")):
            return {}
        told = {**self._plain, **self._secret}
        return {"config": told, "storage-credentials": [{"prefix": location, "config": told}]}

    def credentials(self, location: str) -> dict[str, Any]:
        """The answer to whoever asks for the keys alone."""
        return {"storage-credentials": self.config(location, _WAY).get("storage-credentials", [])}
