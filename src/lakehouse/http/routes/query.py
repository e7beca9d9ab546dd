"""SQL: one statement, answered in the request, or one that outlives it and is polled."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Annotated, Any, Literal

from fastapi import Path
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import Response

from lakehouse.core.errors import BadRequestError, LakeError
from lakehouse.core.requests import QueryRequest
from lakehouse.http.errors import shown_to
from lakehouse.http.execution import Execution
from lakehouse.http.queries import QueryService
from lakehouse.http.registry import Routes
from lakehouse.http.service import CallContext
from lakehouse.http.statements import FAILED, SUCCEEDED, StoredStatement
from lakehouse.http.streaming import ARROW, BINARY, RESULT_CONTENT, accepted_format, in_thread, respond
from lakehouse.query.sql.layout import set_out
from lakehouse.query.sql.parser import parse

routes = Routes("query")
_SECONDS = re.compile(r"(\d{1,3})s")
_MAX_WAIT_S = 50
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
StatementId = Annotated[str, Path(description="statement_id of POST /statements.", max_length=64)]
QueryId = Annotated[str, Path(description="id of GET /queries: the X-Request-Id of the request.", max_length=80)]
Value = str | bool | int | float | None


class Parameter(BaseModel):
    """The value of a marker `:name`."""

    name: str = Field(pattern=rf"^{_NAME.pattern}$", max_length=128)
    value: Value = None
    type: str = Field("", description="STRING, INT, BIGINT, DOUBLE or BOOLEAN: how to read a value that is text.")


class Statement(BaseModel):
    """What both forms of a statement have."""

    engine: str = Field("", description="auto, duckdb, spark, trino (default: query.engine).", max_length=40)
    as_of: str = Field(
        "", description="Read every table as of this WHEN: a snapshot id, tag, time or words.", max_length=200
    )
    branch: str = Field("", description="Branch of all tables (default: main).", max_length=128)
    parameters: dict[str, Value] | list[Parameter] = Field(
        default_factory=dict, description="Values of the markers :name, bound by the engine."
    )
    timeout: float | None = Field(None, gt=0, le=86_400, description="Seconds (default and most: serve.query_timeout).")
    model_config = {"extra": "forbid"}

    def request(self, sql: str, limit: int | None, explain: bool = False) -> QueryRequest:
        """The typed request."""
        return QueryRequest(
            sql, self.as_of, limit, explain, branch=self.branch.lower(), parameters=_bound(self.parameters)
        )


class QueryBody(Statement):
    """The body of POST /query."""

    sql: str = Field(description="One statement of Spark SQL.", max_length=1_000_000)
    limit: int | None = Field(None, ge=0, description="Maximum number of rows (default and most: serve.max_rows).")
    explain: bool = Field(False, description="Also say which engine ran it, why, and how much it read.")

    model_config = {
        "extra": "forbid",
        "json_schema_extra": {
            "examples": [
                {"sql": "select 1 as one"},
                {"sql": "select :word as word", "parameters": {"word": "lake"}, "limit": 10},
            ]
        },
    }


class StatementBody(Statement):
    """The body of POST /statements, as Databricks' API has it."""

    statement: str = Field(description="One statement of Spark SQL.", max_length=1_000_000)
    wait_timeout: str = Field("10s", description="How long to wait for the result: 0s, or 5s to 50s.", max_length=10)
    on_wait_timeout: Literal["CONTINUE", "CANCEL"] = Field("CONTINUE", description="What happens then.")
    row_limit: int | None = Field(None, ge=0, description="Maximum number of rows; a longer result is truncated.")
    format: Literal["JSON_ARRAY", "ARROW_STREAM"] = "JSON_ARRAY"

    model_config = {"extra": "forbid", "json_schema_extra": {"example": {"statement": "select 1 as one"}}}


class FormatBody(BaseModel):
    """The body of POST /format."""

    sql: str = Field(description="Statements of Spark SQL.", max_length=100_000)

    model_config = {"extra": "forbid", "json_schema_extra": {"example": {"sql": "select a from t where b = 1"}}}


@routes.operation(responses=RESULT_CONTENT, response_class=Response)
async def query(call: CallContext, body: QueryBody, request: Request) -> Response:
    """Run one statement and stream its rows: JSON, JSON lines, CSV, an Arrow stream or Parquet, as `Accept` asks.

    A client that hangs up ends its statement.
    """
    format, queries = accepted_format(request.headers.get("accept", "")), call.service.queries
    typed = body.request(body.sql, body.limit, body.explain)
    execution = Execution(queries, call, typed, body.engine, format).within(body.timeout)
    return await respond(execution, queries, request)


@routes.operation()
def format_sql(body: FormatBody) -> dict[str, Any]:
    """Set statements out in lines, where only white space changes, and say whether running them would only read."""
    return {"sql": set_out(body.sql), "reads": only_reads(body.sql)}


def only_reads(sql: str) -> bool:
    """Whether a text is one statement that changes nothing."""
    try:
        return parse(sql).kind in ("read", "other")
    except LakeError:
        return False


