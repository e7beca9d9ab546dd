"""dbt as a transaction: models are published only if all tests pass."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from tests.support.sales_pipeline import lake_with

from lakehouse import open_lake
from lakehouse.config.load import load_settings
from lakehouse.core.errors import DbtError, RunBlockedError
from lakehouse.lake import Lake
from lakehouse.orchestrate.assets import asset_key
from lakehouse.orchestrate.dbt import PACKAGED_PROJECT, find_project, is_read, manifest_of, read_with_dbt, run_dbt
from lakehouse.pipelines.taxi.pipeline import taxi
from lakehouse.pipelines.taxi.sample import write_month


@pytest.fixture
def lake(local_lake: Lake, tmp_path: Path) -> Iterator[Lake]:
    write_month(tmp_path, "2025-03", rows=500)
    lake = lake_with(local_lake, {"taxi": {"path": str(tmp_path)}})
    lake.run(taxi, "2025-03")
    yield lake
    for info in lake.tables():
        if str(info.name).startswith(("dbt_", "bronze.yellow", "silver.stg", "gold.fct")):
            lake.drop(str(info.name))


@pytest.mark.spark
@pytest.mark.slow
def test_models_are_published_only_if_all_tests_pass(lake: Lake, tmp_path: Path) -> None:
    broken = tmp_path / "project"
    shutil.copytree(PACKAGED_PROJECT, broken)
    (broken / "tests" / "never.sql").write_text("select * from {{ ref('fct_daily_trips') }}")
    with pytest.raises(RunBlockedError, match="never"):
        run_dbt(lake, broken, ["build"], lambda text: None)
    assert not any(info.name.namespace.startswith("dbt_") for info in lake.tables())
    assert lake.runs()[0].state == "blocked"
    record, results = run_dbt(lake, PACKAGED_PROJECT, ["build"], lambda text: None)
    assert record.state == "published"
    assert {str(result.status) for result in results} <= {"success", "pass"}
    from_dbt = lake.sql("select sum(trips), sum(revenue) from dbt_gold.fct_daily_trips").rows()
    assert from_dbt == lake.sql("select sum(trips), sum(revenue) from gold.fct_daily_trips").rows()
    assert lake.spark.conf.get("spark.sql.defaultCatalog") == "lake"


@pytest.mark.slow
def test_the_lineage_continues_from_bronze_to_the_dbt_models(tmp_path: Path) -> None:
    from lakehouse.orchestrate.definitions import build_definitions

    settings = load_settings({"home": tmp_path / "lake"}, tmp_path, {})
    graph = build_definitions(settings).get_repository_def().asset_graph
    upstream = {
        key.to_user_string()
        for key in dg.AssetSelection.assets(asset_key("dbt_gold.fct_daily_trips")).upstream().resolve(graph)
    }
    assert upstream == {
        "raw/yellow_trips",
        "bronze/yellow_trips",
        "dbt_silver/stg_yellow_trips",
        "dbt_gold/fct_daily_trips",
    }


def test_the_packaged_project_is_used_unless_the_lake_has_its_own(tmp_path: Path) -> None:
    assert find_project(load_settings({}, tmp_path, {})) == PACKAGED_PROJECT
    (tmp_path / "dbt").mkdir()
    assert find_project(load_settings({}, tmp_path, {})) == PACKAGED_PROJECT, "a folder without a project"
    (tmp_path / "dbt" / "dbt_project.yml").write_text("name: mine\n")
    assert find_project(load_settings({}, tmp_path, {})) == tmp_path / "dbt"
    named = load_settings({}, tmp_path, {"LAKE_DBT": "elsewhere"})
    assert find_project(named) == tmp_path / "elsewhere", "a wrong setting is reported, not ignored"


@pytest.mark.slow
def test_the_manifest_is_made_again_when_the_project_is_another(tmp_path: Path) -> None:
    with open_lake(home=tmp_path / "lake") as lake:
        first = manifest_of(lake, PACKAGED_PROJECT)
        made = first.stat().st_mtime_ns
        assert manifest_of(lake, PACKAGED_PROJECT).stat().st_mtime_ns == made
        own = tmp_path / "dbt"
        shutil.copytree(PACKAGED_PROJECT, own)
        (own / "models" / "gold" / "mine.sql").write_text("select 1 as one, '2026-01' as month")
        for file in own.rglob("*"):
            os.utime(file, (0, 0))  # older than the manifest
        assert '"model.lakehouse.mine"' in manifest_of(lake, own).read_text()


SMALL_PROJECT = """\
name: small
version: "1.0"
config-version: 2
profile: lakehouse
model-paths: [models]
models: {small: {+schema: dbt_small, +materialized: table, +file_format: iceberg}}
"""
SOURCES = """\
sources:
  - name: crm
    schema: dbt_small_source
    loaded_at_field: at
    freshness: {warn_after: {count: 1, period: day}}
    tables: [{name: visits}]
