"""`lake ask` and `lake semantics`: one object, exit codes, the layer's file."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, LongType, NestedField, StringType, TimestamptzType
from tests.support.repetitions import repetitions

from lakehouse import open_lake
from lakehouse.cli.app import run


@pytest.fixture(scope="module")
def lake_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home: Path = tmp_path_factory.mktemp("asked") / "lake"
    with open_lake(home=home) as lake:
        lake.ingest_rows([{"id": 1, "city": "Rome"}, {"id": 2, "city": "Oslo"}], "shop.guests", key=["id"])
    return home


@pytest.fixture
def home(lake_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAKE_HOME", str(lake_home))
    yield lake_home
    (lake_home / "semantics.toml").unlink(missing_ok=True)


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


@pytest.mark.faults
def test_one_of_many_wide_tables_is_found_within_two_seconds_of_processor_time(tmp_path: Path) -> None:
    count, home = repetitions(20, 500), tmp_path / "lake"
    with open_lake(home=home) as lake:
        lake.ingest_rows([{"id": 1}], "wide.first")
    columns = [("id", LongType()), ("amount", DoubleType()), ("city", StringType()), ("at", TimestamptzType())]
    columns += [(f"attribute_{n}", StringType()) for n in range(36)]
    schema = Schema(*(NestedField(n, name, kind) for n, (name, kind) in enumerate(columns, 1)))
    catalog = SqlCatalog("lake", uri=f"sqlite:///{home}/catalog.db", warehouse=f"file://{home}/warehouse")
    for n in range(count):
        catalog.create_table(f"wide.thing{n}_rows", schema)

    def asked(question: str) -> tuple[dict[str, Any], float]:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "lakehouse", "ask", question, "-o", "json"]
        done = subprocess.run(
            command, env={**os.environ, "LAKE_HOME": str(home)}, capture_output=True, text=True, check=False
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return json.loads(done.stdout), seconds

    named, seconds = asked("total amount of wide.thing7_rows by city")
    assert named["answered"] and "FROM wide.thing7_rows" in named["sql"]
    assert seconds < 2
    unclear, seconds = asked("total amount by city of thing7")
    assert any("thing7_rows" in choice for choice in unclear["choices"])
    assert seconds < 2
