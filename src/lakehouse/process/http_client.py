"""HTTP requests to servers: one place for timeouts, TLS, proxies, redirects and the reasons of failures.

Three clients keep connections open and are not built on this one: the client of a service (client/transport.py), the one
of the warm Spark's Unix socket (unix_http.py) and PyIceberg's.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from http import HTTPStatus
from typing import IO, TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from lakehouse.core.dataclass import dataclass

if TYPE_CHECKING:
    from http.client import HTTPResponse
    from urllib.request import OpenerDirector

#: The reason of a failure after too long a silence.
TIMEOUT = "timeout"
_PROBE_TIMEOUT_S = 2.0


class NoAnswerError(Exception):
    """A server did not answer, or its answer broke off.

    Attributes:
        reason: why, in a few words and without the address, which may hold a secret.
        is_certificate: whether the server's certificate is not trusted.
        is_address: whether the address, or that of a proxy, is not valid.
    """

    def __init__(self, reason: str, is_certificate: bool = False, is_address: bool = False) -> None:
        self.reason, self.is_certificate, self.is_address = reason, is_certificate, is_address
        super().__init__(reason)


@dataclass(frozen=True)
class HttpRequest:
    """One request. It is sent once: whether to send it again is for the caller to decide."""

    url: str = field(repr=False)
    method: str = "GET"
    body: bytes | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_s: float = 30.0
    """Seconds of silence after which the connection has failed."""
    proxies: bool = True
    """Whether to use the proxies that the environment names; not for servers of the lake's own stack."""
    redirects: bool = False
    """Whether to follow redirects: from https only to https, and without `Authorization` to another host."""


@dataclass(frozen=True)
class HttpResponse:
    """An answer, whatever its status."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Parse the body; ValueError if it is not JSON."""
        return json.loads(self.body)


class HttpStream:
    """An answer whose body is read piece by piece."""

    def __init__(self, response: HTTPResponse) -> None:
        self._response = response
        self.status = int(response.status or HTTPStatus.OK)  # a file: address has none
        self.headers = cast("Mapping[str, str]", response.headers)  # ignores the case of names

    def read(self, size: int | None = None) -> bytes:
        """Read the rest, or up to `size` bytes."""
        return self._complete(self._response.read, size)

    def read_available(self, size: int) -> bytes:
        """Read what has arrived, at least one byte; nothing at the end."""
        return self._complete(self._response.read1, size)

    def _complete(self, read: Callable[[Any], bytes], size: int | None) -> bytes:
        with _translated():
            data = read(size)
        # Python reports a body that is too short only to callers that read all of it at once.
        if not data and size and getattr(self._response, "length", None):
            raise NoAnswerError("the connection broke")
        return data


def send(request: HttpRequest, max_bytes: int | None = None) -> HttpResponse:
    """Send a request and read the answer, or the first bytes of it; NoAnswerError if there is none."""
    with stream(request) as response:
        return HttpResponse(response.status, response.headers, response.read(max_bytes))


def answers(url: str, *statuses: int, containing: str = "") -> bool:
    """Whether a GET returns one of the statuses (default: 200) and a body that contains a text."""
    try:
        response = send(HttpRequest(url, timeout_s=_PROBE_TIMEOUT_S, proxies=False), max_bytes=100_000)
    except NoAnswerError:
        return False
    return response.status in (statuses or (200,)) and containing in response.body.decode(errors="replace")


@contextmanager
def stream(request: HttpRequest) -> Iterator[HttpStream]:
    """Send a request; the body of the answer is read in the block. NoAnswerError if there is none."""
    with _translated():
        response = _open(request)
    with response:
        yield HttpStream(response)


def reason(exc: BaseException) -> str:
    """Say in a few words why a connection failed."""
    cause = getattr(exc, "reason", None)
    if isinstance(cause, BaseException):
        return reason(cause)
    if isinstance(exc, TimeoutError):
        return TIMEOUT
    if isinstance(exc, OSError) and exc.strerror:
        return exc.strerror
    return "the address is not valid" if isinstance(exc, ValueError) else "the connection broke"


@contextmanager
def _translated() -> Iterator[None]:
    from http.client import HTTPException, InvalidURL

    try:
        yield
    except (OSError, HTTPException, ValueError) as exc:
        is_certificate = isinstance(getattr(exc, "reason", exc), ssl.SSLCertVerificationError)
        raise NoAnswerError(reason(exc), is_certificate, isinstance(exc, ValueError | InvalidURL)) from exc


def _open(request: HttpRequest) -> HTTPResponse:
    # Imported here, 30 ms: most commands send no request.
    from urllib.error import HTTPError
    from urllib.request import Request

    sent = Request(request.url, request.body, dict(request.headers), method=request.method)
    try:
        response = _opener(request.proxies, request.redirects).open(sent, timeout=request.timeout_s)
    except HTTPError as exc:  # any status is an answer
        response = exc
    return cast("HTTPResponse", response)


def _opener(proxies: bool, redirects: bool) -> OpenerDirector:
    from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

    class SafeRedirects(HTTPRedirectHandler):
        def redirect_request(  # noqa: PLR0913 - urllib's signature
            self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
        ) -> Request | None:
            start, end = urlsplit(req.full_url), urlsplit(newurl)
            if not redirects or end.scheme not in ("https", start.scheme):
                return None
            redirected = super().redirect_request(req, fp, code, msg, headers, newurl)
            if redirected is not None:
                redirected.method = "HEAD" if req.get_method() == "HEAD" else "GET"  # urllib would send a GET
                if start.netloc != end.netloc:
                    redirected.remove_header("Authorization")
            return redirected

    return build_opener(SafeRedirects(), *([] if proxies else [ProxyHandler({})]))
