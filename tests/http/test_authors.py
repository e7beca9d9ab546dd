"""Commits over HTTP name the caller: every route that changes something is here, so that a new one fails until it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.servers.service import Client, ServedPipelines

from lakehouse.http import app as application
from lakehouse.operations import BY_ROUTE

assert application.create_app  # importing the application declares the routes

#: Routes that change something, but commit nothing.
WITHOUT_COMMITS = {
    ("DELETE", "/queries/{query_id}"),
    ("POST", "/ask"),
    ("POST", "/format"),
    ("POST", "/audit/query"),
    ("DELETE", "/branches/{name}"),
    ("POST", "/jobs/{job_id}/cancel"),
    ("POST", "/keys"),
    ("POST", "/mcp"),  # a tool that writes is a request of its own, with the same key
    ("DELETE", "/keys/{key_id}"),
    ("POST", "/keys/{key_id}/rotate"),
    ("POST", "/maintain"),
    ("POST", "/statements/{statement_id}/cancel"),
    ("DELETE", "/tags/{name}"),
    ("POST", "/verify"),
    ("POST", "/ui/sign-in"),
    ("POST", "/ui/sign-out"),
}
#: Tested where a Spark is warm (test_spark.py).
ON_SPARK = {("POST", "/tables/{table}/rollback")}


class Scene:
    """Ann, whose key has her name, and a table that somebody else has created."""

    def __init__(self, served: ServedPipelines, number: int) -> None:
        self.served, self.other, self.number = served, served.admin, number
        self.ann = served.client("writer", name="ann")
        self.table = f"authors.t{number}"
        self.other.insert(self.table, [{"id": 1}])

    def done(self, method: str, path: str, *args: Any, client: Client | None = None, **options: Any) -> Any:
        answer = (client or self.ann).ask(method, path, *args, **options)
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else {}

    def last(self, table: str = "") -> dict[str, Any]:
        """The newest commit to a table."""
        lines = self.done("GET", "/log?limit=1000")["commits"]
        return next(line for line in lines if (table or self.table) in line["tables"])


def ingest_rows(scene: Scene) -> dict[str, Any]:
    scene.done("POST", f"/ingest/{scene.table}", json=[{"id": 2}])
    return scene.last()


def ingest_files(scene: Scene) -> dict[str, Any]:
    answer = scene.done(
        "POST", "/ingest", data={"into": scene.table}, files={"file": ("a.csv", b"id\n5\n", "text/csv")}
    )
    assert scene.served.ended(scene.ann, answer["job"]["id"])["state"] == "succeeded"
    return scene.last()


def drop(scene: Scene) -> dict[str, Any]:
    scene.done("DELETE", f"/tables/{scene.table}")
    return scene.last()


def undrop(scene: Scene) -> dict[str, Any]:
    scene.done("DELETE", f"/tables/{scene.table}", client=scene.other)
    scene.done("POST", f"/tables/{scene.table}/undrop")
    return scene.last()


def sql(scene: Scene) -> dict[str, Any]:
    scene.done("POST", "/query", json={"sql": f"drop table {scene.table}"})
    return scene.last()


def statement(scene: Scene) -> dict[str, Any]:
    scene.done("POST", "/statements", json={"statement": f"drop table {scene.table}"})
    return scene.last()


def drop_in_the_catalog(scene: Scene) -> dict[str, Any]:
    scene.done("DELETE", f"/catalog/v1/namespaces/authors/tables/t{scene.number}")
    return scene.last()


def create(kind: str) -> Callable[[Scene], dict[str, Any]]:
    def create_ref(scene: Scene) -> dict[str, Any]:
        scene.done("POST", f"/{kind}", json={"name": f"ref{scene.number}"})
        refs: list[dict[str, Any]] = scene.done("GET", f"/{kind}")[kind]
        return next(ref for ref in refs if ref["name"] == f"ref{scene.number}")

    return create_ref


def merge(scene: Scene) -> dict[str, Any]:
    branch = f"ref{scene.number}"
    scene.done("POST", "/branches", client=scene.other, json={"name": branch})
    scene.done("POST", f"/ingest/{scene.table}?branch={branch}", client=scene.other, json=[{"id": 2}])
    scene.done("POST", f"/branches/{branch}/merge", json={})
    return scene.last()


def cherry_pick(scene: Scene) -> dict[str, Any]:
    scene.other.insert(scene.table, [{"id": 2}])
    commit = scene.last()["commit"]
    scene.done("POST", f"/log/{commit}/revert", client=scene.other, json={})
    scene.done("POST", f"/log/{commit}/cherry-pick", json={})
    return scene.last()


def revert(scene: Scene) -> dict[str, Any]:
    scene.other.insert(scene.table, [{"id": 2}])
    scene.done("POST", f"/log/{scene.last()['commit']}/revert", json={})
    return scene.last()


def run(scene: Scene) -> dict[str, Any]:
    assert scene.served.run(scene.ann)["state"] == "succeeded"
    return scene.last("steps.t")


def resume_run(scene: Scene) -> dict[str, Any]:
    failed = scene.served.run(scene.other, fails=True)
    answer = scene.done("POST", f"/runs/{failed['request']['id']}/resume")
    assert scene.served.ended(scene.ann, answer["job"]["id"])["state"] == "succeeded"
    return scene.last("steps.t")


def resume_job(scene: Scene) -> dict[str, Any]:
    failed = scene.served.run(scene.other, fails=True)
    scene.ann = scene.served.client("admin", name="ann")  # only an admin sees jobs of others
    resumed = scene.done("POST", f"/jobs/{failed['id']}/resume")
    assert scene.served.ended(scene.ann, resumed["id"])["state"] == "succeeded"
    return scene.last("steps.t")


CASES: dict[tuple[str, str], Callable[[Scene], dict[str, Any]]] = {
    ("POST", "/ingest/{table}"): ingest_rows,
    ("POST", "/ingest"): ingest_files,
    ("DELETE", "/tables/{table}"): drop,
    ("POST", "/tables/{table}/undrop"): undrop,
    ("POST", "/query"): sql,
    ("POST", "/statements"): statement,
    ("DELETE", "/catalog"): drop_in_the_catalog,
    ("POST", "/branches"): create("branches"),
    ("POST", "/tags"): create("tags"),
    ("POST", "/branches/{name}/merge"): merge,
    ("POST", "/log/{commit}/cherry-pick"): cherry_pick,
    ("POST", "/log/{commit}/revert"): revert,
    ("POST", "/pipelines/{pipeline}/runs"): run,
    ("POST", "/runs/{run}/resume"): resume_run,
    ("POST", "/jobs/{job_id}/resume"): resume_job,
}


def test_every_route_that_changes_something_is_listed() -> None:
    changing = {entry for entry in BY_ROUTE if entry[0] != "GET"}
    assert changing == (CASES.keys() - {("DELETE", "/catalog")}) | WITHOUT_COMMITS | ON_SPARK


@pytest.mark.parametrize("route", CASES, ids=" ".join)
def test_a_commit_names_the_caller(pipelined: ServedPipelines, route: tuple[str, str]) -> None:
    scene = Scene(pipelined, list(CASES).index(route))
    assert CASES[route](scene)["author"] == "ann"


def test_a_key_without_a_name_is_named_by_its_id(pipelined: ServedPipelines) -> None:
    scene = Scene(pipelined, len(CASES))
    scene.ann = pipelined.client("writer")
    assert ingest_rows(scene)["author"] in {key.id for key in pipelined.service.keys.all()}
