"""`lake branch`, `tag`, `log`, `revert` and `--branch`, on tables that PyIceberg wrote, without Spark."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import create_shop
from tests.support.transaction_pipelines import writing

from lakehouse.config.load import load_settings
from lakehouse.lake.assemble import assemble


@pytest.fixture
def shop(call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that runs commands on a shop of this test."""
    monkeypatch.setenv("LAKE_HOME", str(create_shop(tmp_path / "own")))
    return call


def test_a_branch_is_created_listed_used_merged_and_dropped(shop: Any) -> None:
    created = shop("branch", "create", "Exp", "-m", "try it")
    assert (created.code, created.out) == (0, "")
    (row,) = shop("branch", "list", "-o", "json").rows()
    assert (row["branch"], row["from"], row["message"]) == ("exp", "main", "try it")
    assert row["author"]
    assert shop("drop", "shop.empty", "--branch", "exp").code == 0
    assert [table["table"] for table in shop("--branch", "exp", "tables", "-o", "json").rows()] == ["shop.orders"]
    assert len(shop("tables", "-o", "json").rows()) == 2, "main is unchanged"
    (change,) = shop("branch", "diff", "exp", "-o", "json").rows()
    assert (change["table"], change["change"], change["conflict"]) == ("shop.empty", "removed", False)
    merged = shop("branch", "merge", "exp", "-m", "empty is not needed").err
    commit = merged.rstrip(".\n").rpartition("commit ")[2]
    assert len(shop("tables", "-o", "json").rows()) == 1
    assert shop("branch", "-o", "json").rows() == []
    newest = shop("log", "-o", "json").rows()[0]
    assert (newest["commit"], newest["what"], newest["message"]) == (commit, "merge", "empty is not needed")
    assert newest["tables"] == ["shop.empty"]
    assert shop("revert", commit).code == 0
    assert len(shop("tables", "-o", "json").rows()) == 2


def test_branches_and_tags_of_runs_are_listed_on_request(shop: Any, tmp_path: Path) -> None:
    with assemble(load_settings({"home": tmp_path / "own"}, environ={})) as lake:
        lake.run(writing("night", "night", ["shop.nightly"]), id="one", light=True)
        lake.run(writing("night", "more", ["shop.nightly"]), id="two", light=True, publish=False)
        lake.refs.branches.create("exp")
        lake.refs.branches.create_tag("close")
    assert [row["branch"] for row in shop("branch", "-o", "json").rows()] == ["exp"]
    assert {row["branch"] for row in shop("branch", "--all", "-o", "json").rows()} == {"exp", "run_two"}
    assert [row["tag"] for row in shop("tag", "-o", "json").rows()] == ["close"]
    assert {row["tag"] for row in shop("tag", "--all", "-o", "json").rows()} == {"close", "run_one"}
    assert "lake branch list --all" in shop("branch").err
    assert "lake tag list --all" in shop("tag").err


def test_several_branches_are_dropped_at_once_or_none(shop: Any) -> None:
    for name in ("one", "two", "three"):
        assert shop("branch", "create", name).code == 0
    refused = shop("branch", "drop", "one", "nowhere", "two")
    assert refused.code == 2
    assert "There is no branch nowhere" in refused.err
    assert len(shop("branch", "-o", "json").rows()) == 3
    assert shop("branch", "drop", "one", "Two").code == 0
    assert [row["branch"] for row in shop("branch", "-o", "json").rows()] == ["three"]


def test_of_two_dropped_tables_of_one_name_either_comes_back_by_the_id_of_its_drop(shop: Any) -> None:
    assert shop("drop", "shop.orders").code == 0
    rows = [{"id": 7}]
    with assemble(load_settings({"home": os.environ["LAKE_HOME"]}, environ={})) as lake:
        lake.ingest_rows(rows, into="shop.orders")
    assert shop("drop", "shop.orders").code == 0
    older, newer = shop("tables", "--dropped", "-o", "json").rows()
    assert (older["table"], newer["table"]) == ("shop.orders", "shop.orders")
    assert older["dropped_at"] < newer["dropped_at"]
    assert "restored with 3 rows" in shop("undrop", "shop.orders", "--id", older["id"]).err
    assert shop("drop", "shop.orders").code == 0
    assert "restored with 1 rows" in shop("undrop", "shop.orders", "--id", newer["id"]).err
    missing = shop("undrop", "shop.orders", "--id", "99", "-o", "json")
    assert missing.code == 2


def test_a_tag_can_be_used_as_when(shop: Any) -> None:
    assert shop("tag", "create", "close").code == 0
    assert [row["tag"] for row in shop("tag", "-o", "json").rows()] == ["close"]
    assert len(shop("travel", "shop.orders", "close", "-o", "json").rows()) == 3
    assert shop("tag", "drop", "close").code == 0
    assert json.loads(shop("travel", "shop.orders", "close", "-o", "json").err)["error"] == "bad_when"


def test_the_log_lists_the_commits_of_other_writers(shop: Any) -> None:
    rows = shop("log", "shop.orders", "-o", "json").rows()
    assert [(row["what"], row["tables"], row["commit"]) for row in rows] == [("append", ["shop.orders"], "")] * 2
    assert rows[0]["at"] > rows[1]["at"]
    assert len(shop("log", "--limit", "1", "-o", "json").rows()) == 1


@pytest.mark.parametrize(
    ("command", "code"),
    [
        pytest.param(["branch", "merge", "nowhere"], "no_such_branch", id="merge"),
        pytest.param(["branch", "diff", "nowhere"], "no_such_branch", id="diff"),
        pytest.param(["branch", "drop", "nowhere"], "no_such_branch", id="drop"),
        pytest.param(["branch", "create", "a-b"], "bad_name", id="bad-name"),
        pytest.param(["branch", "create", "x", "--from", "nowhere"], "no_such_branch", id="from"),
        pytest.param(["branch", "create"], "bad_usage", id="no-name"),
        pytest.param(["branch", "merge"], "bad_usage", id="merge-what"),
        pytest.param(["tag", "create"], "bad_usage", id="tag-what"),
        pytest.param(["runs", "show"], "no_such_run", id="show-the-newest"),
        pytest.param(["runs", "show", "nothing"], "no_such_run", id="show"),
        pytest.param(["runs", "nothing"], "bad_usage", id="runs-what"),
        pytest.param(["tag", "drop", "nowhere"], "no_such_branch", id="tag"),
        pytest.param(["tables", "--branch", "nowhere"], "no_such_branch", id="option"),
        pytest.param(["revert", "99"], "no_such_commit", id="revert"),
        pytest.param(["log", "shop.ordrs"], "no_such_table", id="log"),
        pytest.param(["run", "market", "--branch", "x"], "bad_usage", id="run"),
        pytest.param(["run"], "bad_usage", id="run-what"),
        pytest.param(["run", "--resume", "nothing"], "no_such_run", id="resume"),
    ],
)
def test_a_usage_error_has_one_shape_in_json(call: Any, command: list[str], code: str) -> None:
    done = call(*command, "-o", "json")
    assert (done.code, done.out) == (2, "")
    assert json.loads(done.err)["error"] == code
