"""The daemon's HTTP application: parses a request, runs it on the lake, returns the result."""

from __future__ import annotations

import asyncio
import functools
import json
import os
import sys
import threading
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, field
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, Field

from lakehouse.core import __version__
from lakehouse.core.dataclass import dataclass
from lakehouse.core.encoding import ArrowEncoder
from lakehouse.core.engine import Query
from lakehouse.core.errors import LakeError
from lakehouse.core.jsonable import jsonable
from lakehouse.core.names import TableName
from lakehouse.core.refs import acting_for
from lakehouse.core.requests import QueryRequest
from lakehouse.core.result import BatchedRows, Result
from lakehouse.core.statement import Statement
from lakehouse.engines.spark.daemon.client import ARROW
from lakehouse.engines.spark.session import LocalSession

_POLL_S = 0.25
#: Seconds that Spark has to answer; clients wait for 5.
_ANSWER_S = 3.0
Answer = Callable[[Query], Result]


class StatementBody(BaseModel, extra="forbid"):
    """The body of POST /query: a statement that the client has parsed and checked."""

    request: QueryRequest
    statement: Statement
    views: tuple[TableName, ...]
    reason: str
    tag: str = Field(pattern="^[0-9a-f]{32}$")
    """Under which GET /progress finds the statement."""
    author: str
    """For whom the client acts; empty for the user of the daemon."""


class Attachment(BaseModel):
    """The body of POST /attach."""

    group: str
    """The job group of the client."""


@dataclass
class Activity:
    """The number of running requests and the time of the last one, from which the daemon decides when to stop."""

    running: int = 0
    last: float = field(default_factory=time.monotonic)

    @property
    def idle_seconds(self) -> float:
        return 0.0 if self.running else time.monotonic() - self.last


def create_app(answer: Answer, session: LocalSession, fingerprint: str, activity: Activity) -> FastAPI:
    """The application over one lake.

    Args:
        answer: runs a parsed statement on Spark.
    """
    app = FastAPI(title="lakehouse", version=__version__)

    canceled: set[str] = set()  # tags of statements
    asking = ThreadPoolExecutor(max_workers=1)  # of its own: statements may use all threads

    _explain_errors(app)

    @app.get("/health")
    async def health() -> dict[str, Any]:
        # Every statement asks first, so none is sent to a daemon without Spark.
        exit_if_spark_has_ended(session)
        facts = {"pid": os.getpid(), "fingerprint": fingerprint, "version": __version__, "running": activity.running}
        return {**facts, "answers": await _ask_spark(session, asking)}

    @app.get("/progress/{tag}")
    async def progress(tag: str) -> dict[str, int]:
        completed, tasks = await asyncio.to_thread(session.progress, tag)
        return {"completed": completed, "tasks": tasks}

    @app.post("/cancel/{tag}")
    async def cancel(tag: str) -> dict[str, bool]:
        """Cancel a statement whose client goes on waiting for its answer; one that is still on its way is canceled when it comes."""
        canceled.add(tag)
        return {"canceled": True}

    @app.post("/query")
    async def query(body: StatementBody, request: Request) -> Response:
        activity.running += 1
        tag = body.tag
        run = functools.partial(_run, answer, session, body)
        is_canceled = functools.partial(_is_canceled, request, tag, canceled)
        try:
            response = await _until_canceled(is_canceled, run, lambda: session.cancel(tag))
            if isinstance(response, _Stream):
                response.body_iterator = _followed(response.body_iterator, activity, lambda: session.cancel(tag))
            return response
        finally:
            canceled.discard(tag)
            activity.running -= 1
            activity.last = time.monotonic()

    @app.post("/attach")
    async def attach(body: Attachment, request: Request) -> StreamingResponse:
        """Lease the JVM for as long as the connection is open; then cancel what the client left running."""
        port, secret = await asyncio.to_thread(session.gateway)
        activity.running += 1
        first = json.dumps({"port": port, "secret": secret}) + "\n"
        return StreamingResponse(_lease(request, session, body, activity, first), media_type="application/json")

    return app


async def _lease(
    request: Request, session: LocalSession, body: Attachment, activity: Activity, first: str
) -> AsyncIterator[str]:
    """The first line of a lease, and nothing more until its client has gone."""
    try:
        yield first
        while not await request.is_disconnected():
            await asyncio.sleep(_POLL_S)
    finally:
        activity.running -= 1
        activity.last = time.monotonic()
        # In a thread: nothing can be awaited once the connection is gone.
        threading.Thread(target=session.cancel, args=(body.group,), daemon=True).start()


