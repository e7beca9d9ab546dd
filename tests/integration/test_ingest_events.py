"""An ingest is reported as OpenLineage, with its files, rows and snapshot; the warm Spark does not mind the settings of events."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lakehouse.config.settings import Settings
from lakehouse.events import EventSettings
from lakehouse.lake import Lake
from lakehouse.lake.assemble import assemble
from lakehouse.lake.spark import spark_daemon

pytestmark = pytest.mark.spark


def test_an_ingest_is_reported_with_its_files_and_snapshot(
    shared_lake: Lake, shared_settings: Settings, namespace: str, tmp_path: Path
) -> None:
    shared_lake.sql(f"create table {namespace}.warm (id int)")
    health = spark_daemon(shared_settings).health()
    source, file = tmp_path / "leads.csv", tmp_path / "lineage.jsonl"
    source.write_text("id,name\n1,Ann\n2,Bob\n")
    with assemble(replace(shared_settings, events=EventSettings(file=str(file)))) as lake:
        report = lake.ingest(source, into=f"{namespace}.leads", key=["id"])
    start, end = [json.loads(line) for line in file.read_text().splitlines()]
    assert (start["eventType"], end["eventType"]) == ("START", "COMPLETE")
    assert start["run"]["runId"] == end["run"]["runId"]
    assert end["inputs"][0]["name"].endswith("leads.csv")
    (output,) = end["outputs"]
    assert output["facets"]["version"]["datasetVersion"] == report.snapshot
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 2
    assert [field["name"] for field in output["facets"]["schema"]["fields"]] == ["id", "name"]
    logged = [json.loads(line) for line in (shared_settings.home / "logs" / "lake.jsonl").read_text().splitlines()]
    assert any(line["event"] == "ingested" and line["table"] == f"{namespace}.leads" for line in logged)
    after = spark_daemon(shared_settings).health()
    assert health is not None and after is not None and after["pid"] == health["pid"], "the warm Spark was not replaced"
