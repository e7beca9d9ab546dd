"""The pages of the web console: each shows the answers of other routes, with the rights of its caller."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Form, Path, Query
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lakehouse.console import home, lineage
from lakehouse.console.render import address, asset
from lakehouse.console.table import MOST_SNAPSHOTS, evolution, in_words, snapshots_of, timeline, tree_of_history
from lakehouse.core.errors import (
    BadRequestError,
    ForbiddenError,
    NoSuchTableError,
    NotSupportedError,
    UnauthorizedError,
)
from lakehouse.core.inspection import SNAPSHOTS
from lakehouse.core.names import MAIN
from lakehouse.core.refs import InternalBranch
from lakehouse.http.answers import plain
from lakehouse.http.authentication import is_of_another_site
from lakehouse.http.pages import PREFIX, page_response, safe_next
from lakehouse.http.registry import Branch, PageToken, Routes, Table, When
from lakehouse.http.routes import jobs, maintenance, query, refs, runs, tables
from lakehouse.http.service import Call, CallContext
from lakehouse.http.streaming import accepts_gzip
from lakehouse.lake import Lake
from lakehouse.operations import WRITE
from lakehouse.orchestrate import running_dagster

routes = Routes("console")
Next = Annotated[str, Query(description="Where to go afterwards.", max_length=8000)]
_HIDDEN: Any = {"include_in_schema": False, "response_class": Response}
_YEAR_S, _RECENT, _COMMITS, _RUNS, _NODES, _TABLES = 31_536_000, 8, 50, 50, 60, 50


# ---- sign-in ----------------------------------------------------------------------------------------------------


@routes.operation(**_HIDDEN)
def ui_sign_in(call: CallContext, request: Request, next: Next = "") -> Response:
    """The page that asks for a key."""
    service = call.service
    if service.authenticator.is_off or service.sessions.is_open(request.headers):
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
        service.count_guess(exc, request.client.host if request.client else "")
        return page_response(call, request, "sign_in.html", {"next": safe_next(next), "error": exc.as_dict()}, 401)
    page = safe_next(next)
    if page == PREFIX and not principal.uses(MAIN):
        page = f"{PREFIX}?branch={principal.branches[0]}"
    return RedirectResponse(page, 303, {"Set-Cookie": service.sessions.header(cookie)})


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
    listed = tables.tables(call, branch, True, _TABLES, page_token)
    names = [str(table["name"]) for table in listed["tables"]]
    health = _health(call, names, branch)
    recent = runs.runs(call, 50)["runs"]
    listed_jobs = jobs.jobs(call, 50)["jobs"]
    data = {
        "branch": branch.lower() or MAIN,
        "branches": _branch_names(call),
        "layers": home.layers(listed["tables"], health, recent),
        "views": [{"name": name, "link": _view_page(name)} for name in listed.get("views", ())],
        "next_page_token": listed["next_page_token"],
        "attention": home.attention(listed["tables"], health, recent, listed_jobs),
        "running": home.running(recent, listed_jobs, query.queries(call)["queries"]),
        "commits": refs.recent_commits(call, branch, _RECENT, names),
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
    tab: Literal["", "rows", "schema", "history", "metadata", "diff"] = "",
) -> Response:
    """A table at a moment: rows, schema, timeline, metadata, and the difference to another moment."""
    name, lake = call.table(table), call.lake(branch)
    for when in (at, vs):
        call.check_when(when)
    try:
        info = tables.describe(call, table, branch)
    except NoSuchTableError:
        if name in lake.views():
            return RedirectResponse(_view_page(name), 303)
        raise
    tree = _tree(lake, name)
    current = (info["current"] or {}).get("id", "")
    shown = lake.snapshot_at(name, at) or current
    line = _timeline(lake, name, tree, shown)
    is_earlier = shown != current
    diff = tables.diff(call, table, vs, at, branch=branch) if vs and tab == "diff" else None
    principal, changed = call.principal, branch.lower() or MAIN
    data = {
        "table": name,
        "branch": changed,
        "branches": _branch_names(call),
        "at": at,
        "vs": vs,
        "tab": tab or "rows",
        "info": info,
        "is_earlier": is_earlier,
        "columns": _columns_at(lake, name, shown) if is_earlier and tab == "schema" else info["columns"],
        "timeline": line,
        "evolution": evolution(tree) if tab == "schema" else [],
        "metadata": _first_nodes(tree) if tab == "metadata" else None,
        "diff": {**diff, "words": in_words(diff)} if diff else None,
        "may_change": principal.may_change(branch) and changed not in call.service.settings.branches.protected,
        "may_branch": principal.may(WRITE) and not principal.branches and info["format"] == "iceberg",
        "may_revert": changed == MAIN and principal.may_change(MAIN) and not principal.is_limited,
    }
    return page_response(call, request, "table.html", data)


def _view_page(name: str) -> str:
    """The address that shows a view, which has no metadata but its query."""
    return address(f"{PREFIX}/sql", q=f"select * from {name} limit 100")


def _columns_at(lake: Lake, name: str, snapshot: str) -> list[dict[str, Any]]:
    """The columns of a table as of a snapshot; what is known of them then is their names and types."""
    return [{"name": column.name, "type": column.type} for column in lake.travel(name, snapshot, limit=0).columns]


def _tree(lake: Lake, name: str) -> dict[str, Any]:
    """The metadata of a table down to its newest snapshots; of a format that does not show its metadata, its history."""
    try:
        tree: dict[str, Any] = plain(lake.inspect(name, layer=SNAPSHOTS, limit=MOST_SNAPSHOTS))
        return tree
    except NotSupportedError:
        return tree_of_history(plain(list(lake.history(name))))


def _timeline(lake: Lake, name: str, tree: dict[str, Any], selected: str) -> dict[str, Any]:
    """The newest snapshots and the selected one, so that the page stays small however many there are."""
    snapshots = snapshots_of(tree)
    total = len(snapshots) + tree["left_out"]
    if selected and selected not in [snapshot["id"] for snapshot in snapshots]:
        snapshots = [*snapshots_of(plain(lake.inspect(name, selected, SNAPSHOTS))), *snapshots]
    return timeline(snapshots, total, selected)


def _first_nodes(tree: dict[str, Any]) -> dict[str, Any]:
    """The first layer of a tree, which the page opens further."""
    shown = tree["children"][:_NODES]
    return {**tree, "children": shown, "left_out": tree["left_out"] + len(tree["children"]) - len(shown)}


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
        "runs_at_once": query.only_reads(q),
        "branch": branch.lower() or MAIN,
        "branches": _branch_names(call),
        "at": at,
        "engine": engine,
        "chart": chart,
        "example": names[0] if names else "shop.orders",
    }
    return page_response(call, request, "sql.html", data)


# ---- branches ---------------------------------------------------------------------------------------------------


@routes.operation(**_HIDDEN)
def ui_branches(call: CallContext, request: Request) -> Response:
    """The branches, tags and commits."""
    data = {
        "branches": refs.branches(call)["branches"],
        "tags": [tag for tag in refs.tags(call)["tags"] if not InternalBranch.parse(tag["name"])],
        "commits": refs.log(call, limit=_COMMITS)["commits"] if call.principal.uses(MAIN) else [],
        "is_protected": MAIN in call.service.settings.branches.protected,
    }
    return page_response(call, request, "branches.html", data)


@routes.operation(**_HIDDEN)
def ui_branch(
    call: CallContext,
    request: Request,
    name: refs.Name,
    table: Annotated[str, Query(max_length=300)] = "",
) -> Response:
    """A branch as a pull request: what a merge would change, its checks, publish or drop."""
    if name.lower() == MAIN:
        return RedirectResponse(f"{PREFIX}/b", 303)  # main is what branches are compared with
    changes = refs.diff_branch(call, name)["changes"]
    run = next((run for run in runs.runs(call)["runs"] if run["branch"] == name.lower()), None)
    listed = {branch["name"]: branch for branch in refs.branches(call)["branches"]}
    is_protected = MAIN in call.service.settings.branches.protected and run is None
    data = {
        "name": name.lower(),
        "branch": listed.get(name.lower()),
        "changes": changes,
        "conflicts": [change["table"] for change in changes if change["conflict"]],
        "run": run,
        "table": table,
        "rows": refs.diff_branch(call, name, table) if table else None,
        "is_protected": is_protected,
        "may_merge": call.principal.may_change(MAIN) and not is_protected,
        "may_drop": call.principal.may_change(name.lower()),
    }
    return page_response(call, request, "branch.html", data)


# ---- runs -------------------------------------------------------------------------------------------------------


@routes.operation(**_HIDDEN)
def ui_runs(
    call: CallContext,
    request: Request,
    pipeline: Annotated[str, Query(max_length=128)] = "",
    page_token: PageToken = "",
) -> Response:
    """The pipelines, to start them, and their runs, newest first."""
    listed = runs.runs(call, 0 if pipeline else _RUNS, page_token)
    shown = [run for run in listed["runs"] if not pipeline or run["pipeline"] == pipeline]
    known = runs.pipelines(call)
    data = {
        "pipeline": pipeline,
        "pipelines": known["pipelines"],
        "problems": known["problems"],
        "runs": shown,
        "next_page_token": listed["next_page_token"],
        "running": home.running([], jobs.jobs(call, _RUNS)["jobs"], []),
        "dagster": running_dagster(call.service.lake.folder),
        "may_start": call.principal.may_change(MAIN) and not call.principal.branches,
    }
    return page_response(call, request, "runs.html", data)


@routes.operation(**_HIDDEN)
def ui_run(call: CallContext, request: Request, run: runs.RunId) -> Response:
    """One run: its tables, rules, rejected rows and error; resume, publish or drop it. The page asks for its log afterwards."""
    record = runs.run_record(call, run)
    of_run = [job for job in jobs.jobs(call)["jobs"] if job["request"].get("id") == record["id"]]
    data = {
        "run": record,
        "job": of_run[0] if of_run else None,
        "rows": sum(table["rows"] for table in record["tables"]),
        "rejected": sum(table["rejected"] for table in record["tables"]),
        "has_branch": record["branch"] in _branch_names(call),
        "may_change": call.principal.may_change(MAIN),
    }
    return page_response(call, request, "run.html", data)


@routes.operation(**_HIDDEN)
def ui_lineage(
    call: CallContext,
    request: Request,
    focus: Annotated[str, Query(max_length=300)] = "",
    depth: Annotated[int, Query(ge=1, le=lineage.DEEPEST)] = 2,
) -> Response:
    """The tables of the pipelines from source to gold, around one of them."""
    states = lineage.last_states(runs.runs(call, 200)["runs"])
    drawn = lineage.graph(runs.pipelines(call)["pipelines"], states, focus.lower(), depth)
    return page_response(call, request, "lineage.html", {"focus": focus.lower(), "depth": depth, "graph": drawn})


# ---- health, ingest, ask ----------------------------------------------------------------------------------------


@routes.operation(**_HIDDEN)
def ui_health(call: CallContext, request: Request) -> Response:
    """The score of each table, the worst first, with reasons and what maintenance would gain."""
    scored = maintenance.health(call)["tables"]
    may_maintain = call.principal.may_change(MAIN) and not call.principal.is_limited
    data = {"tables": [{**table, "word": home.health_word(table)} for table in scored], "may_maintain": may_maintain}
    return page_response(call, request, "health.html", data)


@routes.operation(**_HIDDEN)
def ui_ingest(call: CallContext, request: Request, branch: Branch = "") -> Response:
    """Files are dropped here: they are ingested on a branch of their own, which is reviewed and published."""
    data = {
        "branch": branch.lower() or MAIN,
        "branches": _branch_names(call),
        "tables": [name for name in call.lake(branch).table_names() if call.sees(name)],
        "may_write": call.principal.may(WRITE) and not call.principal.branches,
    }
    return page_response(call, request, "ingest.html", data)


@routes.operation(**_HIDDEN)
def ui_ask(
    call: CallContext, request: Request, q: Annotated[str, Query(max_length=1000)] = "", branch: Branch = ""
) -> Response:
    """A question in plain words; POST /ask answers it."""
    call.lake(branch)
    data = {"q": q, "branch": branch.lower() or MAIN, "branches": _branch_names(call)}
    return page_response(call, request, "ask.html", data)


def _health(call: Call, names: list[str], branch: str) -> dict[str, Any]:
    """The health on main of tables of a branch by name; nothing for a caller who may not use main."""
    if not names or not call.principal.uses(MAIN):
        return {}
    is_main = branch.lower() in ("", MAIN)
    known = names if is_main else sorted(set(names).intersection(call.lake(MAIN).table_names()))
    return {table["table"]: table for table in maintenance.health(call, ",".join(known))["tables"]} if known else {}


def _branch_names(call: Call) -> list[str]:
    """The branches that the caller may use."""
    listed = [str(branch["name"]) for branch in refs.branches(call)["branches"]]
    return [MAIN, *listed] if call.principal.uses(MAIN) else listed
