"""Where a month is published: the address to ask, and the form of it that may be shown."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from urllib.parse import SplitResult, quote, unquote, urlsplit

from lakehouse.core.errors import BadSettingError

MASK = "***"


@dataclass(frozen=True)
class Address:
    """One file on the web. `shown` is what output, errors and notes say: it has no password and no token."""

    url: str = field(repr=False)
    shown: str
    authorization: str = field(default="", repr=False)


def address_of(base: str, file: str) -> Address:
    """A file below the address that the setting `url` gives, which may carry user:password@ and a query."""
    try:
        parts = urlsplit(base.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        # Said without the value and without the library's words: a password with a / in it ends up in both.
        raise _not_an_address() from None
    if parts.scheme not in ("http", "https") or not host:
        raise _not_an_address()
    place = (f"[{host}]" if ":" in host else host) + (f":{port}" if port else "")
    path = quote(f"{parts.path.rstrip('/')}/{file}", safe="/%:@!$&'()*+,;=~")
    query = f"?{parts.query}" if parts.query else ""
    url = f"{parts.scheme}://{place}{path}"
    masked = f"{parts.scheme}://{MASK}@{place}{path}" if "@" in parts.netloc else url
    return Address(url + query, masked + (f"?{MASK}" if query else ""), _authorization(parts))


def _authorization(parts: SplitResult) -> str:
    if parts.username is None:
        return ""
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return "Basic " + base64.b64encode(pair.encode()).decode()


def _not_an_address() -> BadSettingError:
    return BadSettingError(
        "sources.taxi.url is not an address of the web.",
        "Write https://HOST/FOLDER; characters like / or @ in a password are written as %2F and %40.",
    )
