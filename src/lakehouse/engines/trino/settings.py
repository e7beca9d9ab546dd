"""The settings of Trino."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from lakehouse.core.errors import BadSettingError


@dataclass(frozen=True)
class TrinoSettings:
    """`[trino]` in lake.toml, `LAKE_TRINO__*` in the environment."""

    url: str = field(
        default="", metadata={"help": "a Trino to ask, e.g. http://127.0.0.1:8085; nothing: as the profile says"}
    )
    catalog: str = field(
        default="", metadata={"help": "what Trino calls the lake's catalog; nothing: as the profile says, or lake"}
    )
    branches: tuple[str, ...] = field(
        default=(), metadata={"help": "branches that Trino shows too, each as a catalog of its name"}
    )
    user: str = field(default="lake", metadata={"help": "who asks Trino"})

    def address(self) -> tuple[str, str, int]:
        """The scheme, the host and the port."""
        place = urlsplit(self.url)
        if place.scheme not in ("http", "https") or not place.hostname:
            raise BadSettingError("trino.url is not an address.", "Write it as http://127.0.0.1:8085.")
        return place.scheme, place.hostname, place.port or (443 if place.scheme == "https" else 80)
