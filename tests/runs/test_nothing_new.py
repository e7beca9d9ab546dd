"""Runs whose source has no files yet: they end as `nothing` and report the folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.sales_pipeline import lake_with
from tests.support.transaction_pipelines import opened

from lakehouse.pipelines.files.pipeline import files
from lakehouse.runs.records import RunLog


@pytest.mark.parametrize("pattern", ["", "/*.csv"], ids=["folder", "pattern"])
def test_a_watched_folder_without_files_is_nothing_new(home: Path, tmp_path: Path, pattern: str) -> None:
    folder = tmp_path / "leads"
    folder.mkdir()
    messages: list[str] = []
    with opened(home) as lake:
        watching = lake_with(lake, {"files": {"path": f"{folder}{pattern}"}})
        record = watching.run(files, progress=messages.append)
        assert record.state == "nothing"
        assert [table.note for table in record.tables] == ["nothing new"]
        assert not lake.branches()
    assert messages[-1] == f"crm.leads: no files in {folder}{pattern} yet"


def test_records_of_older_releases_are_read(tmp_path: Path) -> None:
    (tmp_path / "r1.json").write_text(
        '{"id": "r1", "pipeline": "shop", "state": "blocked", "branch": "run_r1", "started_at": "2026-01-01", "tables": [],'
        ' "outcomes": [{"table": "shop.sales", "name": "unique_id", "severity": "block", "passed": false, "broken": 2,'
        ' "told": "2 keys more than once", "rows": []}]}'
    )
    (outcome,) = RunLog(tmp_path).get("r1").outcomes
    assert outcome.detail == "2 keys more than once"