"""


@pytest.fixture
def small_project(tmp_path: Path) -> Path:
    """A project of one model on one source, which may write anywhere."""
    project = tmp_path / "small"
    shutil.copytree(PACKAGED_PROJECT / "macros", project / "macros")
    shutil.copy(PACKAGED_PROJECT / "profiles.yml", project)
    (project / "models").mkdir()
    (project / "dbt_project.yml").write_text(SMALL_PROJECT)
    (project / "models" / "sources.yml").write_text(SOURCES)
    (project / "models" / "ids.sql").write_text("select id from {{ source('crm', 'visits') }}")
    return project


@pytest.mark.parametrize(
    ("arguments", "reads"),
    [
        pytest.param(["ls", "--select", "x"], True, id="ls"),
        pytest.param(["docs", "generate"], True, id="docs"),
        pytest.param(["--debug", "source", "freshness"], True, id="freshness"),
        pytest.param(["show", "--inline", "select 1"], True, id="show"),
        pytest.param(["build"], False, id="build"),
        pytest.param(["run", "--select", "ls"], False, id="run"),
        pytest.param(["test"], False, id="test"),
        pytest.param([], False, id="nothing"),
    ],
)
def test_commands_that_change_no_table_need_no_transaction(arguments: list[str], reads: bool) -> None:
    assert is_read(arguments) is reads


@pytest.mark.slow
def test_models_are_listed_without_spark(
    tmp_path: Path, small_project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_lake(home=tmp_path / "lake") as lake:
        assert read_with_dbt(lake, small_project, ["ls"]) == ["small.ids", "source:small.crm.visits"]
        assert capsys.readouterr().out.split() == ["small.ids", "source:small.crm.visits"]
        with pytest.raises(DbtError, match="dbt ls failed: .*nonsense"):
            read_with_dbt(lake, small_project, ["ls", "--nonsense"])


@pytest.mark.spark
@pytest.mark.slow
def test_a_build_asks_spark_for_its_models_alone(
    local_lake: Lake, small_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dbt.flags import get_flags
    from pyspark.sql import SparkSession

    local_lake.sql("CREATE OR REPLACE TABLE dbt_small_source.visits AS SELECT 7 AS id, current_timestamp() AS at")
    for number in range(3):
        (small_project / "models" / f"more_{number}.sql").write_text("select id + 1 as id from {{ ref('ids') }}")
    statements: list[str] = []
    run_statement = SparkSession.sql

    def recorded(session: SparkSession, statement: str, *more: Any, **options: Any) -> Any:
        if '"app": "dbt"' in statement:
            statements.append(" ".join(statement.rpartition("*/")[2].split()[:4]))
        return run_statement(session, statement, *more, **options)

    monkeypatch.setattr(SparkSession, "sql", recorded)
    run_dbt(local_lake, small_project, ["build"], lambda text: None)
    assert "create schema if not" in statements
    statements.clear()
    run_dbt(local_lake, small_project, ["build"], lambda text: None)
    assert statements == ["create or replace table"] * 4
    assert local_lake.sql("select id from dbt_small.more_2").rows() == [(8,)]
    assert get_flags().SEND_ANONYMOUS_USAGE_STATS is False
    for table in ("ids", "more_0", "more_1", "more_2"):
        local_lake.drop(f"dbt_small.{table}")
    local_lake.drop("dbt_small_source.visits")


@pytest.mark.spark
@pytest.mark.slow
def test_commands_that_read_use_main_and_leave_no_run(
    local_lake: Lake, small_project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    local_lake.sql("CREATE OR REPLACE TABLE dbt_small_source.visits AS SELECT 7 AS id, current_timestamp() AS at")
    run_dbt(local_lake, small_project, ["build"], lambda text: None)
    runs, branches = len(local_lake.runs()), local_lake.branches()  # other tests share the lake
    assert read_with_dbt(local_lake, small_project, ["debug"]) is True
    read_with_dbt(local_lake, small_project, ["show", "--select", "ids"])
    assert "|  7 |" in capsys.readouterr().out
    read_with_dbt(local_lake, small_project, ["docs", "generate"])
    catalog = json.loads((local_lake.folder / "dbt" / "catalog.json").read_text())
    assert set(catalog["nodes"]["model.small.ids"]["columns"]) == {"id"}
    (freshness,) = read_with_dbt(local_lake, small_project, ["source", "freshness"])
    assert str(freshness.status) == "pass"
    assert len(local_lake.runs()) == runs
    assert local_lake.branches() == branches
    for table in ("dbt_small.ids", "dbt_small_source.visits"):
        local_lake.drop(table)
