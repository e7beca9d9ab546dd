"""Changes in plain words: made on a branch of their own, for what is understood in full only."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.agent_eval import NOON
from tests.support.model_server import KEY, Says, model_server

from lakehouse.agent import AgentSettings
from lakehouse.agent.advice import AdvisedAsker
from lakehouse.agent.ask import Asker, Clock
from lakehouse.agent.change import BranchDiff
from lakehouse.agent.model import RemoteModel
from lakehouse.core.errors import NotSupportedError
from lakehouse.lake import Lake
from lakehouse.lake.questions import LocalReader, local_writer


class NoWriter:
    """For requests that are only read."""

    def change(self, sql: str, message: str) -> BranchDiff:
        raise AssertionError("nothing is to be changed")


@pytest.mark.parametrize(
    ("request_text", "sql"),
    [
        ("delete leads with score over 8", "DELETE FROM crm.leads\nWHERE score > 8"),
        (
            "delete the orders of 2026-01-14",
            "DELETE FROM demo.orders\nWHERE `at` >= TIMESTAMP '2026-01-14 00:00:00Z' AND `at` < TIMESTAMP '2026-01-15 00:00:00Z'",
        ),
        ("remove trips paid in cash", "DELETE FROM silver.stg_yellow_trips\nWHERE payment_type = 'cash'"),
        (
            'set city to "New York" for leads without a city',
            "UPDATE crm.leads\nSET city = 'New York'\nWHERE city IS NULL",
        ),
        ("set score to 5 for leads with score over 8", "UPDATE crm.leads\nSET score = 5\nWHERE score > 8"),
        (
            'set city to "x\' or 1=1 --" for leads with score over 8',
            "UPDATE crm.leads\nSET city = 'x\\' or 1=1 --'\nWHERE score > 8",
        ),
    ],
)
def test_rows_that_are_named_are_deleted_or_set(asker: Asker, request_text: str, sql: str) -> None:
    answer = asker.change(request_text, NoWriter(), run=False)
    assert answer.sql == sql, answer.reason


@pytest.mark.parametrize(
    ("request_text", "reason"),
    [
        ("delete all leads", "All rows would change"),
        ("delete leads with scoer over 8", "meant to be"),
        ("delete the top 3 leads", ""),
        ("delete orders of customers in London", ""),
        ("delete leads with score over 8 as of yesterday", ""),
        ("delete leads with score over 8; drop table crm.leads", "I do not know"),
        ("set id to 5 for leads with score over 8", "key"),
        ("set score to high for leads with score over 8", "no value of score"),
        ("set colour to red for leads with score over 8", "no one column"),
        ("drop table crm.leads", "I can delete rows"),
        ("how many leads", "I can delete rows"),
    ],
)
def test_a_change_that_is_not_clear_is_refused(asker: Asker, request_text: str, reason: str) -> None:
    answer = asker.change(request_text, NoWriter())
    assert not answer.answered, answer.sql
    assert reason in answer.reason and answer.reason


def test_a_question_without_leave_to_write_never_changes_anything(asker: Asker) -> None:
    assert not asker.ask("delete leads with score over 8").answered


def test_a_change_does_not_start_from_a_branch(demo_lake: Lake) -> None:
    demo_lake.refs.branches.create("started")
    with demo_lake.branch("started") as branch, pytest.raises(NotSupportedError, match="branch of its own"):
        branch.ask("delete leads with score over 8", write=True)
    demo_lake.refs.branches.drop("started")


# ---- on Spark, which writes ------------------------------------------------------------------------------------------


@pytest.fixture
def guests(shared_lake: Lake, namespace: str) -> Iterator[str]:
    """A table whose name no other test has."""
    table = f"{namespace}.agentguests"
    rows = [{"id": 1, "city": "Rome", "stars": 3}, {"id": 2, "city": "Oslo", "stars": 9}]
    shared_lake.ingest_rows(rows, table, key=["id"])
    yield table
    shared_lake.drop(table)


def branches_of(lake: Lake) -> set[str]:
    return {ref.name for ref, _ in lake.refs.branches.list() if ref.name.startswith("ask_")}


@pytest.mark.spark
def test_a_change_is_on_its_own_branch_with_its_diff_and_the_commands(shared_lake: Lake, guests: str) -> None:
    before = branches_of(shared_lake)
    answer = shared_lake.ask("delete agentguests with stars over 5", write=True)
    assert answer.answered, answer.reason
    [branch] = branches_of(shared_lake) - before
    count = f"select count(*) from {guests}"
    assert shared_lake.sql(count).rows() == [(2,)], "main is as before"
    assert shared_lake.branch(branch).sql(count).rows() == [(1,)]
    assert f"the branch {branch}" in answer.reading and "1 removed" in answer.reading
    assert len(answer.rows) == 1 and "Oslo" in answer.rows[0]
    assert answer.choices == tuple(f"lake branch {verb} {branch}" for verb in ("diff", "merge", "drop"))
    shared_lake.refs.branches.drop(branch)
    nothing = shared_lake.ask("delete agentguests with stars over 50", write=True)
    assert not nothing.answered and "No row" in nothing.reason
    assert branches_of(shared_lake) == before, "a change of nothing leaves no branch"


@pytest.mark.spark
def test_a_change_of_the_model_is_checked_tried_on_a_branch_and_repaired(shared_lake: Lake, guests: str) -> None:
    before = branches_of(shared_lake)
    with model_server() as server:
        given = AgentSettings(model="openai:gpt-test", url=f"{server.url}/v1", key=KEY)
        model = RemoteModel(given, lambda *_, **__: None)
        asker = AdvisedAsker(LocalReader(shared_lake), model, given, None, Clock("UTC", NOON))
        server.script(
            Says({"sql": f"drop table {guests}"}),
            Says({"reading": "x", "sql": f"update {guests} set citty = 'X' where id = 1"}),
            Says({"reading": "Upper case", "sql": f"update {guests} set city = upper(city) where id = 1"}),
        )
        answer = asker.change("shout the city of guest one", local_writer(shared_lake))
        assert answer.answered, answer.reason
        assert "Upper case." in answer.reading and "1 changed" in answer.reading
        [branch] = branches_of(shared_lake) - before
        assert shared_lake.branch(branch).sql(f"select city from {guests} where id = 1").rows() == [("ROME",)]
        assert shared_lake.sql(f"select city from {guests} where id = 1").rows() == [("Rome",)]
        shared_lake.refs.branches.drop(branch)
        server.script(Says({"sql": f"truncate table {guests}"}))
        refused = asker.change("empty it", local_writer(shared_lake))
        assert not refused.answered and "one DELETE, UPDATE, INSERT or MERGE" in refused.reason
    assert branches_of(shared_lake) == before
