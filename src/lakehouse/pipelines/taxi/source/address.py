"""The address of a month's file: for requests, and without secrets for messages."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import quote, unquote, urlsplit

from lakehouse.core.errors import BadSettingError

MASK = "***"


@dataclass(frozen=True)
class Address:
    """One file on the web. `shown` is for output, errors and notes: it has no password and no token."""

    url: str = field(repr=False)
    shown: str
    auth: tuple[bytes, bytes] | None = field(default=None, repr=False)
    """User and password."""


def address_of(base: str, file: str) -> Address:
    """A file below the address that the setting `url` gives, which may carry user:password@ and a query."""
    try:
        parts = urlsplit(base.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        # The value and the text of the library may hold a password with a / in it.
        raise _not_an_address() from None
    if parts.scheme not in ("http", "https") or not host:
        raise _not_an_address()
    netloc = (f"[{host}]" if ":" in host else host) + (f":{port}" if port else "")
    path = quote(f"{parts.path.rstrip('/')}/{file}", safe="/%:@!$&'()*+,;=~")
    query = f"?{parts.query}" if parts.query else ""
    url = f"{parts.scheme}://{netloc}{path}"
    masked = f"{parts.scheme}://{MASK}@{netloc}{path}" if "@" in parts.netloc else url
    auth = (unquote(parts.username).encode(), unquote(parts.password or "").encode()) if parts.username else None
    return Address(url + query, masked + (f"?{MASK}" if query else ""), auth)


def _not_an_address() -> BadSettingError:
    return BadSettingError(
        "sources.taxi.url is not an http or https URL.",
        "Write https://HOST/FOLDER, with %2F for a / and %40 for an @ in a password.",
    )
