"""The address of a service: what a client accepts as one, and when a key may be sent there."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from lakehouse.core.errors import BadSettingError

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Address:
    """Where a service listens."""

    scheme: str
    host: str
    port: int
    path: str = ""
    """A prefix that a proxy puts before all paths; empty or begins with a slash."""

    @classmethod
    def parse(cls, url: str) -> Address:
        """Parse `http://host:port`; BadSettingError says what is wrong with it."""
        hint = "Write the address as lake serve prints it, e.g. http://127.0.0.1:8600."
        try:
            parts = urlsplit(url.strip())
            port = parts.port
        except ValueError as exc:
            raise BadSettingError(f"{url!r} is not the address of a service: {exc}.", hint) from exc
        if parts.scheme not in _PORTS or not parts.hostname or parts.query or parts.fragment:
            raise BadSettingError(f"{url!r} is not the address of a service.", hint)
        if parts.username is not None or parts.password is not None:
            raise BadSettingError("The address of a service holds no user and no password.", "Set the key: LAKE_KEY.")
        return cls(parts.scheme, parts.hostname, port or _PORTS[parts.scheme], parts.path.rstrip("/"))

    def check_may_carry_key(self) -> None:
        """Refuse to send a key in clear text over a network."""
        if self.scheme == "http" and not self.is_loopback:
            raise BadSettingError(
                f"The key would cross the network to {self.host} in clear text.",
                "Use https://, or set allow_http = true (LAKE_ALLOW_HTTP) on a network that you trust.",
            )

    @property
    def is_loopback(self) -> bool:
        """Whether the service is on this machine."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.path}"
