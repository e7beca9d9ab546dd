"""Jobs: list, follow, cancel, resume."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import Path, Query
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from lakehouse.http.answers import page
from lakehouse.http.jobs.model import ENDED
from lakehouse.http.registry import PageSize, PageToken, Routes
from lakehouse.http.service import Call, CallContext

routes = Routes("jobs")
JobId = Annotated[str, Path(description="The id of a job.", max_length=64)]
#: A comment is sent so often, which keeps the connection open through proxies.
_KEEP_ALIVE_S = 10.0
_POLL_S = 0.1


@routes.operation()
def jobs(call: CallContext, page_size: PageSize = 0, page_token: PageToken = "") -> dict[str, Any]:
    """List the caller's jobs, newest first; an admin sees all."""
    records = call.service.jobs.all(call.principal)
    return page("jobs", [job.shown() for job in records], page_size, page_token)


@routes.operation()
async def job(
    call: CallContext,
    job_id: JobId,
    wait: Annotated[float, Query(description="Seconds to wait for its end.", ge=0, le=50)] = 0,
) -> dict[str, Any]:
    """The state, progress and result of a job."""
    deadline, seen = time.monotonic() + wait, call.service.jobs.version(job_id)
    while True:
        record = await run_in_threadpool(call.service.jobs.get, job_id, call.principal)
        if record.state in ENDED or time.monotonic() >= deadline:
            return record.shown()
        seen = await _changed(call, job_id, seen, deadline)


async def _changed(call: Call, job_id: str, seen: int, deadline: float) -> int:
    """Wait, without holding a thread, until the record of a job has another version, or the time is over."""
    while (now := call.service.jobs.version(job_id)) == seen and time.monotonic() < deadline:
        await asyncio.sleep(_POLL_S)
    return now


@routes.operation(
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
    response_class=StreamingResponse,
)
async def job_events(call: CallContext, job_id: JobId) -> StreamingResponse:
    """The state of a job as server-sent events, until it has ended."""
    await run_in_threadpool(call.service.jobs.get, job_id, call.principal)
    return StreamingResponse(_events(call, job_id), media_type="text/event-stream")


async def _events(call: Call, job_id: str) -> AsyncIterator[str]:
    number, last = 0, ""
    while True:
        seen = call.service.jobs.version(job_id)
        record = await run_in_threadpool(call.service.jobs.get, job_id, call.principal)
        content = json.dumps(record.shown())
        if content == last:
            yield ": still there\n\n"
        else:
            number, last = number + 1, content
            yield f"id: {number}\nevent: {'end' if record.state in ENDED else 'progress'}\ndata: {content}\n\n"
        if record.state in ENDED:
            return
        await _changed(call, job_id, seen, time.monotonic() + _KEEP_ALIVE_S)


@routes.operation()
def cancel_job(call: CallContext, job_id: JobId) -> dict[str, Any]:
    """Cancel a job; its table stays as it was."""
    return call.service.jobs.cancel(job_id, call.principal).shown()


@routes.operation(status_code=202)
def resume_job(call: CallContext, job_id: JobId) -> dict[str, Any]:
    """Do a failed or canceled job again, as a new job; what it had committed is skipped."""
    record = call.service.jobs.get(job_id, call.principal)
    call.principal.check_change(record.branch)
    return call.service.jobs.resume(job_id, call.principal).shown()
