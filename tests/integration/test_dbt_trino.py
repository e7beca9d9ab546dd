"""The taxi models on Trino make the rows that the pipeline makes, from the same files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.servers.stack import Stack

from lakehouse.lake import Lake
from lakehouse.pipelines.taxi.sample import write_month

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MODELS = {
    "silver.stg_yellow_trips": "dbt_silver.stg_yellow_trips",
    "gold.fct_daily_trips": "dbt_gold.fct_daily_trips",
    "gold.fct_hourly_revenue": "dbt_gold.fct_hourly_revenue",
    "gold.fct_trip_distance_stats": "dbt_gold.fct_trip_distance_stats",
}


@pytest.fixture(scope="module")
def lake(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake in the stack, with a month of trips that the pipeline brought and dbt built upon."""
    stack.need("storage", "postgres", "trino")
    folder = tmp_path_factory.mktemp("published")
    write_month(folder, "2025-03", rows=1_500, seed=2)
    environment = {**stack.environment, "LAKE_PROFILE": "sql", "LAKE_SOURCES__TAXI__PATH": str(folder)}
    for command in (["run", "taxi"], ["dbt", "--engine", "trino", "build"]):
        asked = [str(Path(sys.executable).parent / "lake"), *command]
        done = subprocess.run(asked, env=environment, cwd=folder, capture_output=True, text=True, timeout=400)
        assert done.returncode == 0, done.stderr
    return stack.lake("sql")


@pytest.mark.parametrize(("ours", "dbts"), MODELS.items())
def test_the_models_on_trino_agree_with_the_pipeline(lake: Lake, ours: str, dbts: str) -> None:
    there = {column.name for column in lake.describe(dbts).columns}
    names = ", ".join(column.name for column in lake.describe(ours).columns if column.name in there)
    rows = lake.sql(f"select {names} from {ours}").rows()
    assert rows
    assert sorted(rows, key=repr) == sorted(lake.sql(f"select {names} from {dbts}").rows(), key=repr)
