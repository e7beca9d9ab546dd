"""Health of the service: whether it runs, and whether it can answer queries."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Response
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse

from lakehouse.core import __version__
from lakehouse.http.docs_page import render
from lakehouse.http.execution import AuditExecution
from lakehouse.http.metrics import CONTENT_TYPE_LATEST
from lakehouse.http.registry import Routes
from lakehouse.http.service import CallContext
from lakehouse.http.streaming import RESULT_CONTENT, accepted_format, respond

routes = Routes("service")


@routes.operation()
def healthz() -> dict[str, str]:
    """Whether the service runs."""
    return {"status": "ok", "version": __version__}


@routes.operation()
def readyz(call: CallContext, response: Response) -> dict[str, Any]:
    """Whether the service can answer: the catalog responds."""
    call.service.lake.branches()
    return {"status": "ok"}


@routes.operation(response_class=HTMLResponse, include_in_schema=False)
def docs(request: Request) -> HTMLResponse:
    """The API on one page, which loads nothing from elsewhere."""
    return HTMLResponse(render(request.app.openapi()))


@routes.operation(response_class=RedirectResponse, include_in_schema=False)
def root() -> RedirectResponse:
    """The way to the console."""
    return RedirectResponse("/ui")


@routes.operation(response_class=PlainTextResponse)
def metrics(call: CallContext) -> Response:
    """Metrics in Prometheus' format; Prometheus sends a reader key as bearer token."""
    return Response(call.service.metrics.text(), media_type=CONTENT_TYPE_LATEST)


@routes.operation()
def audit(call: CallContext, limit: Annotated[int, Query(ge=1, le=10_000)] = 100) -> dict[str, Any]:
    """The newest entries of the audit log: who, what, when, outcome."""
    call.principal.check_everywhere("The audit log")
    return {"entries": call.service.audit.tail(limit)}


class AuditQuery(BaseModel):
    """A statement on the table `audit`."""

    sql: str = Field(max_length=100_000)

    model_config = {
        "extra": "forbid",
        "json_schema_extra": {"example": {"sql": "select who, count(*) as requests from audit group by who"}},
    }


@routes.operation(responses=RESULT_CONTENT, response_class=Response)
async def query_audit(call: CallContext, body: AuditQuery, request: Request) -> Response:
    """Query the whole audit log as the table `audit`."""
    call.principal.check_everywhere("The audit log")
    queries = call.service.queries
    format = accepted_format(request.headers.get("accept", ""))
    execution = AuditExecution(queries, call, body.sql, format, call.service.audit)
    return await respond(execution, queries, request)


@routes.operation()
def whoami(call: CallContext) -> dict[str, Any]:
    """The caller as the service sees it."""
    principal = call.principal
    return {
        "id": principal.id,
        "name": principal.name,
        "scope": principal.scope,
        "namespaces": list(principal.namespaces),
        "branches": list(principal.branches),
    }
