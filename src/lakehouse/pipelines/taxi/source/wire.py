"""One request over HTTP, and what its failures mean: worth another try, or not."""

from __future__ import annotations

import http.client
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from email.message import Message
from typing import IO, Any
from urllib.parse import urlsplit

from lakehouse.core.errors import SourceError
from lakehouse.pipelines.taxi.source.address import Address

#: Answers after which the same request may succeed.
_TRY_AGAIN = {408, 425, 429, 500, 502, 503, 504}
_GONE = {404, 410}
_DENIED = {401, 403}


class Transient(Exception):
    """It failed in a way that may pass."""

    def __init__(self, reason: str, wait_s: float = 0.0) -> None:
        self.reason, self.wait_s = reason, wait_s
        super().__init__(reason)


class Answered(Exception):
    """The server answered with a status that no other try will change."""

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(f"HTTP {status}")


def ask(address: Address, method: str, headers: Mapping[str, str], timeout_s: float) -> http.client.HTTPResponse:
    """Send a request and give its good answer, whose body is still to be read."""
    # Identity: a transfer that is packed on the way has other lengths and cannot be resumed.
    request = urllib.request.Request(address.url, method=method, headers={"Accept-Encoding": "identity", **headers})
    if address.authorization:
        # Not for whoever the server redirects to.
        request.add_unredirected_header("Authorization", address.authorization)
    try:
        answer: http.client.HTTPResponse = urllib.request.build_opener(_OnTheWeb).open(request, timeout=timeout_s)
    except urllib.error.HTTPError as exc:
        exc.close()
        if exc.code in _TRY_AGAIN:
            raise Transient(f"the server answered {_status(exc.code)}", _retry_after(exc.headers)) from None
        raise Answered(exc.code) from None
    except (ValueError, http.client.InvalidURL):
        raise SourceError(
            f"{address.shown} cannot be asked: it, or a proxy that the environment names, is not written as an address.",
            "Look at sources.taxi.url, HTTP_PROXY and HTTPS_PROXY.",
        ) from None
    except (OSError, http.client.HTTPException) as exc:
        # From None, here and above: the library's own words may hold a proxy's password.
        raise failed(exc, address) from None
    return answer


def failed(exc: Exception, address: Address) -> Transient | SourceError:
    """What a broken connection means."""
    cause = exc.reason if isinstance(exc, urllib.error.URLError) else exc
    if isinstance(cause, ssl.SSLCertVerificationError):
        return SourceError(
            f"The certificate of {address.shown} is not trusted here.",
            "SSL_CERT_FILE names a file with more certificates to trust.",
        )
    if isinstance(cause, TimeoutError):
        return Transient("it stalled")
    if isinstance(cause, ConnectionRefusedError):
        return Transient("the connection was refused")
    if isinstance(cause, socket.gaierror):
        return Transient("its host is not known")
    if isinstance(cause, ConnectionError | http.client.HTTPException):
        return Transient("the connection broke")
    return Transient("it cannot be reached")


def refusal(answered: Answered, address: Address, month: str) -> SourceError:
    """The error for an answer that stays as it is."""
    if answered.status in _GONE:
        return SourceError(
            f"The month {month} is not published: there is no {address.shown}.",
            "The city publishes a month about two months after it has ended.",
        )
    if answered.status in _DENIED:
        return SourceError(
            f"The server does not give {address.shown} ({_status(answered.status)}).",
            f"Some servers say so of files that are not there: {month} may not be published yet. "
            "Otherwise look at the user and password in sources.taxi.url.",
        )
    if 300 <= answered.status < 400:
        return SourceError(
            f"{address.shown} redirects in a circle, or to where a download does not follow.",
            "Followed are http and https, and never from https back to http. Set sources.taxi.url to the place itself.",
        )
    return SourceError(f"{address.shown}: the server answered {_status(answered.status)}.", "Look at sources.taxi.url.")


class _OnTheWeb(urllib.request.HTTPRedirectHandler):
    """Follows redirects to http and https alone (Python would go to ftp as well), and asks there what was asked here."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        allowed = {"https"} if req.type == "https" else {"http", "https"}
        if urlsplit(newurl).scheme not in allowed:
            return None
        further = super().redirect_request(req, fp, code, msg, headers, newurl)
        if further is not None:
            further.method = req.get_method()
        return further


def _status(code: int) -> str:
    return f"{code} {http.client.responses.get(code, '')}".strip()


def _retry_after(headers: Message) -> float:
    asked = headers.get("Retry-After", "")
    return float(asked) if asked.isdigit() else 0.0
