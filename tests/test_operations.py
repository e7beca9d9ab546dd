"""Every operation is a route, a method of the client and a method of the lake, with the same parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from fastapi.routing import APIRoute
from pydantic import BaseModel

from lakehouse.client import RemoteLake
from lakehouse.client.refs import RemoteBranches, RemoteLog
from lakehouse.http import app
from lakehouse.lake import Lake
from lakehouse.lake.interface import LakeInterface
from lakehouse.operations import BY_LAKE_METHOD, BY_NAME, BY_ROUTE, OPERATIONS, Operation
from lakehouse.versioning.branches import Branches
from lakehouse.versioning.log import Log

#: The client's class for each class of the Python API.
REMOTE = {Lake: RemoteLake, LakeInterface: RemoteLake, Branches: RemoteBranches, Log: RemoteLog}
CLASSES = {kind.__name__: kind for kind in REMOTE}
#: Parameters of routes for lists, and of rows, which every client handles.
PAGING = {"page_size", "page_token"}
#: Methods whose parameter is a typed request: their fields are compared by the contract suite, which runs them.
TYPED = {"query", "ingest", "start_run", "ingest_rows"}
SERVED = [operation for operation in OPERATIONS if operation.lake]


def method_of(operation: Operation, classes: dict[str, type]) -> Callable[..., Any]:
    kind, _, name = operation.lake.partition(".")
    method: Callable[..., Any] = getattr(classes[kind], name)
    return method


def routes() -> dict[str, APIRoute]:
    """The routes of the service by the name of their function."""
    api = app.FastAPI()
    for module in app._ROUTES:
        module.routes.add_to(api)
    return {route.endpoint.__name__: route for route in api.routes if isinstance(route, APIRoute)}


def parameters_of(route: APIRoute) -> set[str]:
    """The names of a route's parameters: in its path, its query and its body."""
    given = route.dependant
    names = {field.alias for field in (*given.path_params, *given.query_params)}
    for field in given.body_params:
        body = field.field_info.annotation
        assert isinstance(body, type)
        assert issubclass(body, BaseModel)
        names |= {part.alias or name for name, part in body.model_fields.items()}
    return names


def test_names_and_routes_are_unique() -> None:
    assert len(BY_NAME) == len(BY_ROUTE) == len(OPERATIONS)
    assert len(BY_LAKE_METHOD) == len(SERVED)


def test_every_operation_but_the_description_itself_has_a_function() -> None:
    assert routes().keys() == BY_NAME.keys() - {"openapi"}


@pytest.mark.parametrize("operation", SERVED, ids=lambda operation: operation.name)
def test_a_method_of_the_client_has_the_parameters_of_the_lake_s(operation: Operation) -> None:
    local = method_of(operation, CLASSES)
    remote = method_of(operation, {name: REMOTE[kind] for name, kind in CLASSES.items()})
    here = {name: (part.kind, part.default) for name, part in inspect.signature(local).parameters.items()}
    there = {name: (part.kind, part.default) for name, part in inspect.signature(remote).parameters.items()}
    if operation.is_job:  # a job reports its progress
        here.pop("progress", None), there.pop("progress", None)
    assert there == here
    assert inspect.getdoc(remote)


@pytest.mark.parametrize(
    "operation",
    [operation for operation in SERVED if operation.name not in TYPED],
    ids=lambda operation: operation.name,
)
def test_a_route_has_the_parameters_of_the_lake_s_method(operation: Operation) -> None:
    taken = set(inspect.signature(method_of(operation, CLASSES)).parameters) - {"self", "progress"}
    expected = {operation.renames.get(name, name) for name in taken} | ({"branch"} if operation.on_branch else set())
    offered = parameters_of(routes()[operation.name]) - (PAGING if operation.is_paged else set())
    if operation.name == "tables":  # the client chooses among the described tables itself
        offered, expected = offered - {"details"}, expected - {"names"}
    assert offered == expected


def test_a_route_that_is_no_operation_cannot_be_declared() -> None:
    from lakehouse.http.registry import Routes

    undeclared = Routes("wrong")
    undeclared.operation()(lambda: "secrets")
    with pytest.raises(KeyError):
        undeclared.add_to(app.FastAPI())
