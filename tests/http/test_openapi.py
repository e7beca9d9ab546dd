"""The OpenAPI description is true: its examples work, and made-up requests get documented answers."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings
from jsonschema import Draft202012Validator
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance
from tests.support.openapi_client import generate
from tests.support.repetitions import repetitions
from tests.support.servers.service import Client, Served, ServedPipelines

from lakehouse.operations import BY_ROUTE, PUBLIC, Operation


@pytest.fixture(scope="module")
def openapi(served: Served) -> dict[str, Any]:
    document: dict[str, Any] = requests.get(f"{served.url}/openapi.json", timeout=60).json()
    return document


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


def operations(openapi: dict[str, Any]) -> Iterator[tuple[Operation, dict[str, Any]]]:
    for path, methods in openapi["paths"].items():
        for method, described in methods.items():
            yield BY_ROUTE[method.upper(), path], described


def answer_schema(described: dict[str, Any]) -> Any:
    success = next(status for status in described["responses"] if status.startswith("2"))
    return described["responses"][success]["content"].get("application/json", {}).get("schema")


def test_a_generated_client_has_names_keys_and_types(openapi: dict[str, Any]) -> None:
    assert openapi["servers"] == [{"url": "/", "description": "Where this description is."}]
    assert openapi["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    names = [described["operationId"] for _, described in operations(openapi)]
    assert len(set(names)) == len(names)
    assert {"runQuery", "listTables", "ingestRows", "createBranch", "getJob"} <= set(names)
    for operation, described in operations(openapi):
        assert re.fullmatch(r"[a-z]+([A-Z][a-z]*)+", described["operationId"]), described["operationId"]
        assert described["security"] == ([] if operation.needs == PUBLIC else [{"key": []}])
        headers = [parameter["name"] for parameter in described.get("parameters", ()) if parameter["in"] == "header"]
        assert headers == (["Idempotency-Key"] if operation.once else [])


#: Uses of the generated client: the first function is right, each line of the second is wrong.
USES = """
from lake_client import Client

def right(client: Client, word: str) -> tuple[list[dict[str, object]], int]:
    client.create_branch({"name": word}, idempotency_key=word)
    answer = client.run_query({"sql": "select 7 as n", "limit": 5})
    return answer["rows"], answer["row_count"]

def wrong(client: Client) -> None:
    client.run_query({"sqll": "select 7"})
    client.run_query({"sql": 7})
    client.run_query({"sql": "select 7"})["row"]
    client.get_job(7)
    client.list_tables(idempotency_key="x")
"""
WRONG = [(0, "typeddict-item"), (0, "typeddict-unknown-key"), (1, "typeddict-item")]
WRONG += [(2, "typeddict-item"), (3, "arg-type"), (4, "call-arg")]


def test_a_generated_client_type_checks_and_works(
    served: Served, openapi: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lake_client.py").write_text(generate(openapi))
    (tmp_path / "uses.py").write_text(USES)
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "lake_client.py", "uses.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    errors = re.findall(r"^(\w+\.py):(\d+): error: .*\[(.*)\]$", checked.stdout, re.MULTILINE)
    first = USES.splitlines().index("def wrong(client: Client) -> None:") + 2
    assert errors == [("uses.py", str(first + line), code) for line, code in WRONG], checked.stdout
    monkeypatch.syspath_prepend(tmp_path)
    uses = importlib.import_module("uses")
    client = uses.Client(served.url, served.admin.key)
    assert uses.right(client, "generated") == ([{"n": 7}], 1)
    assert "generated" in [branch["name"] for branch in client.list_branches()["branches"]]


def test_every_answer_has_a_shape(openapi: dict[str, Any]) -> None:
    Draft202012Validator.check_schema({"$defs": openapi["components"]["schemas"]})
    for operation, described in operations(openapi):
        schema = answer_schema(described)
        if schema is None:  # metrics, events and pages are text
            continue
        named = schema["$ref"].rpartition("/")[2] if "$ref" in schema else ""
        shape = openapi["components"]["schemas"][named] if named else schema
        assert shape["type"] == "object" and shape["properties"], operation.name


def test_answers_have_the_shape_that_is_described(openapi: dict[str, Any], pipelined: ServedPipelines) -> None:
    admin = pipelined.admin
    run = pipelined.run(admin)
    admin.insert("shapes.t", [{"id": 1}])
    for path, body in (("/branches", {"name": "shaped"}), ("/tags", {"name": "shape"})):
        admin.post(path, body)
    statement = admin.post("/statements", {"statement": "select 1 as n"}).json()["statement_id"]
    commit = admin.get("/log").json()["commits"][0]["commit"]
    values = {
        "commit": commit,
        "table": "shapes.t",
        "name": "shaped",
        "job_id": run["id"],
        "run": run["result"]["id"],
        "number": 0,
    }
    file = admin.get("/tables/shapes.t/inspect").json()["path"]
    checked = set()
    for operation, described in operations(openapi):
        if operation.method != "GET" or operation.name in ("job_events", "metrics", "docs"):
            continue
        path = operation.path.format(**values, statement_id=statement)
        answer = admin.get(path, params={"when": "now", "start": "now", "path": file})
        assert answer.status_code == 200, f"{path}: {answer.text}"
        schema = {**answer_schema(described), "components": openapi["components"]}
        Draft202012Validator(schema).validate(answer.json())
        checked.add(operation.name)
    assert {
        "tables",
        "describe",
        "history",
        "report",
        "runs",
        "run_record",
        "jobs",
        "branches",
        "log",
        "diff",
    } <= checked


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
