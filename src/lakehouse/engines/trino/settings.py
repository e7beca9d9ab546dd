"""The settings of Trino."""

from __future__ import annotations

from urllib.parse import urlsplit

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import BadSettingError
from lakehouse.core.setting import setting


@dataclass(frozen=True)
class TrinoSettings:
    """`[trino]` in lake.toml, `LAKE_TRINO__*` in the environment."""

    url: str = setting(
        "", "Address of the Trino to query, e.g. http://127.0.0.1:8085 (default: from the profile).", hidden=True
    )
    catalog: str = setting("", "Name of the lake's catalog in Trino (default: from the profile, else lake).")
    branches: tuple[str, ...] = setting(
        (), "Branches that the stack's Trino shows, each as a catalog of its name (default: none)."
    )
    user: str = setting("lake", "User name that Trino gets with each statement.")

    def address(self) -> tuple[str, str, int]:
        """The scheme, host and port of the address."""
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadSettingError("trino.url is not an address.", "Write it as http://127.0.0.1:8085.")
        return parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
