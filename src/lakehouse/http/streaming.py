"""Answers that are sent piece by piece, and statements that end with their client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextvars import copy_context
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from lakehouse.core.errors import NotAcceptableError, StatementCanceledError
from lakehouse.http.execution import Execution
from lakehouse.http.queries import QueryService

T = TypeVar("T")

JSON, CSV = "application/json", "text/csv; charset=utf-8"
ARROW, PARQUET = "application/vnd.apache.arrow.stream", "application/vnd.apache.parquet"
#: The format of each media type that a client may accept.
FORMATS = {
    "application/json": "json",
    "text/csv": "csv",
    ARROW: "arrow",
    PARQUET: "parquet",
    "application/x-parquet": "parquet",
    "*/*": "json",
    "application/*": "json",
    "text/*": "csv",
}
MEDIA_TYPES = {"json": JSON, "csv": CSV, "arrow": ARROW, "parquet": PARQUET}
#: What OpenAPI says about the answers.
BINARY: Any = {"schema": {"type": "string", "format": "binary"}}
RESULT_CONTENT: Any = {
    200: {
        "description": "The rows, in the accepted format.",
        "content": {
            JSON: {
                "schema": {
                    "type": "object",
                    "properties": {
                        "columns": {"type": "array", "items": {"type": "object"}},
                        "rows": {"type": "array", "items": {"type": "object"}},
                        "row_count": {"type": "integer"},
                        "truncated": {"type": "boolean"},
                        "engine": {"type": "string"},
                    },
                    "required": ["columns", "rows", "row_count", "truncated"],
                }
            },
            CSV.partition(";")[0]: {"schema": {"type": "string"}},
            ARROW: BINARY,
            PARQUET: BINARY,
        },
    }
}
#: How long a client may take to accept one piece.
_SEND_TIMEOUT_S = 120.0
_END = object()


def accepted_format(accept: str) -> str:
    """The format of an answer, by the header Accept; raises NotAcceptableError."""
    wanted: list[tuple[float, str]] = []
    for part in (accept or "*/*").split(","):
        name, _, parameters = part.strip().lower().partition(";")
        quality = next((p.strip()[2:] for p in parameters.split(";") if p.strip().startswith("q=")), "1")
        try:
            wanted.append((-float(quality), name.strip()))
        except ValueError:
            continue
    for negative, name in sorted(wanted, key=lambda entry: entry[0]):
        if negative < 0 and name in FORMATS:
            return FORMATS[name]
    raise NotAcceptableError(
        f"There is no answer of the type {accept[:100]!r}.", f"Accept one of: {JSON}, text/csv, {ARROW}, {PARQUET}."
    )


async def disconnected(receive: Receive) -> None:
    """Return when the client has hung up."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def in_thread(queries: QueryService, work: Callable[[], T]) -> T:
    """Run work that blocks in a thread for statements, in the context of the request."""
    return await asyncio.get_running_loop().run_in_executor(queries.threads, copy_context().run, work)


async def start(execution: Execution, queries: QueryService, request: Request) -> None:
    """Start a statement; if the client hangs up meanwhile, it is canceled."""
    gone = asyncio.ensure_future(disconnected(request.receive))
    gone.add_done_callback(lambda done: None if done.cancelled() else execution.cancel())
    try:
        await in_thread(queries, execution.start)
    finally:
        gone.cancel()


class PieceStream(Response):
    """The rows of a started statement."""

    def __init__(self, execution: Execution, queries: QueryService, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(media_type=MEDIA_TYPES[execution.format], headers=dict(headers or {}))
        del self.headers["content-length"]
        self._execution, self._queries = execution, queries

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        execution, pieces = self._execution, self._execution.pieces()
        gone = asyncio.ensure_future(disconnected(receive))
        gone.add_done_callback(lambda done: None if done.cancelled() else execution.cancel())
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            while (piece := await in_thread(self._queries, lambda: next(pieces, _END))) is not _END:
                message = {"type": "http.response.body", "body": piece, "more_body": True}
                await asyncio.wait_for(send(message), _SEND_TIMEOUT_S)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except StatementCanceledError:
            if not gone.done():
                raise
        finally:
            gone.cancel()
            await in_thread(self._queries, execution.close)
