"""Pages of the console over HTTP: every page is HTML with strict headers, or the same facts as JSON; errors are pages, too."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import Scope

from lakehouse.console.render import PageFacts, render
from lakehouse.core import __version__
from lakehouse.core.errors import LakeError, UnauthorizedError
from lakehouse.core.names import MAIN
from lakehouse.http.answers import plain
from lakehouse.http.errors import error_response, shown_to, status_of
from lakehouse.http.principal import Principal
from lakehouse.http.service import Call
from lakehouse.http.sessions import Sessions
from lakehouse.operations import ADMIN, WRITE

PREFIX = "/ui"
SIGN_IN = PREFIX + "/sign-in"
#: The Sec-Fetch-Site of a page that the user opened, or one of the console: no page from elsewhere holds its window.
_NO_FOREIGN_OPENER = ("none", "same-origin")
_TABLES, _SUFFIX, _IS_JSON = PREFIX + "/t/", ".json", "is_json"


def is_page(path: str) -> bool:
    """Whether an address is one of the console."""
    return path == PREFIX or path.startswith(PREFIX + "/")


def without_suffix(scope: Scope) -> Scope:
    """The request for a page whose address ends with `.json`, noted as such, or with `/`; other requests as they are."""
    path: str = scope["path"]
    if path == PREFIX + "/":
        return {**scope, "path": PREFIX, "raw_path": PREFIX.encode()}
    if not path.endswith(_SUFFIX) or not is_page(path.removesuffix(_SUFFIX)) or path.startswith(f"{PREFIX}/static/"):
        return scope
    short = path.removesuffix(_SUFFIX)
    if short.startswith(_TABLES) and "." not in short:
        return scope  # the table `json` of a namespace
    state = {**scope.get("state", {}), _IS_JSON: True}
    return {**scope, "path": short, "raw_path": quote(short).encode(), "state": state}


def page_response(call: Call, request: Request, template: str, data: Mapping[str, Any], status: int = 200) -> Response:
    """A page, or its facts as JSON if the address asks for them."""
    facts = plain(data)
    if request.scope["state"].get(_IS_JSON):
        return JSONResponse(facts, status)
    return _html(request.scope, template, facts, call.principal, status, call.service.sessions)


def failure_response(scope: Scope, error: LakeError, principal: Principal, sessions: Sessions) -> Response:
    """The answer to a request that failed: a page for a browser that asked for one, else JSON."""
    is_json = scope.get("state", {}).get(_IS_JSON) or scope["path"].endswith(_SUFFIX)
    takes_html = "text/html" in Headers(scope=scope).get("accept", "")
    if not is_page(scope["path"]) or is_json or not takes_html:
        return error_response(error, principal)
    if isinstance(error, UnauthorizedError):
        query = scope.get("query_string", b"").decode("latin-1")
        wanted = scope["path"] + (f"?{query}" if query else "")
        return RedirectResponse(f"{SIGN_IN}?{urlencode({'next': wanted})}", 303)
    usable = [branch for branch in principal.branches if branch != MAIN]
    data = {"error": shown_to(principal, error.as_dict()), "status": status_of(error), "branches": usable}
    return _html(scope, "error.html", data, principal, status_of(error), sessions)


def _theme(scope: Scope) -> str:
    """The theme that the reader chose, if any; else the styles follow the system."""
    chosen = Request(scope).cookies.get("lake-theme", "")
    return chosen if chosen in ("light", "dark") else ""


def _html(
    scope: Scope, template: str, data: Mapping[str, Any], principal: Principal, status: int, sessions: Sessions
) -> Response:
    nonce, cookie = secrets.token_urlsafe(16), sessions.sent(Headers(scope=scope))
    query = scope.get("query_string", b"").decode("latin-1")
    facts = PageFacts(
        path=scope["path"],
        query=query,
        csrf=sessions.csrf(cookie) if cookie else "",
        nonce=nonce,
        theme=_theme(scope),
        version=__version__,
        user=principal.name or principal.id,
        scope=principal.scope,
        may_write=principal.may(WRITE),
        may_admin=principal.may(ADMIN),
        may_change_main=principal.may_change(MAIN),
        is_limited=principal.is_limited,
    )
    return Response(render(template, data, facts), status, security_headers(scope, nonce), "text/html; charset=utf-8")


def security_headers(scope: Scope, nonce: str) -> dict[str, str]:
    """The headers of a page: no script but the console's own files, nothing from elsewhere, in no frame, out of reach of other windows."""
    policy = (
        f"default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; font-src 'self';"
        " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
    headers = {
        "Content-Security-Policy": policy,
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "same-origin",
        "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    }
    if Headers(scope=scope).get("sec-fetch-site", "") not in _NO_FOREIGN_OPENER:
        # The browser moves the page to a process of its own, which doubles the time until the first paint.
        headers["Cross-Origin-Opener-Policy"] = "same-origin"
    return headers


def safe_next(address: str) -> str:
    """Where to go after the sign-in: an address of the console, whatever the link says."""
    is_own = is_page(address.partition("?")[0]) and not any(letter in address for letter in "\\\r\n\t")
    return address if is_own else PREFIX
