"""Every operation for every scope: the cases come from the table of operations, and a route that is not in it fails."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.routing import Mount
from tests.support.servers.service import Client, Served, serve_app

from lakehouse.http.app import create_api
from lakehouse.http.middleware import Gate
from lakehouse.operations import OPERATIONS, PUBLIC, Operation

GRANTED = {
    "reader": {"public", "read"},
    "writer": {"public", "read", "write"},
    "agent": {"public", "read", "write"},
    "admin": {"public", "read", "write", "admin"},
}
DECLARED = sorted(OPERATIONS, key=lambda operation: (operation.path, operation.method))
VALUES = {"{table}": "nobody.nothing", "{number}": "0"}


def path_of(operation: Operation) -> str:
    parts = [VALUES.get(part, "nothing") if part.startswith("{") else part for part in operation.path.split("/")]
    return "/".join(parts)


def ask(client: Client, operation: Operation, **options: Any) -> Any:
    body = {} if operation.method == "GET" else {"json": {}}
    return client.ask(operation.method, path_of(operation), allow_redirects=False, **body, **options)


@pytest.fixture(scope="module")
def clients(served: Served) -> dict[str, Client]:
    return {scope: served.client(scope) for scope in GRANTED}


@pytest.mark.parametrize("scope", ["none", *GRANTED])
@pytest.mark.parametrize("operation", DECLARED, ids=lambda operation: f"{operation.method} {operation.path}")
def test_a_route_is_open_to_the_scopes_of_its_operation(
    served: Served, clients: dict[str, Client], operation: Operation, scope: str
) -> None:
    answer = ask(clients.get(scope, Client(served.url)), operation)
    if operation.needs in GRANTED.get(scope, {"public"}):
        assert answer.status_code != 401
        assert answer.status_code != 403 or "has the scope" not in answer.json()["message"]
    elif scope == "none":
        assert answer.status_code == 401
    else:
        assert answer.status_code == 403
        assert operation.needs in answer.json()["message"]


@pytest.mark.parametrize("operation", DECLARED, ids=lambda operation: f"{operation.method} {operation.path}")
def test_every_error_of_a_route_has_the_one_shape(served: Served, admin: Client, operation: Operation) -> None:
    headers = {"Accept": "image/png", "Content-Type": "application/octet-stream"}
    answers = [admin.ask(operation.method, path_of(operation), data=b"\xff{", headers=headers)]
    if operation.name == "mcp":  # the protocol has errors of its own, once the gate lets a request through
        assert 400 <= answers.pop().status_code < 500
    if operation.needs != PUBLIC:
        answers.append(ask(Client(served.url, "lake_0_wrong"), operation))
    for answer in answers:
        if answer.status_code < 400:
            continue
        assert answer.headers["content-type"] == "application/json"
        assert {"error", "message", "hint"} <= answer.json().keys()
        assert answer.status_code < 500, answer.text


def test_every_operation_has_a_route_and_every_route_an_operation(served: Served) -> None:
    api = create_api(served.service)
    declared = {(method, route.path) for route in api.routes for method in getattr(route, "methods", None) or ()}
    mounted = {route.path for route in api.routes if isinstance(route, Mount)}
    assert {entry for entry in declared if entry[0] != "HEAD"} == {operation.route for operation in OPERATIONS}
    assert mounted == {"/catalog"}


def test_a_route_that_is_no_operation_is_closed(served: Served) -> None:
    api = create_api(served.service)
    api.add_api_route("/forgotten", lambda: "secrets")
    with serve_app(Gate(api, served.service, api.router)) as url:
        answer = Client(url, served.admin.key).get("/forgotten")
    assert answer.status_code == 403
    assert "not in the table of operations" in answer.json()["message"]


def test_a_wrong_method_and_a_wrong_address_say_so(admin: Client) -> None:
    assert admin.ask("PUT", "/tables").status_code == 405
    assert admin.get("/nowhere").status_code == 404
    assert admin.get("/nowhere").json()["error"] == "not_found"
