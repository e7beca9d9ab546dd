"""Each request that the OpenAPI shows as an example is sent to a service; a route with a body and no entry here fails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.servers.service import Client, Served

#: The values in the path of each route, and the status or the error that its examples get. None of them starts Spark.
EXPECTED: dict[str, tuple[dict[str, str], int | str]] = {
    "/query": ({}, 200),
    "/statements": ({}, 200),
    "/audit/query": ({}, 200),
    "/keys": ({}, 201),
    "/ingest": ({}, "forbidden"),  # its file is not below serve.roots
    "/ingest/{table}": ({"table": "examples.rows"}, 200),
    "/tables/{table}/rollback": ({"table": "examples.leads"}, "bad_when"),  # the table is younger than the example
    "/pipelines/{pipeline}/runs": ({"pipeline": "nothing"}, "no_such_pipeline"),
    "/tables/{table}/undrop": ({"table": "examples.nothing"}, "not_dropped"),
    "/format": ({}, 200),
    "/ask": ({}, 200),
    "/maintain": ({}, 202),
    "/verify": ({}, 202),
    "/tags": ({}, 201),
    "/branches": ({}, 201),
    "/branches/{name}/merge": ({"name": "exp"}, 200),
    "/log/{commit}/cherry-pick": ({"commit": "99999"}, "no_such_commit"),
    "/log/{commit}/revert": ({"commit": "99999"}, "no_such_commit"),
}


@pytest.fixture
def admin(served: Served) -> Client:
    served.admin.insert("examples.leads?key=id", [{"id": 1, "name": "Ann"}])
    return served.admin


def examples(admin: Client) -> Iterator[tuple[str, str, Any]]:
    """Every example as (path, content type, body)."""
    openapi = admin.get("/openapi.json").json()
    for path, methods in openapi["paths"].items():
        for operation in methods.values():
            for kind, content in operation.get("requestBody", {}).get("content", {}).items():
                schema = content["schema"]
                if "$ref" in schema:
                    schema = openapi["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
                shown = content if "example" in content else schema
                for example in shown.get("examples", [shown["example"]] if "example" in shown else []):
                    yield path, kind, example


def test_every_example_gets_the_answer_that_it_promises(admin: Client) -> None:
    requests = list(examples(admin))
    assert {path for path, _, _ in requests} == set(EXPECTED)
    for path in EXPECTED:  # in this order: a tag and a branch of one name do not go together
        if path == "/branches":
            admin.ask("DELETE", "/tags/exp")
        for kind, body in [(kind, body) for route, kind, body in requests if route == path]:
            values, expected = EXPECTED[path]
            data = {"json": body} if kind == "application/json" else {"data": body.encode()}
            answer = admin.ask("POST", path.format(**values), headers={"Content-Type": kind}, **data)
            got = answer.status_code if answer.status_code < 400 else answer.json()["error"]
            assert got == expected, f"{path} {kind}: {answer.text}"
