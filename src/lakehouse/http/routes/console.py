"""The pages of the web console: each shows the answers of other routes, with the rights of its caller."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Form, Path, Query
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lakehouse.console import home
from lakehouse.console.render import asset
from lakehouse.console.table import in_words, timeline
from lakehouse.core.errors import BadRequestError, ForbiddenError, UnauthorizedError
from lakehouse.core.names import MAIN
from lakehouse.http.answers import plain
from lakehouse.http.authentication import is_of_another_site
from lakehouse.http.pages import PREFIX, page_response, safe_next
from lakehouse.http.registry import Branch, PageToken, Routes, Table, When
from lakehouse.http.routes import jobs, maintenance, query, refs, runs, tables
from lakehouse.http.service import Call, CallContext
from lakehouse.http.streaming import accepts_gzip

routes = Routes("console")
Next = Annotated[str, Query(description="Where to go afterwards.", max_length=8000)]
_HIDDEN: Any = {"include_in_schema": False, "response_class": Response}
_YEAR_S, _RECENT = 31_536_000, 8


# ---- sign-in ----------------------------------------------------------------------------------------------------


@routes.operation(**_HIDDEN)
def ui_sign_in(call: CallContext, request: Request, next: Next = "") -> Response:
    """The page that asks for a key."""
    if call.service.authenticator.is_off:
        return RedirectResponse(safe_next(next), 303)
    return page_response(call, request, "sign_in.html", {"next": safe_next(next), "error": None})


@routes.operation(**_HIDDEN)
def ui_open_session(
    call: CallContext,
    request: Request,
    key: Annotated[str, Form(max_length=8000)] = "",
    next: Annotated[str, Form(max_length=8000)] = "",
) -> Response:
    """Exchange a key or a token for a session cookie."""
    if is_of_another_site(request.headers):
        raise ForbiddenError("The form was sent by another site.", "Open /ui of this service and sign in there.")
    if not key.strip():
        raise BadRequestError("The form has no key.", "An administrator creates one: lake keys create")
    service = call.service
    try:
        principal, cookie = service.authenticator.open_session(key.strip())
    except UnauthorizedError as exc:
        if not service.settings.serve.behind_proxy:  # there, every client has the address of the proxy
            service.limits.failed(request.client.host if request.client else "")
        return page_response(call, request, "sign_in.html", {"next": safe_next(next), "error": exc.as_dict()}, 401)
    address = safe_next(next)
    if address == PREFIX and not principal.uses(MAIN):
        address = f"{PREFIX}?branch={principal.branches[0]}"
    return RedirectResponse(address, 303, {"Set-Cookie": service.sessions.header(cookie)})


@routes.operation(**_HIDDEN)
def ui_link(
    call: CallContext,
    request: Request,
    token: Annotated[str, Query(max_length=200)] = "",
    next: Next = "",
) -> Response:
    """Sign in by a link of `lake ui`, which works once."""
    service = call.service
    service.links.use(token)
    # Not a redirect: the cookie is not sent to an address that another site's link redirects to.
    response = page_response(call, request, "signed_in.html", {"next": safe_next(next)})
    response.headers["Set-Cookie"] = service.sessions.header(service.sessions.of_link())
    return response


@routes.operation(**_HIDDEN)
def ui_sign_out(call: CallContext, request: Request) -> Response:
    """End the session, also for a copy of its cookie."""
    sessions = call.service.sessions
    if cookie := sessions.sent(request.headers):
        sessions.end(cookie)
    return Response(status_code=204, headers={"Set-Cookie": sessions.header("")})


@routes.operation(**_HIDDEN)
def ui_static(request: Request, version: str, name: Annotated[str, Path(max_length=200)]) -> Response:
    """A file that pages load; its address changes with the version, so that browsers may keep it."""
    file = asset(name)
    headers = {"Cache-Control": f"public, max-age={_YEAR_S}, immutable", "Vary": "Accept-Encoding"}
    if accepts_gzip(request.headers.get("accept-encoding", "")):
        return Response(file.compressed, headers={**headers, "Content-Encoding": "gzip"}, media_type=file.media_type)
    return Response(file.content, headers=headers, media_type=file.media_type)


# ---- home -------------------------------------------------------------------------------------------------------


@routes.operation(**_HIDDEN)
def ui_home(call: CallContext, request: Request, branch: Branch = "", page_token: PageToken = "") -> Response:
    """The tables by layer with freshness, size and health; running work, recent publishes, and what needs attention."""
    listed = tables.tables(call, branch, True, 0, page_token)
    names = [str(table["name"]) for table in listed["tables"]]
    health = _health(call, names)
    recent = runs.runs(call, 50)["runs"]
    listed_jobs = jobs.jobs(call, 50)["jobs"]
    data = {
        "branch": branch.lower() or MAIN,
        "branches": _branch_names(call),
        "layers": home.layers(listed["tables"], health, recent),
        "next_page_token": listed["next_page_token"],
        "attention": home.attention(listed["tables"], health, recent, listed_jobs),
        "running": home.running(recent, listed_jobs, query.queries(call)["queries"]),
        "commits": refs.log(call, branch=branch, limit=_RECENT)["commits"],
        "runs": recent[:_RECENT],
    }
    return page_response(call, request, "home.html", data)


# ---- a table ----------------------------------------------------------------------------------------------------


@routes.operation(**_HIDDEN)
def ui_table(  # noqa: PLR0913 - one parameter per part of the address
    call: CallContext,
    request: Request,
    table: Table,
    branch: Branch = "",
    at: When = "",
    vs: When = "",
    tab: Literal["", "rows", "schema", "history", "diff"] = "",
) -> Response:
    """A table at a moment: rows, schema, timeline, and the difference to another moment."""
    name, lake = call.table(table), call.lake(branch)
    for when in (at, vs):
        call.check_when(when)
    info = tables.describe(call, table, branch)
    snapshots = plain(list(lake.history(name)))
    current = (info["current"] or {}).get("id", "")
    line = timeline(snapshots, lake.snapshot_at(name, at) or current)
    diff = tables.diff(call, table, vs, at, branch=branch) if vs and tab == "diff" else None
    data = {
        "table": name,
        "branch": branch.lower() or MAIN,
        "branches": _branch_names(call),
        "at": at,
        "vs": vs,
        "tab": tab or "rows",
        "info": info,
        "timeline": line,
        "diff": {**diff, "words": in_words(diff)} if diff else None,
        "may_change": call.principal.may_change(branch),
    }
    return page_response(call, request, "table.html", data)


# ---- SQL --------------------------------------------------------------------------------------------------------


@routes.operation(**_HIDDEN)
def ui_sql(  # noqa: PLR0913 - one parameter per part of the address
    call: CallContext,
    request: Request,
    q: Annotated[str, Query(max_length=100_000)] = "",
    branch: Branch = "",
    at: When = "",
    engine: Annotated[str, Query(max_length=40)] = "",
    chart: Annotated[str, Query(max_length=600)] = "",
) -> Response:
    """The editor; its statement, options and chart are in the address. The statement runs by POST /statements."""
    call.check_when(at)
    names = [name for name in call.lake(branch).table_names() if call.sees(name)]
    data = {
        "q": q,
        "branch": branch.lower() or MAIN,
        "branches": _branch_names(call),
        "at": at,
        "engine": engine,
        "chart": chart,
        "example": names[0] if names else "shop.orders",
    }
    return page_response(call, request, "sql.html", data)


def _health(call: Call, names: list[str]) -> dict[str, Any]:
    """The health of tables of main by name; nothing for a caller who may not use main."""
    if not names or not call.principal.uses(MAIN):
        return {}
    known = [name for name in call.lake(MAIN).table_names() if name in set(names)]
    return {table["table"]: table for table in maintenance.health(call, ",".join(known))["tables"]} if known else {}


def _branch_names(call: Call) -> list[str]:
    """The branches that the caller may use."""
    listed = [str(branch["name"]) for branch in refs.branches(call)["branches"]]
    return [MAIN, *listed] if call.principal.uses(MAIN) else listed
