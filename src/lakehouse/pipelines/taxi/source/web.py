"""HTTP requests of the taxi source: addresses, versions of files, and failures as errors that can or cannot be retried."""

from __future__ import annotations

import http.client
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from http import HTTPStatus
from urllib.parse import quote, unquote, urlsplit

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import BadSettingError, SourceError
from lakehouse.process.http_client import TIMEOUT, HttpRequest, HttpStream, NoAnswerError, stream

_RETRYABLE_STATUSES = {408, 425, 429, 500, 502, 503, 504}
_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")


class TransientError(Exception):
    """A failure that another attempt may not have."""

    def __init__(self, reason: str, wait_s: float = 0.0) -> None:
        self.reason, self.wait_s = reason, wait_s
        super().__init__(reason)


class HttpStatusError(Exception):
    """A status that another attempt will not change."""

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(f"HTTP {status}")


@dataclass(frozen=True)
class FileVersion:
    """A file's version on a server: ETag, modification time and size, each if known."""

    etag: str = ""
    last_modified: str = ""
    size: int | None = None

    @property
    def validator(self) -> str:
        """The value for If-Range: a weak ETag does not promise the same bytes."""
        return self.etag if self.etag and not self.etag.startswith("W/") else self.last_modified

    def matches(self, other: FileVersion) -> bool:
        """Whether both are of the same content; the size alone decides only if nothing better is known."""
        if self.size is not None and other.size is not None and self.size != other.size:
            return False
        if self.etag and other.etag:
            return self.etag == other.etag
        if self.last_modified and other.last_modified:
            return self.last_modified == other.last_modified
        return self.size is not None and self.size == other.size


@contextmanager
def send(address: Address, method: str, headers: Mapping[str, str], timeout_s: float) -> Iterator[HttpStream]:
    """A successful response whose body is not yet read. An error names no address, which may hold a password."""
    # identity: a compressed body has another length and cannot be resumed.
    sent = {"Accept-Encoding": "identity", **headers}
    if address.auth:
        sent["Authorization"] = "Basic " + b64encode(b":".join(address.auth)).decode()
    try:
        with stream(HttpRequest(address.url, method, None, sent, timeout_s, redirects=True)) as response:
            _raise_for_status(response)
            yield response
    except NoAnswerError as exc:
        if exc.is_certificate:
            raise SourceError(
                f"The certificate of {address.shown} is not trusted.",
                "Set SSL_CERT_FILE to a file with the certificates to trust.",
            ) from None
        if exc.is_address:
            raise SourceError(
                f"{address.shown} cannot be requested: it, or a proxy that the environment names, is not a valid URL.",
                "Check sources.taxi.url, HTTP_PROXY and HTTPS_PROXY.",
            ) from None
        raise TransientError("it stalled" if exc.reason == TIMEOUT else exc.reason) from None


def _raise_for_status(response: HttpStream) -> None:
    if response.status in _RETRYABLE_STATUSES:
        seconds = response.headers.get("Retry-After", "")
        wait_s = float(seconds) if seconds.isdigit() else 0.0
        raise TransientError(f"the server answered {_status(response.status)}", wait_s)
    if not HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
        raise HttpStatusError(response.status)


def version_of(headers: Mapping[str, str]) -> FileVersion:
    """The version of a file, from the headers of a response with all or a part of it."""
    content_range = _CONTENT_RANGE.fullmatch(headers.get("Content-Range", ""))
    size = content_range[2] if content_range else headers.get("Content-Length", "")
    return FileVersion(headers.get("ETag", ""), headers.get("Last-Modified", ""), int(size) if size.isdigit() else None)


def start_of(headers: Mapping[str, str]) -> int | None:
    """The position at which a partial response starts."""
    content_range = _CONTENT_RANGE.fullmatch(headers.get("Content-Range", ""))
    return int(content_range[1]) if content_range else None


def refused(status: int, address: Address, month: str) -> SourceError:
    """The error for a status that another attempt will not change."""
    shown = address.shown
    if status in (404, 410):
        return SourceError(
            f"The month {month} is not published: there is no {shown}.",
            "The city publishes a month about two months after it has ended.",
        )
    if status in (401, 403):
        return SourceError(
            f"The server refuses {shown} ({_status(status)}).",
            f"Some servers answer so for missing files: {month} may not be published yet. "
            "Otherwise check the user and password in sources.taxi.url.",
        )
    if 300 <= status < 400:
        return SourceError(
            f"{shown} redirects in a cycle, or to an address that is not followed.",
            "Redirects are followed to http and https, and never from https to http. Set sources.taxi.url to the target.",
        )
    return SourceError(f"{shown}: the server answered {_status(status)}.", "Check sources.taxi.url.")


def _status(code: int) -> str:
    return f"{code} {http.client.responses.get(code, '')}".strip()


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
