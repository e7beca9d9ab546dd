"""The application: a lake behind HTTP. Thin: it parses, calls the lake and answers."""

from __future__ import annotations

import asyncio
import functools
import json
import os
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from lakehouse.core.errors import LakeError
from lakehouse.core.jsonable import jsonable
from lakehouse.core.requests import QueryRequest, WriteTarget
from lakehouse.core.result import Result
from lakehouse.core.version import __version__
from lakehouse.engines.spark.daemon.client import ARROW
from lakehouse.engines.spark.session import LocalSession

_LOOK_FOR_HANG_UP_S = 0.25
Answer = Callable[[QueryRequest, str], Result]


class Query(BaseModel):
    """The body of POST /query."""

    sql: str
    engine: str = "spark"
    as_of: str = ""
    limit: int | None = None
    explain: bool = False
    branch: str = ""
    files: dict[str, str] = {}
    settings: dict[str, str] = {}
    write: WriteTarget | None = None
    lock: str = ""
    reason: str = "asked for"


@dataclass
class Activity:
    """How busy the application is, for the process that runs it to decide when to stop."""

    running: int = 0
    last: float = field(default_factory=time.monotonic)

    @property
    def idle_seconds(self) -> float:
        return 0.0 if self.running else time.monotonic() - self.last


def create_app(answer: Answer, session: LocalSession, fingerprint: str, activity: Activity) -> FastAPI:
    """The application over one lake.

    Args:
        answer: runs a request on the named engine.
    """
    app = FastAPI(title="lakehouse", version=__version__)

    @app.exception_handler(LakeError)
    async def explain_error(request: Request, exc: LakeError) -> JSONResponse:
        return JSONResponse(exc.as_dict(), status_code=400 if exc.is_user_error else 500)

    @app.exception_handler(Exception)
    async def explain_bug(request: Request, exc: Exception) -> JSONResponse:
        told = LakeError(f"Something unforeseen: {type(exc).__name__}: {exc}", "The log has the whole trace.")
        return JSONResponse(told.as_dict(), status_code=500)

    @app.get("/health")
    async def health() -> dict[str, Any]:
        return {"pid": os.getpid(), "fingerprint": fingerprint, "version": __version__, "running": activity.running}

    @app.post("/query")
    async def query(body: Query, request: Request) -> Response:
        activity.running += 1
        tag = uuid.uuid4().hex
        wants_arrow = ARROW in request.headers.get("accept", "")
        asked = QueryRequest(
            **body.model_dump(exclude={"engine", "reason", "write"}), write=body.write, arrow=wants_arrow
        )
        run = functools.partial(_run, answer, session, asked, body, tag)
        try:
            return await _until_hang_up(request, run, lambda: session.cancel(tag))
        finally:
            activity.running -= 1
            activity.last = time.monotonic()

    return app


def _run(answer: Answer, session: LocalSession, asked: QueryRequest, body: Query, tag: str) -> Response:
    with session.cancellable(tag):
        result = answer(asked, body.engine)
    told = {
        "columns": [asdict(column) for column in result.columns],
        "explain": {**asdict(result.explain), "reason": body.reason},
    }
    return _arrow(result, told) if asked.arrow else _rows(result, told)


def _rows(result: Result, told: dict[str, Any]) -> Response:
    told["rows"] = [[jsonable(value) for value in row] for row in result.rows()]
    return Response(json.dumps(told), media_type="application/json")


def _arrow(result: Result, told: dict[str, Any]) -> Response:
    import pyarrow

    table = result.to_arrow().replace_schema_metadata({"lake": json.dumps(told)})
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return Response(sink.getvalue().to_pybytes(), media_type=ARROW)


async def _until_hang_up(request: Request, run: Callable[[], Response], cancel: Callable[[], None]) -> Response:
    """Run in a thread; if the client goes away (Ctrl-C), cancel what it asked for."""
    work = asyncio.ensure_future(asyncio.to_thread(run))
    while not (await asyncio.wait({work}, timeout=_LOOK_FOR_HANG_UP_S))[0]:
        if await request.is_disconnected():
            await asyncio.to_thread(cancel)
    return await work
