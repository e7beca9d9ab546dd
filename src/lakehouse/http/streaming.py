"""Answers that are sent piece by piece, compressed if the client asks for it, and statements that end with their client."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Callable, Iterator
from contextvars import copy_context
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from lakehouse.core.errors import NotAcceptableError, StatementCanceledError
from lakehouse.http.execution import Execution
from lakehouse.http.queries import QueryService

T = TypeVar("T")

JSON, JSON_LINES, CSV = "application/json", "application/x-ndjson", "text/csv; charset=utf-8"
ARROW, PARQUET = "application/vnd.apache.arrow.stream", "application/vnd.apache.parquet"
#: The format of each media type that a client may accept.
FORMATS = {
    "application/json": "json",
    "text/csv": "csv",
    JSON_LINES: "json_lines",
    "application/jsonl": "json_lines",
    ARROW: "arrow",
    PARQUET: "parquet",
    "application/x-parquet": "parquet",
    "*/*": "json",
    "application/*": "json",
    "text/*": "csv",
}
MEDIA_TYPES = {"json": JSON, "json_lines": JSON_LINES, "csv": CSV, "arrow": ARROW, "parquet": PARQUET}
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
                        **dict.fromkeys(
                            ("rows_affected", "rows_inserted", "rows_updated", "rows_deleted"), {"type": "integer"}
                        ),
                    },
                    "required": ["columns", "rows", "row_count", "truncated"],
                }
            },
            CSV.partition(";")[0]: {"schema": {"type": "string"}},
            JSON_LINES: {"schema": {"type": "string"}},
            ARROW: BINARY,
            PARQUET: BINARY,
        },
    }
}
#: What is sent at once, and how long a client may take for it: 1 kB/s.
_SENT_BYTES, _SEND_TIMEOUT_S = 64 << 10, 64.0
#: Compressed while they are sent. Arrow is left as it is, for clients that read it from the socket; Parquet is compressed already.
_COMPRESSED = ("json", "json_lines", "csv")
_LONGEST_HEADER = 4096


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
        f"There is no answer of the type {accept[:100]!r}.",
        f"Accept one of: {JSON}, {JSON_LINES}, text/csv, {ARROW}, {PARQUET}.",
    )


async def disconnected(receive: Receive) -> None:
    """Return when the client has hung up."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def in_thread(queries: QueryService, work: Callable[[], T]) -> T:
    """Run work that blocks in a thread for statements, in the context of the request."""
    return await asyncio.get_running_loop().run_in_executor(queries.threads, copy_context().run, work)


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether a client asks for gzip, by its header Accept-Encoding."""
    for part in accept_encoding.lower().split(","):
        name, _, quality = part.partition(";")
        if name.strip() == "gzip":
            return quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


async def respond(execution: Execution, queries: QueryService, request: Request) -> Response:
    """Start a statement and answer with its rows. If the client hangs up, the statement is canceled."""
    queries.running.add(execution)
    gone = asyncio.ensure_future(disconnected(request.receive))
    gone.add_done_callback(lambda done: None if done.cancelled() else execution.cancel())
    is_complete, is_streamed = False, False
    try:
        is_complete = await in_thread(queries, lambda: _first_part(execution))
        if not is_complete or not execution.spool.is_in_memory:
            # Keyed answers are stored, and replayed to clients that may not take gzip.
            compress = execution.format in _COMPRESSED and "idempotency-key" not in request.headers
            compress = compress and accepts_gzip(request.headers.get("accept-encoding", ""))
            is_streamed = True
            return PieceStream(execution, queries, compress, is_complete)
    except asyncio.CancelledError as exc:  # the service ends
        raise execution.abandon() from exc
    finally:
        gone.cancel()
        if not is_streamed:
            queries.running.remove(execution)
    content = b"".join(iter(execution.spool.take, None))
    execution.spool.close()
    return Response(content, media_type=MEDIA_TYPES[execution.format], headers=_headers(execution, is_complete=True))


def _first_part(execution: Execution) -> bool:
    try:
        execution.start()
        return execution.fill_first()
    except BaseException:
        execution.close()
        execution.spool.close()
        raise


def _headers(execution: Execution, is_complete: bool) -> dict[str, str]:
    """What an answer says about itself, for formats that have no place for it."""
    headers = {"X-Lake-Query-Id": execution.id, "X-Lake-Row-Limit": str(execution.limit)}
    columns = json.dumps([{"name": column.name, "type": column.type} for column in execution.columns])
    if len(columns) < _LONGEST_HEADER and columns.isascii():
        headers["X-Lake-Columns"] = columns
    if (affected := execution.changes.get("rows_affected")) is not None:
        headers["X-Lake-Rows-Affected"] = str(affected)
    if is_complete:
        summary = execution.summary
        headers["X-Lake-Truncated"] = str(summary.get("truncated", False)).lower()
        headers["X-Lake-Row-Count"] = str(summary.get("row_count", 0))
    return headers


class PieceStream(Response):
    """The rows of a started statement, which is computed to its end however slowly the client takes them."""

    def __init__(self, execution: Execution, queries: QueryService, compress: bool, is_complete: bool) -> None:
        super().__init__(media_type=MEDIA_TYPES[execution.format], headers=_headers(execution, is_complete))
        del self.headers["content-length"]
        self._execution, self._queries = execution, queries
        self._gzip = zlib.compressobj(1, wbits=31) if compress else None
        if execution.format in _COMPRESSED:
            self.headers["Vary"] = "Accept-Encoding"
        if compress:
            self.headers["Content-Encoding"] = "gzip"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        execution = self._execution
        computing = self._queries.threads.submit(copy_context().run, execution.fill)
        gone = asyncio.ensure_future(disconnected(receive))
        gone.add_done_callback(lambda done: None if done.cancelled() else execution.cancel())
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            while (piece := await self._next()) is not None:
                for part in _parts(piece):
                    async with asyncio.timeout(_SEND_TIMEOUT_S):
                        await send({"type": "http.response.body", "body": part, "more_body": True})
            last = self._gzip.flush() if self._gzip else b""
            await send({"type": "http.response.body", "body": last, "more_body": False})
        except StatementCanceledError:
            if not gone.done():
                raise
        finally:
            gone.cancel()
            execution.cancel()
            await asyncio.wrap_future(computing)
            self._queries.running.remove(execution)

    async def _next(self) -> bytes | None:
        spool, gzip = self._execution.spool, self._gzip
        is_ready, piece = spool.take_ready()
        if not is_ready:
            piece = await in_thread(self._queries, spool.take)
        if piece is not None and gzip is not None:
            return await in_thread(self._queries, lambda: gzip.compress(piece))
        return piece


def _parts(piece: bytes) -> Iterator[bytes]:
    """A piece in parts, so that a slow client is seen to take something."""
    if len(piece) <= _SENT_BYTES:
        yield piece
        return
    view = memoryview(piece)
    for start in range(0, len(view), _SENT_BYTES):
        yield bytes(view[start : start + _SENT_BYTES])
