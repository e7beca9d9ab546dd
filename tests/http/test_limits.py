"""Route x scope x limit: every route, those of the catalog included, for keys that may not use what a request names.

The routes come from the table of operations and from the list that the catalog sends to its clients. A new one has no outcome
here, and fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
from tests.support.servers.service import PIPELINE, Client, Served, serving, wait_for

from lakehouse.core.refs import run_branch
from lakehouse.operations import ADMIN, OPERATIONS, PUBLIC, READ, WRITE, Operation

SCOPES = {"reader": {READ}, "writer": {READ, WRITE}, "agent": {READ, WRITE}, "admin": {READ, WRITE, ADMIN}}
LIMITS: dict[str, dict[str, list[str]]] = {"namespace": {"namespaces": ["own"]}, "branch": {"branches": ["mine"]}}
#: In no request, so an answer that has one of them tells what the key may not know.
_OF_TABLES, _OF_BRANCHES = ("canary-value", "second_table"), ("second_branch", "second_tag")
UNKNOWN = {"namespace": _OF_TABLES, "branch": (*_OF_TABLES, *_OF_BRANCHES)}
REFUSED, NOT_THERE, FILTERED = 403, 404, 200

#: What a request for the hidden table or branch ends with: for a key of a namespace, and for one of a branch.
OUTCOMES: dict[str, tuple[int, int]] = {
    "ui_home": (FILTERED, REFUSED),
    "ui_table": (REFUSED, REFUSED),
    "ui_sql": (FILTERED, REFUSED),
    "ui_branches": (FILTERED, FILTERED),
    "ui_branch": (FILTERED, REFUSED),
    "ui_runs": (FILTERED, FILTERED),
    "ui_run": (REFUSED, REFUSED),
    "ui_lineage": (FILTERED, FILTERED),
    "ui_health": (FILTERED, REFUSED),
    "ui_ingest": (FILTERED, REFUSED),
    "ui_ask": (FILTERED, REFUSED),
    "ui_sign_out": (204, 204),
    "metrics": (FILTERED, FILTERED),
    "whoami": (FILTERED, FILTERED),
    "mcp": (FILTERED, FILTERED),  # the answer has the error of the request that the tool makes, with the same key
    "audit": (REFUSED, REFUSED),
    "query_audit": (REFUSED, REFUSED),
    "keys": (REFUSED, REFUSED),
    "create_key": (REFUSED, REFUSED),
    "revoke_key": (REFUSED, REFUSED),
    "rotate_key": (REFUSED, REFUSED),
    "query": (REFUSED, REFUSED),
    "queries": (FILTERED, FILTERED),
    "cancel_query": (NOT_THERE, NOT_THERE),
    "create_statement": (FILTERED, FILTERED),  # it fails, and says so in its state
    "statement_state": (NOT_THERE, NOT_THERE),
    "statement_chunk": (NOT_THERE, NOT_THERE),
    "cancel_statement": (NOT_THERE, NOT_THERE),
    "format_sql": (FILTERED, FILTERED),  # it reads no table
    "ask": (FILTERED, REFUSED),  # refused in its answer: it knows no such table
    "tables": (FILTERED, REFUSED),
    "dropped": (FILTERED, REFUSED),
    "describe": (REFUSED, REFUSED),
    "schema": (REFUSED, REFUSED),
    "history": (REFUSED, REFUSED),
    "inspect": (REFUSED, REFUSED),
    "inspect_file": (REFUSED, REFUSED),
    "travel": (REFUSED, REFUSED),
    "diff": (REFUSED, REFUSED),
    "report": (REFUSED, REFUSED),
    "rollback": (REFUSED, REFUSED),
    "drop": (REFUSED, REFUSED),
    "undrop": (REFUSED, REFUSED),
    "ingest": (REFUSED, REFUSED),
    "ingest_rows": (REFUSED, REFUSED),
    "jobs": (FILTERED, FILTERED),
    "job": (NOT_THERE, NOT_THERE),
    "job_events": (NOT_THERE, NOT_THERE),
    "cancel_job": (NOT_THERE, NOT_THERE),
    "resume_job": (NOT_THERE, NOT_THERE),
    "pipelines": (FILTERED, FILTERED),
    "start_run": (REFUSED, REFUSED),
    "runs": (FILTERED, FILTERED),
    "run_record": (REFUSED, REFUSED),
    "run_log": (REFUSED, REFUSED),
    "resume_run": (REFUSED, REFUSED),
    "health": (FILTERED, REFUSED),
    "maintain": (REFUSED, REFUSED),
    "verify": (REFUSED, REFUSED),
    "branches": (FILTERED, FILTERED),
    "create_branch": (201, REFUSED),  # of all tables; a key of a namespace still sees its own only
    "diff_branch": (FILTERED, REFUSED),
    "merge": (REFUSED, REFUSED),
    "drop_branch": (REFUSED, REFUSED),
    "tags": (FILTERED, FILTERED),
    "create_tag": (201, REFUSED),
    "drop_tag": (REFUSED, REFUSED),
    "log": (FILTERED, REFUSED),
    "cherry_pick": (REFUSED, REFUSED),
    "preview_revert": (REFUSED, REFUSED),
    "revert": (REFUSED, REFUSED),
}
LIMITED = [operation for operation in OPERATIONS if operation.needs != PUBLIC]


@dataclass(frozen=True)
class Hidden:
    """A lake with what the keys may not use: `hidden.t`, the branch `theirs` with a change of it, a tag, a job, a run, …"""

    served: Served
    ids: dict[str, str]
    clients: dict[tuple[str, str], Client]

    def state(self) -> dict[str, Any]:
        """What nobody may change."""
        admin = self.served.admin
        names = ("hidden.t", "hidden.second_table")
        return {
            "histories": [
                admin.get(f"/tables/{name}/history", params={"branch": branch}).json()
                for name in names
                for branch in ("", "theirs")
            ],
            "branches": [ref["name"] for ref in admin.get("/branches").json()["branches"]],
            "tags": {ref["name"] for ref in admin.get("/tags").json()["tags"]} & {"marked", "second_tag"},
            "keys": {(key["id"], key["state"]) for key in admin.get("/keys").json()["keys"]},
        }


@pytest.fixture(scope="module")
def hidden(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hidden]:
    folder: Path = tmp_path_factory.mktemp("hidden")
    (folder / "lake.toml").write_text('pipelines = ["hidden_pipelines"]\n')
    (folder / "hidden_pipelines.py").write_text(PIPELINE)
    with serving(folder / "lake", concurrency=0) as served:
        yield _filled(served)


def _filled(served: Served) -> Hidden:
    admin = served.admin
    admin.insert("own.t", [{"id": 1}])
    admin.post("/branches", {"name": "mine"})
    for name in ("hidden.t", "hidden.second_table"):
        admin.insert(name, [{"id": 1, "text": "canary-value"}])
    for name in ("theirs", "second_branch"):
        admin.post("/branches", {"name": name})
        admin.insert(f"hidden.t?branch={name}", [{"id": 2, "text": "canary-value"}])
    for name in ("marked", "second_tag"):
        admin.post("/tags", {"name": name})
    started = admin.post("/pipelines/steps/runs", {"light": True}).json()
    job = started["job"]["id"]
    wait_for(lambda: admin.get(f"/jobs/{job}").json()["state"] == "succeeded")
    statement = admin.post("/statements", {"statement": "select * from hidden.t"}).json()["statement_id"]
    commits = admin.get("/log", params={"table": "hidden.t"}).json()["commits"]
    clients = {(scope, limit): served.client(scope, **LIMITS[limit]) for scope in SCOPES for limit in LIMITS}
    key = admin.get("/keys").json()["keys"][0]["id"]
    ids = {
        "job_id": job,
        "run": started["run"],
        "statement_id": statement,
        "number": "0",
        "key_id": key,
        "query_id": "other",
    }
    return Hidden(served, {**ids, "commit": str(commits[0]["commit"]), "pipeline": "steps", "name": "theirs"}, clients)


def body_of(operation: Operation, table: str, branch: str) -> Any:
    """The body of a request for a table of a branch."""
    bodies: dict[str, Any] = {
        "query": {"sql": f"select * from {table}", "branch": branch},
        "create_statement": {"statement": f"select * from {table}", "branch": branch},
        "format_sql": {"sql": f"select * from {table}"},
        "ask": {"question": f"how many rows in {table}"},
        "query_audit": {"sql": "select * from audit"},
        "mcp": {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "query", "arguments": {"sql": f"select * from {table}", "branch": branch}},
        },
        "create_key": {"scope": "admin"},
        "rollback": {"to": "now"},
        "ingest": {"into": table, "branch": branch, "sources": ["/etc/hosts"]},
        "ingest_rows": [{"id": 7}],
        "create_branch": {"name": "new_branch", "from": branch or "main"},
        "create_tag": {"name": "new_tag", "from": branch or "main"},
    }
    return bodies.get(operation.name, {})


def ask(hidden: Hidden, client: Client, operation: Operation, limit: str, branch: str) -> requests.Response:
    """A request for what a key may not use: the hidden table on main, or the own table on another branch."""
    table = "hidden.t" if limit == "namespace" else "own.t"
    name = "marked" if operation.path.startswith("/tags/") else "theirs"
    values = {**hidden.ids, "table": table, "name": name}
    parts = [values[part[1:-1]] if part.startswith("{") else part for part in operation.path.split("/")]
    query = {"when": "now", "start": "now", "path": "any.avro", **({"branch": branch} if branch else {})}
    body = {} if operation.method == "GET" else {"json": body_of(operation, table, branch)}
    return client.ask(operation.method, "/".join(parts), params=query, **body)


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("scope", SCOPES)
def test_every_route_keeps_the_limits_of_a_key(hidden: Hidden, scope: str, limit: str) -> None:
    before, client = hidden.state(), hidden.clients[scope, limit]
    for operation in LIMITED:
        expected = OUTCOMES[operation.name][list(LIMITS).index(limit)]
        for branch in ("",) if limit == "namespace" else ("", "theirs", "THEIRS"):
            answer = ask(hidden, client, operation, limit, branch)
            granted = operation.needs in SCOPES[scope]
            assert answer.status_code == (expected if granted else REFUSED), f"{operation.name}: {answer.text}"
            assert not any(name in answer.text for name in UNKNOWN[limit]), f"{operation.name}: {answer.text}"
            created = answer.json().get("name") if answer.status_code == 201 else None
            if created:
                kind = "branches" if operation.name == "create_branch" else "tags"
                assert hidden.served.admin.ask("DELETE", f"/{kind}/{created}").status_code == 200
    assert hidden.state() == before


def test_every_operation_has_an_outcome() -> None:
    assert OUTCOMES.keys() == {operation.name for operation in LIMITED}


def test_a_statement_that_outlives_its_request_keeps_the_limits(hidden: Hidden) -> None:
    for limit, body in (
        ("namespace", {"statement": "select * from hidden.t"}),
        ("branch", {"statement": "select * from own.t"}),
        ("branch", {"statement": "select * from own.t version as of 'marked'", "branch": "mine"}),
    ):
        status = hidden.clients["reader", limit].post("/statements", body).json()["status"]
        assert (status["state"], status["error"]["error"]) == ("FAILED", "forbidden")


def test_a_tag_of_another_branch_is_not_a_way_around(hidden: Hidden) -> None:
    """A tag has the state of main, which a key for another branch may not read."""
    client = hidden.clients["writer", "branch"]
    for path in (
        "travel?when=marked",
        "travel?when=Marked",
        "inspect?when=marked",
        "inspect/file?path=a&when=marked",
        "diff?start=marked",
        "report?start=marked",
    ):
        assert client.get(f"/tables/own.t/{path}&branch=mine").status_code == 403
    for body in (
        {"sql": "select * from own.t", "as_of": "marked"},
        {"sql": "select * from own.t version as of 'marked'"},
    ):
        assert client.post("/query", {**body, "branch": "mine"}).status_code == 403
    limited = hidden.served.client("writer", branches=["mine", "fresh"])
    assert limited.post("/branches", {"name": "fresh", "from": "marked"}).status_code == 403
    assert client.get("/tags").json()["tags"] == []


def test_a_key_of_a_namespace_drops_its_own_tags_and_sees_no_run_of_others(hidden: Hidden) -> None:
    tag = run_branch(hidden.ids["run"])
    assert tag in [ref["name"] for ref in hidden.served.admin.get("/tags").json()["tags"]]
    for scope in ("writer", "agent"):
        client = hidden.clients[scope, "namespace"]
        assert tag not in client.get("/tags").text
        assert client.post("/tags", {"name": "of_mine"}).status_code == 201
        assert client.ask("DELETE", "/tags/of_mine").status_code == 200
        assert client.ask("DELETE", "/tags/marked").status_code == 403


def test_a_hint_names_nothing_that_a_key_may_not_know(hidden: Hidden) -> None:
    limited = hidden.served.client("writer", branches=["mine", "second_branc"], namespaces=["own"])
    for answer in (
        limited.get("/tables", params={"branch": "second_branc"}),
        limited.post("/query", {"sql": "select 1", "branch": "second_branc"}),
        limited.ask("DELETE", "/branches/second_branc"),
        limited.get("/tables/own.second_table", params={"branch": "mine"}),
        limited.post("/query", {"sql": "select * from own.second_tabl", "branch": "mine"}),
        limited.get("/runs/nothing"),
    ):
        assert answer.status_code in (403, 404), answer.text
        asked = answer.text.replace("own.second_table", "")
        assert not any(name in asked for name in UNKNOWN["branch"]), answer.text


def test_a_key_of_a_namespace_drops_a_branch_of_its_own_changes(hidden: Hidden) -> None:
    writer = hidden.clients["writer", "namespace"]
    assert writer.post("/branches", {"name": "of_writer"}).status_code == 201
    writer.insert("own.t?branch=of_writer", [{"id": 5}])
    assert writer.ask("DELETE", "/branches/of_writer").status_code == 200


# ---- the catalog ------------------------------------------------------------------------------------------------

_SOURCE = {"namespace": ["{namespace}"], "name": "t"}
#: The bodies of routes whose address names no namespace.
BODIES: dict[str, Any] = {
    "POST namespaces": {"namespace": ["{namespace}"]},
    "POST tables/rename": {"source": _SOURCE, "destination": {**_SOURCE, "name": "u"}},
    "POST views/rename": {"source": _SOURCE, "destination": {**_SOURCE, "name": "u"}},
    "POST transactions/commit": {"table-changes": [{"identifier": _SOURCE, "updates": [], "requirements": []}]},
}
LISTS = ("GET namespaces",)


def endpoints(admin: Client) -> list[tuple[str, str]]:
    listed = admin.get("/catalog/v1/config").json()["endpoints"]
    return [(method, path.removeprefix("/v1/{prefix}/")) for method, path in (line.split() for line in listed)]


def in_namespace(value: Any, namespace: str) -> Any:
    """A body for a namespace."""
    if isinstance(value, dict):
        return {name: in_namespace(part, namespace) for name, part in value.items()}
    if isinstance(value, list):
        return [in_namespace(part, namespace) for part in value]
    return value.replace("{namespace}", namespace) if isinstance(value, str) else value


def catalog_answer(client: Client, method: str, template: str, branch: str, namespace: str) -> requests.Response:
    path = template.replace("{namespace}", namespace).replace("{table}", "t").replace("{view}", "t")
    body = {} if "{namespace}" in template or f"{method} {template}" in LISTS else BODIES[f"{method} {template}"]
    sent = {} if method in ("GET", "HEAD", "DELETE") else {"json": in_namespace(body, namespace)}
    return client.ask(method, f"/catalog/v1/{branch}/{path}", **sent)


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("scope", SCOPES)
def test_a_route_of_the_catalog_keeps_the_limits_of_a_key(hidden: Hidden, scope: str, limit: str) -> None:
    before, client, listed = hidden.state(), hidden.clients[scope, limit], endpoints(hidden.served.admin)
    assert len(listed) >= 25
    namespace, branches = ("hidden", ["main"]) if limit == "namespace" else ("own", ["main", "theirs", "Theirs"])
    for method, template in listed:
        for branch in branches:
            answer = catalog_answer(client, method, template, branch, namespace)
            if limit == "namespace" and f"{method} {template}" in LISTS:
                assert answer.json()["namespaces"] == [["own"]]
                continue
            assert answer.status_code == 403, f"{method} {template}: {answer.text}"
            if method != "HEAD":
                assert answer.json()["error"]["type"] == "ForbiddenException", answer.text
            assert not any(name in answer.text for name in UNKNOWN[limit]), answer.text
    assert hidden.state() == before


def test_a_run_s_branch_is_not_of_a_key_of_another(hidden: Hidden) -> None:
    branch = run_branch(hidden.ids["run"])
    assert hidden.clients["reader", "branch"].get(f"/catalog/v1/{branch}/namespaces").status_code == 403
