"""`lake ask` and `lake semantics`: one object, exit codes, the layer's file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lakehouse import open_lake
from lakehouse.cli.app import run


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAKE_HOME", str(tmp_path / "lake"))
    with open_lake() as lake:
        lake.ingest_rows([{"id": 1, "city": "Rome"}, {"id": 2, "city": "Oslo"}], "shop.guests", key=["id"])
    return tmp_path / "lake"


@pytest.mark.usefixtures("home")
def test_json_is_one_object_and_the_exit_code_says_whether_it_was_answered(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ask", "guests by city", "-o", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    keys = ["answered", "reading", "sql", "columns", "rows", "snapshots", "chart", "reason", "choices"]
    assert list(answer) == keys
    assert answer["rows"] == [["Oslo", 1], ["Rome", 1]]
    assert run(["ask", "how many unicorns", "-o", "json"]) == 3
    assert json.loads(capsys.readouterr().out)["answered"] is False


@pytest.mark.usefixtures("home")
def test_sql_is_printed_and_not_run_and_a_follow_up_refers_to_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ask", "only Oslo", "--after", "guests by city", "--sql"]) == 0
    assert capsys.readouterr().out.splitlines()[:3] == [
        "SELECT city, count(*) AS guests",
        "FROM shop.guests",
        "WHERE city = 'Oslo'",
    ]


def test_a_written_draft_is_checked_and_used(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["semantics", "draft", "--write"]) == 0
    file = home / "semantics.toml"
    assert run(["semantics", "draft", "--write"]) == 2, "an existing file stays"
    assert run(["semantics", "check"]) == 0
    file.write_text(file.read_text().replace("[entities.guests]", '[entities.guests]\ndescription = "A guest."', 1))
    file.write_text(file.read_text() + '\n[entities.guests.metrics.visits]\nexpression = "sum(visit_count)"\n')
    capsys.readouterr()
    assert run(["semantics", "check", "-o", "json"]) == 1
    assert [finding["name"] for finding in json.loads(capsys.readouterr().out)] == ["visits"]
    file.write_text("[entities.guests]\ntabel = 'x'\n")
    assert run(["ask", "how many guests"]) == 2
    assert "entities.guests.tabel is not known" in capsys.readouterr().err