def exit_if_spark_has_ended(session: LocalSession) -> None:
    """End this process if the JVM has: clients that wait see a broken connection, and the next command starts a new daemon."""
    if session.has_died():
        _exit("Spark's JVM has ended, so this process ends too.")


async def _ask_spark(session: LocalSession, asking: ThreadPoolExecutor) -> bool:
    """Whether Spark answers in time. One that cannot work any more, because its context or gateway was stopped, ends this process."""
    answer = asyncio.get_running_loop().run_in_executor(asking, session.answers)
    try:
        works = await asyncio.wait_for(answer, _ANSWER_S)
    except TimeoutError:
        return False  # a collection of garbage, or a machine that is too busy
    if not works:
        _exit("Spark was stopped, so this process ends too.")
    return True


def _exit(reason: str) -> None:
    sys.stderr.write(f"{reason}\n")
    os._exit(1)


def _explain_errors(app: FastAPI) -> None:
    """Answer an error in the JSON shape that the command line has, too."""

    @app.exception_handler(LakeError)
    async def explain_error(request: Request, exc: LakeError) -> JSONResponse:
        return JSONResponse(exc.as_dict(), status_code=400 if exc.is_user_error else 500)

    @app.exception_handler(Exception)
    async def explain_bug(request: Request, exc: Exception) -> JSONResponse:
        error = LakeError(f"Unexpected error: {type(exc).__name__}: {exc}", "The log has the traceback.")
        return JSONResponse(error.as_dict(), status_code=500)


def _run(answer: Answer, session: LocalSession, body: StatementBody) -> Response:
    with acting_for(body.author), session.cancellable(body.tag):
        result = answer(Query(body.request, body.reason, body.statement, views=body.views))
    payload = {"columns": [asdict(column) for column in result.columns], "explain": asdict(result.explain)}
    if isinstance(result.source, BatchedRows):
        return _Stream(_stream(result, payload), media_type=ARROW)
    as_arrow = body.request.arrow or body.request.stream
    return _arrow(result, payload) if as_arrow else _rows(result, payload)


class _Stream(StreamingResponse):
    """Rows that are still computed while they are sent."""


def _stream(result: Result, payload: dict[str, Any]) -> Iterator[bytes]:
    """The rows as an Arrow stream, whose last batch has the outcome as metadata: an error may come after rows were sent."""
    encode, (schema, batches) = ArrowEncoder(), result.stream()
    yield encode.begin(result.columns, schema)
    outcome = payload
    try:
        for batch in batches:
            yield encode.rows(batch)
    except LakeError as exc:
        outcome = {"error": exc.as_dict()}
    yield encode.end(outcome)


async def _followed(pieces: AsyncIterable[Any], activity: Activity, cancel: Callable[[], None]) -> AsyncIterator[Any]:
    """The same pieces. While they are sent the daemon is busy; if the client hangs up, the statement is canceled."""
    activity.running += 1
    complete = False
    try:
        async for piece in pieces:
            yield piece
        complete = True
    finally:
        activity.running -= 1
        activity.last = time.monotonic()
        if not complete:
            threading.Thread(target=cancel, daemon=True).start()  # nothing can be awaited any more


def _rows(result: Result, payload: dict[str, Any]) -> Response:
    payload["rows"] = [[jsonable(value) for value in row] for row in result.rows()]
    return Response(json.dumps(payload), media_type="application/json")


def _arrow(result: Result, payload: dict[str, Any]) -> Response:
    import pyarrow

    table = result.to_arrow().replace_schema_metadata({"lake": json.dumps(payload)})
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return Response(sink.getvalue().to_pybytes(), media_type=ARROW)


async def _is_canceled(request: Request, tag: str, canceled: set[str]) -> bool:
    """Whether the client has asked to cancel its statement, or has gone (Ctrl-C)."""
    return tag in canceled or await request.is_disconnected()


async def _until_canceled(
    is_canceled: Callable[[], Awaitable[bool]], run: Callable[[], Response], cancel: Callable[[], None]
) -> Response:
    """Run in a thread; once it is canceled, stop its jobs again and again, because it may start more."""
    work = asyncio.ensure_future(asyncio.to_thread(run))
    while not (await asyncio.wait({work}, timeout=_POLL_S))[0]:
        if await is_canceled():
            await asyncio.to_thread(cancel)
    return await work
