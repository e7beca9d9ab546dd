"""Methods of the Python API as requests: built from the table of operations and the signature of the method; jobs are followed to their end."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import PurePath
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar
from urllib.parse import quote

from lakehouse.client.decode import decode
from lakehouse.client.messages import Request, as_json
from lakehouse.client.transport import Transport, rebuilt
from lakehouse.core.errors import LakeError, ServiceUnreachableError
from lakehouse.core.names import MAIN, TableName
from lakehouse.lake.interface import Progress, silent
from lakehouse.operations import BY_LAKE_METHOD, Operation

P = ParamSpec("P")
R = TypeVar("R")


class Caller(Protocol):
    """An object whose methods are requests."""

    @property
    def _service(self) -> Transport: ...
    @property
    def _branch(self) -> str: ...


def remote(
    method: Callable[Concatenate[Any, P], R], read: Callable[[Any], R] | None = None
) -> Callable[Concatenate[Any, P], R]:
    """The method of the Python API, with its signature and documentation, as a request to the service.

    Args:
        read: turns the answer into what the method returns (default: the table of operations names its type).
    """
    operation = BY_LAKE_METHOD[method.__qualname__]

    @functools.wraps(method)
    def call(caller: Caller, /, *args: P.args, **kwargs: P.kwargs) -> R:
        bound = inspect.signature(method).bind(caller, *args, **kwargs)
        bound.apply_defaults()
        _, *given = bound.arguments.items()
        arguments = dict(given)
        progress = arguments.pop("progress", silent)
        answer = send(caller, operation, request_for(operation, arguments, caller._branch), progress)
        result: R = read(answer) if read else answer
        return result

    return call


def request_for(operation: Operation, arguments: Mapping[str, Any], branch: str = MAIN) -> Request:
    """The request of an operation: arguments in the path, else in the body of a POST, else as parameters."""
    path, fields = operation.path, {}
    for name, value in arguments.items():
        field = operation.renames.get(name, name)
        sent = str(value) if isinstance(value, TableName | PurePath) else value
        if f"{{{field}}}" in path:
            # A name that is no table's is refused before it is sent.
            sent = str(TableName.parse(sent)) if field == "table" else sent
            path = path.replace(f"{{{field}}}", quote(sent, safe=""))
        else:
            fields[field] = sent
    query = {"branch": "" if branch == MAIN else branch} if operation.on_branch else {}
    repeatable = operation.method == "GET"
    if operation.method == "POST":
        return Request("POST", path, query, as_json(fields), repeatable=repeatable)
    listed = {name: ",".join(value) if isinstance(value, list | tuple) else value for name, value in fields.items()}
    return Request(operation.method, path, query | listed, repeatable=repeatable)


def send(caller: Caller, operation: Operation, request: Request, progress: Progress = silent) -> Any:
    """Send the request of an operation; returns its answer, of the type that the operation declares."""
    if operation.is_paged:
        return _typed(operation, caller._service.pages(request, operation.key))
    answer = caller._service.json(request)
    if operation.is_job:
        answer = follow(caller._service, answer["job"], progress)
    return _typed(operation, answer[operation.key] if operation.key else answer)


def _typed(operation: Operation, answer: Any) -> Any:
    module, _, name = operation.answer.removesuffix("[]").partition(":")
    if not name:
        return answer
    kind: type[Any] = getattr(import_module(module), name)
    return [decode(kind, item) for item in answer] if operation.answer.endswith("[]") else decode(kind, answer)


_ENDED = ("succeeded", "failed", "canceled")
#: How often a lost connection to a job is opened again without any news from it.
_RECONNECTS = 5


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