@routes.operation()
def queries(call: CallContext) -> dict[str, Any]:
    """List the caller's statements that run, wait or are being sent; an admin sees all."""
    return {"queries": [execution.shown() for execution in call.service.queries.running.all(call.principal)]}


@routes.operation()
def cancel_query(call: CallContext, query_id: QueryId) -> dict[str, Any]:
    """Cancel a statement that runs, waits or is being sent."""
    execution = call.service.queries.running.get(query_id, call.principal)
    execution.cancel()
    return {"id": query_id, "canceled": True}


@routes.operation()
async def create_statement(call: CallContext, body: StatementBody) -> dict[str, Any]:
    """Run one statement that outlives the request: state, result in chunks, cancel."""
    wait_s, service = _wait_s(body.wait_timeout), call.service
    format = "arrow_chunks" if body.format == "ARROW_STREAM" else "json_chunks"
    typed = body.request(body.statement, body.row_limit)
    execution = Execution(service.queries, call, typed, body.engine, format).within(body.timeout)
    statement = service.statements.add(execution, call.principal, call.request_id)
    running = asyncio.ensure_future(in_thread(service.queries, lambda: _run(service.queries, statement)))
    if wait_s:
        await asyncio.wait({running}, timeout=wait_s)
        if not running.done() and body.on_wait_timeout == "CANCEL":
            statement.cancel()
            await asyncio.wait({running}, timeout=5)
    return await in_thread(service.queries, lambda: _answer(statement))


@routes.operation()
def statement_state(call: CallContext, statement_id: StatementId) -> dict[str, Any]:
    """The state of a statement, and the first chunk of its result once it has succeeded."""
    return _answer(call.service.statements.get(statement_id, call.principal))


@routes.operation(responses={200: {"content": {ARROW: BINARY}}})
def statement_chunk(call: CallContext, statement_id: StatementId, number: int) -> Any:
    """One chunk of a result: an array of rows, or an Arrow stream."""
    statement = call.service.statements.get(statement_id, call.principal)
    if statement.is_arrow:
        return Response(statement.chunk(number), media_type=ARROW)
    return _chunk(statement, number)


@routes.operation()
def cancel_statement(call: CallContext, statement_id: StatementId) -> dict[str, Any]:
    """Cancel a statement; one that has ended stays as it is."""
    statement = call.service.statements.get(statement_id, call.principal)
    statement.cancel()
    statement.ended.wait(2)
    return {"statement_id": statement.id, "status": {"state": statement.state}}


def _run(queries: QueryService, statement: StoredStatement) -> None:
    with queries.running.listed(statement.execution):
        statement.run()


def _answer(statement: StoredStatement) -> dict[str, Any]:
    status: dict[str, Any] = {"state": statement.state}
    if statement.state == FAILED and statement.error is not None:
        status["error"] = shown_to(statement.owner, statement.error.as_dict())
    answer: dict[str, Any] = {"statement_id": statement.id, "status": status}
    if statement.state != SUCCEEDED:
        return answer
    answer["manifest"] = statement.manifest
    if not statement.is_arrow and statement.chunks:
        answer["result"] = _chunk(statement, 0)
    return answer


def _chunk(statement: StoredStatement, number: int) -> dict[str, Any]:
    rows = json.loads(statement.chunk(number))
    chunk: dict[str, Any] = {"chunk_index": number, "row_count": len(rows), "data_array": rows}
    if number + 1 < len(statement.chunks):
        chunk["next_chunk_index"] = number + 1
        chunk["next_chunk_internal_link"] = f"/statements/{statement.id}/result/chunks/{number + 1}"
    return chunk


def _wait_s(text: str) -> int:
    seconds = _SECONDS.fullmatch(text)
    if not seconds or not (seconds[1] == "0" or 5 <= int(seconds[1]) <= _MAX_WAIT_S):
        raise BadRequestError(f"wait_timeout = {text!r} is not 0s, and not from 5s to {_MAX_WAIT_S}s.", 'Write "10s".')
    return int(seconds[1])


def _bound(given: dict[str, Value] | list[Parameter]) -> dict[str, Value]:
    if isinstance(given, dict):
        for name in given:
            if not _NAME.fullmatch(name):
                raise BadRequestError(
                    f"{name!r} is not the name of a parameter.", "Letters, digits and _, as in :from_day."
                )
        return given
    return {parameter.name: _typed(parameter) for parameter in given}


def _typed(parameter: Parameter) -> Value:
    """A value that Databricks' clients send as text, with its type."""
    value, kind = parameter.value, parameter.type.upper()
    if not isinstance(value, str) or kind in ("", "STRING"):
        return value
    try:
        if kind in ("INT", "BIGINT", "SMALLINT", "TINYINT", "LONG"):
            return int(value)
        if kind in ("DOUBLE", "FLOAT"):
            return float(value)
    except ValueError as exc:
        raise BadRequestError(f"The parameter {parameter.name} is not of the type {kind}.", "See /docs.") from exc
    if kind == "BOOLEAN" and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise BadRequestError(f"The parameter {parameter.name} has the unknown type {kind}.", "Omit it, or cast in SQL.")
