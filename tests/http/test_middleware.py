"""What happens around every request: HEAD, slots of concurrency, nesting, uploads that were cut off."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import requests
from tests.support.servers.service import Client, Served, serving

from lakehouse.operations import OPERATIONS

PLAIN_GETS = [operation.path for operation in OPERATIONS if operation.method == "GET" and "{" not in operation.path]


@pytest.mark.parametrize("path", PLAIN_GETS)
def test_the_head_of_an_answer_is_that_of_the_answer(admin: Client, path: str) -> None:
    head, whole = (admin.ask(method, path, allow_redirects=False) for method in ("HEAD", "GET"))
    assert (head.status_code, head.content) == (whole.status_code, b"")
    assert head.headers["content-type"] == whole.headers["content-type"] if whole.content else True


def test_the_head_of_what_is_not_there_says_so(admin: Client) -> None:
    assert admin.ask("HEAD", "/tables/no.where").status_code == 404
    assert admin.ask("HEAD", "/query").status_code == 405, "there is no GET"


def test_one_request_after_the_other_never_finds_the_slot_taken(tmp_path: Path) -> None:
    with serving(tmp_path / "lake", concurrency=1) as served, requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {served.admin.key}"
        statuses = {session.get(f"{served.url}/whoami", timeout=30).status_code for _ in range(300)}
        answers = {
            session.post(f"{served.url}/query", json={"sql": "select 1 as n"}, timeout=30).status_code
            for _ in range(60)
        }
    assert (statuses, answers) == ({200}, {200})


@pytest.mark.parametrize("depth", [300, 3000, 30_000])
def test_deep_nesting_is_a_wrong_request(served: Served, admin: Client, depth: int) -> None:
    for sql in (
        "select " + "(" * depth + "1" + ")" * depth,
        "select " + "[" * depth + "]" * depth,
        "select * from " + "(select * from " * depth + "range(1)" + ")" * depth,
    ):
        answer = admin.post("/query", {"sql": sql})
        assert answer.status_code == 400, f"{sql[:40]}: {answer.text[:300]}"
        status = admin.post("/statements", {"statement": sql}).json()["status"]
        assert status["state"] == "FAILED"
    for chain in ("select 1 where " + "not " * depth + "true", "select " + "- " * depth + "1"):
        assert admin.post("/query", {"sql": chain}).status_code in (200, 400), "chains are bounded by the parser alone"
    nested = b"[" * depth + b"]" * depth
    for path in ("/query", "/branches", "/ingest/deep.t", "/ingest"):
        answer = admin.ask("POST", path, data=nested, headers={"Content-Type": "application/json"})
        assert answer.status_code == 400, f"{path}: {answer.text[:300]}"
    rows = json.loads(b'[{"id":' + b"[" * 60 + b"]" * 60 + b"}]")
    assert admin.post("/ingest/deep.t", rows).status_code < 500
    assert admin.rows("select 1 as n") == [{"n": 1}]


def test_text_with_brackets_is_not_nested(admin: Client) -> None:
    brackets = "(" * 500
    assert admin.rows(f"select length('{brackets}') as n") == [{"n": 500}]


def test_an_upload_that_was_cut_off_is_removed(tmp_path: Path) -> None:
    home = tmp_path / "lake"
    with serving(home) as served:
        folder = served.service.jobs.folder
    cut_off = folder / "0123456789abcdef"
    cut_off.mkdir(parents=True)
    (cut_off / "rows.csv").write_text("id\n1\n")
    with serving(home):
        assert not cut_off.exists()


def test_too_little_memory_is_507_and_names_the_setting(tmp_path: Path) -> None:
    with serving(tmp_path / "lake", worker_memory="24MB") as served:
        join = "select count(*) as n from range(3000000) a(id) join range(3000000) b(id) on a.id = b.id"
        answer = served.admin.post("/query", {"sql": f"{join} join range(3000000) c(id) on a.id + 1 = c.id"})
        assert (answer.status_code, answer.json()["error"]) == (507, "out_of_memory"), answer.text
        assert "serve.worker_memory" in answer.json()["hint"]
        assert "query.memory_limit" not in answer.text
        assert served.admin.rows("select 1 as n") == [{"n": 1}]
