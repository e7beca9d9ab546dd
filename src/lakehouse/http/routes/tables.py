"""Tables: list, describe, history, time travel, comparison, rollback, drop."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import Response

from lakehouse.core.requests import QueryRequest
from lakehouse.http.answers import page, plain
from lakehouse.http.execution import Execution
from lakehouse.http.registry import Branch, Limit, PageSize, PageToken, Routes, Table, When
from lakehouse.http.service import CallContext
from lakehouse.http.streaming import RESULT_CONTENT, accepted_format, respond

routes = Routes("tables")
Details = Annotated[
    bool, Query(description="Also columns, partitioning, key and current snapshot, as GET /tables/{table}.")
]
Layer = Annotated[Literal["snapshots", "manifests", "files"], Query(description="How deep the tree goes.")]
FilePath = Annotated[str, Query(description="A path of the tree, or the name of the file.", max_length=2000)]
#: Largest page with details: the metadata of each table is read.
DESCRIBED_PAGE = 100


class UndropBody(BaseModel):
    """Which table to restore."""

    drop: str = Field(default="", max_length=64, description="The id of a drop (default: the last one of the name).")

    model_config = {"extra": "forbid", "json_schema_extra": {"example": {"drop": ""}}}


_LAST_DROP = UndropBody()


class RollbackBody(BaseModel):
    """The body of a rollback."""

    to: str = Field(description="WHEN to return to: a snapshot id, tag, time or words.", min_length=1, max_length=200)

    model_config = {"extra": "forbid", "json_schema_extra": {"example": {"to": "yesterday"}}}


@routes.operation()
def tables(
    call: CallContext,
    branch: Branch = "",
    details: Details = False,
    page_size: PageSize = 0,
    page_token: PageToken = "",
) -> dict[str, Any]:
    """List the tables that the caller may see: name and format, without reading them. `details` describes those of the page.

    The first page also has the names of the views.
    """
    lake = call.lake(branch)
    names = [{"name": name, "format": kind} for name, kind in lake.table_formats().items() if call.sees(name)]
    views = {} if page_token else {"views": [name for name in lake.views() if call.sees(name)]}
    if not details:
        return {**page("tables", names, page_size, page_token), **views}
    listed = page("tables", names, min(page_size or DESCRIBED_PAGE, DESCRIBED_PAGE), page_token)
    return {**listed, **views, "tables": plain(lake.tables([table["name"] for table in listed["tables"]]))}


@routes.operation()
def dropped(call: CallContext, branch: Branch = "") -> dict[str, Any]:
    """List the tables that undrop can restore."""
    drops = [drop for drop in call.lake(branch).drops() if call.sees(str(drop.table))]
    return {"tables": list(dict.fromkeys(str(drop.table) for drop in drops)), "drops": plain(drops)}


@routes.operation()
def describe(call: CallContext, table: Table, branch: Branch = "") -> Any:
    """Schema, partitioning, key and current snapshot of a table."""
    return plain(call.lake(branch).describe(call.table(table)))


@routes.operation()
def schema(call: CallContext, table: Table, branch: Branch = "") -> dict[str, Any]:
    """The columns, partitioning, sort order and key of a table."""
    info = call.lake(branch).describe(call.table(table))
    return {
        "table": str(info.name),
        "columns": plain(info.columns),
        "partitioning": list(info.partitioning),
        "sorting": list(info.sorting),
        "key": list(info.key),
    }


@routes.operation()
def history(
    call: CallContext, table: Table, branch: Branch = "", page_size: PageSize = 0, page_token: PageToken = ""
) -> dict[str, Any]:
    """List the snapshots of a table, oldest first."""
    return page("snapshots", call.lake(branch).history(call.table(table)), page_size, page_token)


@routes.operation()
def inspect(  # noqa: PLR0913 - one parameter per field of InspectRequest
    call: CallContext,
    table: Table,
    when: When = "",
    layer: Layer = "manifests",
    manifest: FilePath = "",
    limit: Annotated[int, Query(description="Maximum number of entries of each layer.", ge=1, le=1000)] = 20,
    branch: Branch = "",
) -> Any:
    """The metadata of a table as a tree: metadata file, snapshots, manifest lists, manifests, data and delete files."""
    call.check_when(when)
    return plain(call.lake(branch).inspect(call.table(table), when, layer, manifest, limit))


@routes.operation()
def inspect_file(
    call: CallContext, table: Table, path: FilePath, when: When = "", manifest: FilePath = "", branch: Branch = ""
) -> Any:
    """The content of one file of a table's metadata, as text; of a data file its footer. A file of no such table is refused."""
    call.check_when(when)
    return plain(call.lake(branch).inspect_file(call.table(table), path, when, manifest))


@routes.operation(responses=RESULT_CONTENT, response_class=Response)
async def travel(
    call: CallContext, request: Request, table: Table, when: When, branch: Branch = "", limit: Limit = 100
) -> Response:
    """The rows of a table as of a WHEN, in the accepted format."""
    queries = call.service.queries
    typed = QueryRequest(f"SELECT * FROM {call.table(table)}", when, limit, branch=branch.lower())
    format = accepted_format(request.headers.get("accept", ""))
    execution = Execution(queries, call, typed, "", format)
    return await respond(execution, queries, request)


@routes.operation()
def diff(  # noqa: PLR0913 - one parameter per field of DiffRequest
    call: CallContext, table: Table, start: When, end: When = "", key: str = "", limit: Limit = 100, branch: Branch = ""
) -> dict[str, Any]:
    """The rows and columns that changed between two WHENs; `key` lists columns with commas."""
    names = [part.strip() for part in key.split(",") if part.strip()]
    for when in (start, end):
        call.check_when(when)
    compared = plain(call.lake(branch).diff(call.table(table), start, end, names, limit))
    return {**compared, **compared["rows"]}  # the rows stand beside their columns


@routes.operation()
def report(call: CallContext, table: Table, start: When = "", end: When = "", branch: Branch = "") -> Any:
    """How a table grew, snapshot by snapshot, and its state at two moments."""
    for when in (start, end):
        call.check_when(when)
    report = call.lake(branch).report(call.table(table), start, end)
    # Details of checks compare tables, and runs are not for keys with limits.
    return plain(replace(report, quality=()) if call.principal.is_limited else report)


@routes.operation()
def rollback(call: CallContext, table: Table, body: RollbackBody, branch: Branch = "") -> dict[str, Any]:
    """Restore a table to a WHEN. Its history stays, so a rollback can be rolled back. Runs on Spark."""
    call.principal.check_change(branch)
    call.check_when(body.to)
    name = call.table(table)
    return {"table": name, "snapshot": plain(call.lake(branch).rollback(name, body.to))}


@routes.operation()
def drop(call: CallContext, table: Table, branch: Branch = "") -> dict[str, Any]:
    """Drop a table softly: undrop restores it."""
    call.principal.check_change(branch)
    name = call.table(table)
    call.lake(branch).drop(name)
    return {"table": name, "dropped": True}


@routes.operation()
def undrop(call: CallContext, table: Table, body: UndropBody = _LAST_DROP, branch: Branch = "") -> Any:
    """Restore the table that was dropped last under this name, or by the drop of an id."""
    call.principal.check_change(branch)
    return plain(call.lake(branch).undrop(call.table(table), body.drop))
