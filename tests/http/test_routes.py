"""Every route for every scope: the table is generated from the routes, so that a new one without a rule fails."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.routing import Mount
from tests.http.conftest import Client, Served, serve_app

from lakehouse.http import app as application
from lakehouse.http.app import create_api
from lakehouse.http.middleware import Gate
from lakehouse.http.principal import PUBLIC
from lakehouse.http.registry import RULES, Rule

assert application.create_app  # importing the application declares the routes

GRANTED = {
    "reader": {"public", "read"},
    "writer": {"public", "read", "write"},
    "agent": {"public", "read", "write"},
    "admin": {"public", "read", "write", "admin"},
}
DECLARED = sorted(RULES.values(), key=lambda rule: (rule.path, rule.method))
VALUES = {"{table}": "nobody.nothing", "{number}": "0"}


def path_of(rule: Rule) -> str:
    parts = [VALUES.get(part, "nothing") if part.startswith("{") else part for part in rule.path.split("/")]
    return "/".join(parts)


def ask(client: Client, rule: Rule, **options: Any) -> Any:
    body = {} if rule.method == "GET" else {"json": {}}
    return client.ask(rule.method, path_of(rule), **body, **options)


@pytest.fixture(scope="module")
def clients(served: Served) -> dict[str, Client]:
    return {scope: served.client(scope) for scope in GRANTED}


@pytest.mark.parametrize("scope", ["none", *GRANTED])
@pytest.mark.parametrize("rule", DECLARED, ids=lambda rule: f"{rule.method} {rule.path}")
def test_a_route_is_open_to_the_scopes_of_its_rule(
    served: Served, clients: dict[str, Client], rule: Rule, scope: str
) -> None:
    answer = ask(clients.get(scope, Client(served.url)), rule)
    if rule.needs in GRANTED.get(scope, {"public"}):
        assert answer.status_code != 401
        assert answer.status_code != 403 or "has the scope" not in answer.json()["message"]
    elif scope == "none":
        assert answer.status_code == 401
    else:
        assert answer.status_code == 403
        assert rule.needs in answer.json()["message"]


@pytest.mark.parametrize("rule", DECLARED, ids=lambda rule: f"{rule.method} {rule.path}")
def test_every_error_of_a_route_has_the_one_shape(served: Served, admin: Client, rule: Rule) -> None:
    headers = {"Accept": "image/png", "Content-Type": "application/octet-stream"}
    answers = [admin.ask(rule.method, path_of(rule), data=b"\xff{", headers=headers)]
    if rule.needs != PUBLIC:
        answers.append(ask(Client(served.url, "lake_0_wrong"), rule))
    for answer in answers:
        if answer.status_code < 400:
            continue
        assert answer.headers["content-type"] == "application/json"
        assert {"error", "message", "hint"} <= answer.json().keys()
        assert answer.status_code < 500, answer.text


def test_the_rules_cover_all_routes(served: Served) -> None:
    api = create_api(served.service)
    declared = {(method, route.path) for route in api.routes for method in getattr(route, "methods", None) or ()}
    mounted = {route.path for route in api.routes if isinstance(route, Mount)}
    assert {entry for entry in declared if entry[0] != "HEAD"} == set(RULES)
    assert mounted == {"/catalog"}


def test_a_route_without_a_rule_is_closed(served: Served) -> None:
    api = create_api(served.service)
    api.add_api_route("/forgotten", lambda: "secrets")
    with serve_app(Gate(api, served.service, api.router)) as url:
        answer = Client(url, served.admin.key).get("/forgotten")
    assert answer.status_code == 403
    assert "no rule" in answer.json()["message"]


def test_a_wrong_method_and_a_wrong_address_say_so(admin: Client) -> None:
    assert admin.ask("PUT", "/tables").status_code == 405
    assert admin.get("/nowhere").status_code == 404
    assert admin.get("/nowhere").json()["error"] == "not_found"
