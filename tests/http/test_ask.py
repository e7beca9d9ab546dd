"""POST /ask: the answer of `lake ask -o json`, about the tables that a key may see."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.model_server import KEY, Says, model_server
from tests.support.servers.service import Served, serving

from lakehouse.client import connect

_KEYS = {"answered", "reading", "sql", "columns", "rows", "snapshots", "chart", "reason", "choices"}


@pytest.fixture(scope="module")
def asked(served: Served) -> Served:
    """The service, with tables to ask about."""
    _fill(served)
    return served


def _fill(served: Served) -> None:
    rows = [{"id": 1, "city": "Rome"}, {"id": 2, "city": "Oslo"}, {"id": 3, "city": "Oslo"}]
    served.admin.insert("asked.visitors?key=id", rows)
    served.admin.insert("kept.salaries?key=id", [{"id": 1, "employee": "canary-name"}])


def test_a_question_is_answered_with_its_sql_and_snapshots(asked: Served) -> None:
    answer = asked.client("reader").post("/ask", {"question": "visitors by city"}).json()
    assert answer.keys() == _KEYS
    assert answer["answered"], answer["reason"]
    assert answer["columns"] == ["city", "visitors"]
    assert sorted(answer["rows"]) == [["Oslo", 2], ["Rome", 1]]
    assert list(answer["snapshots"]) == ["asked.visitors"]
    assert answer["chart"]["mark"] == "bar"


def test_a_follow_up_refers_to_the_conversation(asked: Served) -> None:
    body = {"question": "only Oslo", "conversation": ["visitors by city"]}
    assert asked.admin.post("/ask", body).json()["rows"] == [["Oslo", 2]]


def test_a_refusal_is_an_answer_with_a_reason(served: Served) -> None:
    answer = served.admin.post("/ask", {"question": "how many unicorns"})
    assert answer.status_code == 200
    assert not answer.json()["answered"]
    assert "unicorns" in answer.json()["reason"]


def test_a_key_of_a_namespace_learns_nothing_of_others(asked: Served) -> None:
    limited = asked.client("reader", namespaces=("asked",))
    for question in ("how many salaries", "list salaries", "how many rows in kept.salaries", "how many canary-name"):
        answer = limited.post("/ask", {"question": question})
        assert not answer.json()["answered"], question
        assert "employee" not in answer.text
        # The reason repeats the words of the question, and nothing else.
        assert "kept" not in answer.text.replace("kept.salaries", "")
    assert limited.post("/ask", {"question": "how many visitors"}).json()["rows"] == [[3]]


def test_the_client_returns_the_same_answer(asked: Served) -> None:
    with connect(asked.url, asked.admin.key) as lake:
        answer = lake.ask("visitors by city", run=True)
        assert answer.answered
        assert sorted(answer.rows) == [("Oslo", 2), ("Rome", 1)]
        assert not lake.ask("how many unicorns").answered


def test_a_change_needs_a_key_that_may_write_and_starts_from_main(asked: Served) -> None:
    body = {"question": "delete visitors with id over 2", "write": True}
    assert asked.client("reader").post("/ask", body).status_code == 403
    assert asked.client("agent", branches=("main",)).post("/ask", body).status_code == 403
    other = asked.client("agent", namespaces=("kept",)).post("/ask", body).json()
    assert not other["answered"] and "visitors" in other["reason"]
    shown = asked.client("agent").post("/ask", {**body, "run": False}).json()
    assert shown["sql"] == "DELETE FROM asked.visitors\nWHERE id > 2"
    assert asked.admin.post("/branches", {"name": "asked_from"}).status_code == 201
    assert asked.admin.post("/ask?branch=asked_from", body).status_code == 400
    assert asked.admin.ask("DELETE", "/branches/asked_from").status_code == 200


def test_a_model_learns_and_reads_no_more_than_the_key_may(tmp_path: Path) -> None:
    with model_server() as model:
        flags = {"agent.model": "openai:gpt-test", "agent.url": f"{model.url}/v1", "agent.key": KEY}
        with serving(tmp_path / "lake", **flags) as served:
            _fill(served)
            limited = served.client("reader", namespaces=("asked",))
            # A model that has heard of another namespace, and one that proposes a change.
            for sql in ("select employee from kept.salaries", "delete from asked.visitors"):
                model.script(Says({"reading": "x", "sql": sql}))
                answer = limited.post("/ask", {"question": "what is the most curious thing about visitors"})
                assert answer.status_code == 200
                assert not answer.json()["answered"], sql
                assert "canary-name" not in answer.text
                told = str(model.requests)
                assert "asked.visitors" in told
                assert "canary-name" not in told and "employee" not in told.replace(sql, "")
            model.script(Says({"reading": "The first city", "sql": "select min(city) as city from asked.visitors"}))
            answered = limited.post("/ask", {"question": "what is the most curious thing about visitors"}).json()
            assert answered["rows"] == [["Oslo"]], answered["reason"]
            assert list(answered["snapshots"]) == ["asked.visitors"]
            assert served.admin.rows("select count(*) as n from asked.visitors") == [{"n": 3}]
