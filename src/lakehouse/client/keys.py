"""The API keys of a service, for its admins. `lake keys` shows them as those of a lake of this machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lakehouse.client.calls import request_for
from lakehouse.client.transport import Transport
from lakehouse.core.dataclass import dataclass
from lakehouse.operations import BY_NAME

#: What is known of a key, by the names of `GET /keys`; a new one also has its text under `key`.
KeyFacts = dict[str, Any]


@dataclass(frozen=True)
class RemoteKeys:
    """The keys of a service."""

    _service: Transport

    def all(self) -> list[KeyFacts]:
        """Every key, oldest first, without its text."""
        return [_facts(key) for key in self._service.json(request_for(BY_NAME["keys"], {}))["keys"]]

    def create(self, **options: Any) -> KeyFacts:
        """Create a key: scope, name, namespaces, branches, days. Its text is in the answer and nowhere else."""
        return self._new("create_key", options)

    def revoke(self, key: str) -> KeyFacts:
        """Refuse a key from now on."""
        return _facts(self._service.json(request_for(BY_NAME["revoke_key"], {"key_id": _id(key)})))

    def rotate(self, key: str) -> KeyFacts:
        """Revoke a key and create one with the same rights."""
        return self._new("rotate_key", {"key_id": _id(key)})

    def _new(self, operation: str, arguments: KeyFacts) -> KeyFacts:
        # The answer holds a secret, so the service does not store it for a second attempt.
        return _facts(self._service.json(replace(request_for(BY_NAME[operation], arguments), once=True)))


def _facts(key: KeyFacts) -> KeyFacts:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in key.items()}


def _id(key: str) -> str:
    """The id in a key or of one: the secret part of a key must not become part of an address, which is logged."""
    return key.removeprefix("lake_").partition("_")[0]
