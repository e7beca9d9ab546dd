"""The OpenAPI description is true: its examples work, and made-up requests get documented answers."""

from __future__ import annotations

from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance
from tests.support.repetitions import repetitions
from tests.support.servers.service import Client, Served


@pytest.fixture(scope="module")
def openapi(served: Served) -> dict[str, Any]:
    found: dict[str, Any] = requests.get(f"{served.url}/openapi.json", timeout=60).json()
    return found


def examples(openapi: dict[str, Any], path: str, method: str) -> list[Any]:
    content = openapi["paths"][path][method]["requestBody"]["content"]["application/json"]
    if "example" in content:
        return [content["example"]]
    schema = openapi["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]
    return list(schema.get("examples", [schema.get("example")]))


def test_every_route_with_a_body_has_an_example_and_every_route_a_description(openapi: dict[str, Any]) -> None:
    for path, methods in openapi["paths"].items():
        for method, operation in methods.items():
            assert operation["description"], f"{method} {path}"
            if "requestBody" in operation and path != "/ingest":
                assert all(examples(openapi, path, method)), f"{method} {path} has no example"


def test_the_examples_work(served: Served, openapi: dict[str, Any], admin: Client) -> None:
    admin.insert("example.t", [{"id": 1}])
    for path, names in {
        "/query": {},
        "/branches": {},
        "/statements": {},
        "/audit/query": {},
        "/keys": {},
        "/branches/{name}/merge": {"name": "exp"},
        "/ingest/{table}": {"table": "example.u"},
    }.items():
        for example in examples(openapi, path, "post"):
            answer = admin.post(path.format(**names), example)
            assert answer.status_code in (200, 201), f"{path}: {answer.text}"


@pytest.mark.faults
def test_made_up_requests_get_documented_answers(served: Served, openapi: dict[str, Any]) -> None:
    # Not those that would start work on Spark or end the keys of other tests.
    skipped = {"/tables/{table}/rollback", "/pipelines/{pipeline}/runs", "/ingest", "/jobs/{job_id}/events"}
    paths = {path: item for path, item in openapi["paths"].items() if path not in skipped and "/keys" not in path}
    schema = schemathesis.openapi.from_dict({**openapi, "paths": paths})
    schema.config.update(base_url=served.url)
    headers = {"Authorization": f"Bearer {served.client('writer', namespaces=['made_up']).key}"}
    for result in schema.get_all_operations():
        operation = result.ok()

        @settings(
            max_examples=repetitions(2, 50),
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
            derandomize=repetitions(True, False),  # make test tries the same requests each time
        )
        @operation_strategy(operation)
        def check(case: Any) -> None:
            case.call_and_validate(
                headers=headers,
                timeout=60,
                checks=[not_a_server_error, status_code_conformance, response_schema_conformance],
            )

        check()


def operation_strategy(operation: Any) -> Any:
    from hypothesis import given

    return given(operation.as_strategy())
