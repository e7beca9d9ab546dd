"""dbt as a transaction: models are published only if all tests pass."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from tests.support.sales_pipeline import lake_with

from lakehouse import open_lake
from lakehouse.config.load import load_settings
from lakehouse.core.errors import RunBlockedError
from lakehouse.lake import Lake
from lakehouse.orchestrate.assets import asset_key
from lakehouse.orchestrate.dbt import PACKAGED_PROJECT, find_project, manifest_of, run_dbt
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
    assert {str(each.status) for each in results} <= {"success", "pass"}
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
