"""dbt as a transaction: models are published only if all tests pass."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from tests.runs.conftest import lake_with

from lakehouse.config.load import load_settings
from lakehouse.core.errors import RunBlockedError
from lakehouse.lake import Lake
from lakehouse.orchestrate.assets import asset_key
from lakehouse.orchestrate.dbt import run_dbt
from lakehouse.pipelines.taxi.pipeline import taxi
from lakehouse.pipelines.taxi.sample import write_month

PROJECT = Path(__file__).parents[2] / "dbt"


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
    shutil.copytree(PROJECT, broken)
    (broken / "tests" / "never.sql").write_text("select * from {{ ref('fct_daily_trips') }}")
    with pytest.raises(RunBlockedError, match="never"):
        run_dbt(lake, broken, ["build"], lambda text: None)
    assert not any(info.name.namespace.startswith("dbt_") for info in lake.tables())
    assert lake.runs()[0].state == "blocked"
    record, results = run_dbt(lake, PROJECT, ["build"], lambda text: None)
    assert record.state == "published"
    assert {str(each.status) for each in results} <= {"success", "pass"}
    from_dbt = lake.sql("select sum(trips), sum(revenue) from dbt_gold.fct_daily_trips").rows()
    assert from_dbt == lake.sql("select sum(trips), sum(revenue) from gold.fct_daily_trips").rows()
    assert lake.spark.conf.get("spark.sql.defaultCatalog") == "lake"


@pytest.mark.slow
def test_the_lineage_continues_from_bronze_to_the_dbt_models(tmp_path: Path) -> None:
    from lakehouse.orchestrate.definitions import build_definitions

    settings = load_settings({"home": tmp_path / "lake", "dbt": PROJECT}, tmp_path, {})
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
