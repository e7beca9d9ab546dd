"""Jobs of a service: followed until they end, through lost connections; Ctrl-C cancels them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from lakehouse.client.messages import Request, as_json
from lakehouse.client.transport import Transport, rebuilt
from lakehouse.core.errors import LakeError, ServiceUnreachableError

_ENDED = ("succeeded", "failed", "canceled")
#: How often a lost connection to a job is opened again without any news from it.
_RECONNECTS = 5

Progress = Callable[[str], None]


def follow(service: Transport, job: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """Wait for a job; returns its result, or raises its error.

    Args:
        progress: called with each step.
    """
    shown = ""
    try:
        for state in _states(service, job):
            job = state
            if job["progress"] and job["progress"] != shown:
                shown = job["progress"]
                progress(shown)
    except KeyboardInterrupt:
        with suppress(LakeError):
            service.json(Request("POST", f"/jobs/{job['id']}/cancel", content=as_json({}), repeatable=False))
        raise
    if job["state"] == "succeeded":
        result: dict[str, Any] = job["result"]
        return result
    raise rebuilt(job["error"] or {"error": job["state"], "message": f"The job {job['id']} was {job['state']}."})


def _states(service: Transport, job: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The states of a job as they change, the last one when it has ended."""
    yield job
    lost = 0
    while job["state"] not in _ENDED:
        try:
            for state in _events(service, job["id"]):
                job, lost = state, 0
                yield job
        except ServiceUnreachableError:
            lost += 1
            if lost > _RECONNECTS:
                raise
    return


def _events(service: Transport, job: str) -> Iterator[dict[str, Any]]:
    response = service.send(Request("GET", f"/jobs/{job}/events", accept="text/event-stream"))
    try:
        for line in response.lines():
            if line.startswith(b"data: "):
                yield json.loads(line[6:])
    finally:
        response.close()
