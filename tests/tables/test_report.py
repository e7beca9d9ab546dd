"""The report of a table: rules, checks and rejected rows over time, beside its snapshots."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from tests.support.small_lake import opened

from lakehouse.cli.app import run as run_command
from lakehouse.core.errors import RunBlockedError
from lakehouse.lake import Lake
from lakehouse.pipelines import LightContext, Pipeline, Table
from lakehouse.quality import not_null, unique
from lakehouse.tables.report import report_page

TABLE = "crm.leads"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("report") / "lake"


@pytest.fixture(scope="module")
def lake(home: Path) -> Iterator[Lake]:
    """A table that was ingested, then built by a run that rejected two rows, one that rejected none, and one that was blocked."""
    with opened(home) as small:
        small.lake.ingest_rows([{"id": 1, "name": "Ada"}], into=TABLE, key=["id"])
        small.lake.run(adding({2: "Bo", 3: None, 4: None}), id="first", light=True)
        small.lake.run(adding({5: "Di"}), id="second", light=True)
        with pytest.raises(RunBlockedError):
            small.lake.run(adding({5: "Di"}), id="third", light=True)
        yield small.lake


def adding(rows: dict[int, str | None]) -> Pipeline:
    """A run that adds rows, of which those without a name are rejected, and an id that is there twice blocks it."""

    def add(context: LightContext) -> int:
        target = context.catalog.load_table(TABLE)
        added = pyarrow.table({"id": list(rows), "name": list(rows.values())}, schema=target.schema().as_arrow())
        valid = context.validate(added)
        target.append(valid.cast(target.schema().as_arrow()), snapshot_properties=dict(context.notes))
        return int(valid.num_rows)

    return Pipeline("leads", (Table(TABLE, _unused, rules=(not_null("name"),), checks=(unique("id"),), light=add),))


def _unused() -> Any:
    raise AssertionError("this table is built without Spark")


def test_the_report_has_the_outcomes_of_each_run(lake: Lake) -> None:
    report = lake.report(TABLE)
    assert [(run.run, run.state, run.rejected) for run in report.quality] == [
        ("first", "published", 2),
        ("second", "published", 0),
        ("third", "blocked", 0),
    ]
    outcomes = [[(outcome.name, outcome.passed, outcome.broken) for outcome in run.outcomes] for run in report.quality]
    assert outcomes == [
        [("name_not_null", False, 2), ("unique_id", True, 0)],
        [("name_not_null", True, 0), ("unique_id", True, 0)],
        [("name_not_null", True, 0), ("unique_id", False, 1)],
    ]


def test_a_snapshot_is_shown_beside_what_its_run_found(lake: Lake) -> None:
    report = lake.report(TABLE)
    runs = [report.run_of(snapshot) for snapshot in report.snapshots]
    assert [run and (run.run, run.failed) for run in runs] == [
        None,  # ingested
        ("first", "name_not_null (2)"),
        ("second", ""),
    ]
    assert [(snapshot.rows_added, snapshot.rows_total) for snapshot in report.rejected] == [(2, 2)]


def test_the_command_shows_rules_checks_and_rejected_rows(
    lake: Lake, home: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "report.html"
    assert run_command(["report", TABLE, "--html", str(page), "--home", str(home)]) == 0
    shown = capfd.readouterr().out
    assert "name_not_null (2)" in shown
    assert "unique_id" in shown and "blocked" in shown
    assert "rejected_total" in shown
    text = page.read_text()
    assert text == text.replace("<script", "") and "Rules and checks" in text and "Rejected rows" in text
    assert "2 rows, 2 rejected" not in text and "1 rows, 2 rejected" in text


def test_a_table_of_no_run_has_no_section_of_quality(lake: Lake) -> None:
    lake.ingest_rows([{"id": 1}], into="crm.loose")
    page = report_page([lake.report("crm.loose")])
    assert "Rules and checks" not in page and "Rejected rows" not in page
