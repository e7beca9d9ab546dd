"""Methods of the Python API as requests: built from the table of operations and the signature of the method."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar
from urllib.parse import quote

from lakehouse.client.decode import decode
from lakehouse.client.jobs import follow
from lakehouse.client.messages import Request, as_json
from lakehouse.client.transport import Transport
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
        sent = str(value) if isinstance(value, TableName) else value
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
