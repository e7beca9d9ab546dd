"""The dbt models have the same rows as the pipeline, month by month, and compile for Spark and Trino."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlglot
from sqlglot import exp
from tests.support.frames import assert_same_frame
from tests.support.sales_pipeline import lake_with

from lakehouse.lake import Lake
from lakehouse.orchestrate.dbt import PACKAGED_PROJECT
from lakehouse.pipelines.taxi.pipeline import taxi
from lakehouse.pipelines.taxi.sample import write_month

MODELS = {
    "silver.stg_yellow_trips": "dbt_silver.stg_yellow_trips",
    "gold.fct_daily_trips": "dbt_gold.fct_daily_trips",
    "gold.fct_hourly_revenue": "dbt_gold.fct_hourly_revenue",
    "gold.fct_trip_distance_stats": "dbt_gold.fct_trip_distance_stats",
}
#: Functions that Trino lacks or defines differently.
SPARK_ONLY = {"datediff", "date_sub", "unix_timestamp"}


def dbt(folder: Path, *arguments: str) -> Any:
    """Run a dbt command in this process, where it finds the session."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from dbt's own dependencies
        from dbt.cli.main import dbtRunner

        paths = ["--project-dir", str(PACKAGED_PROJECT), "--profiles-dir", str(PACKAGED_PROJECT)]
        written = ["--target-path", str(folder / "target"), "--log-path", str(folder / "logs")]
        done = dbtRunner().invoke([*arguments, *paths, *written])
    assert done.success, done.exception or [(result.node.name, result.message) for result in done.result]
    return done.result


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    write_month(folder, "2022-11", rows=1_500, seed=1)
    write_month(folder, "2025-03", rows=2_000, seed=2)
    return folder


@pytest.fixture(scope="module")
def lake(local_lake: Lake, published: Path) -> Iterator[Lake]:
    """A lake with a month of trips; dbt's change of the session is undone."""
    lake = lake_with(local_lake, {"taxi": {"path": str(published)}})
    before = lake.spark.conf.get("spark.sql.defaultCatalog")
    lake.run(taxi, "2022-11")
    yield lake
    lake.spark.conf.set("spark.sql.defaultCatalog", before)
    for table in [*MODELS, *MODELS.values(), "bronze.yellow_trips", "silver.stg_yellow_trips__rejected"]:
        lake.drop(table)


def assert_same_rows(lake: Lake) -> None:
    for table, model in MODELS.items():
        assert_same_frame(lake.spark.table(f"lake.{model}"), lake.spark.table(f"lake.{table}"))


def snapshots(lake: Lake, table: str) -> list[tuple[str, int]]:
    rows = lake.spark.sql(f"SELECT operation, summary FROM lake.{table}.snapshots ORDER BY committed_at").collect()
    return [(row["operation"], int(row["summary"].get("deleted-records", 0))) for row in rows]


@pytest.mark.spark
@pytest.mark.slow
def test_dbt_builds_the_same_rows_as_the_pipeline(lake: Lake, published: Path, tmp_path: Path) -> None:
    dbt(tmp_path, "build")
    assert_same_rows(lake)

    lake.run(taxi, "2025-03")
    dbt(tmp_path, "run")
    assert_same_rows(lake)
    assert snapshots(lake, "dbt_silver.stg_yellow_trips")[-1] == ("overwrite", 0), "the first month was rebuilt"

    write_month(published, "2022-11", rows=1_400, seed=7)
    lake.run(taxi, "2022-11")
    dbt(tmp_path, "run", "--vars", '{"months": ["2022-11"]}')
    assert_same_rows(lake)


@pytest.mark.slow  # dbt takes seconds to load
def test_the_models_compile_for_trino(tmp_path: Path) -> None:
    options = ["--target", "trino", "--no-populate-cache", "--vars", '{"months": ["2026-01"]}']
    models = [result for result in dbt(tmp_path, "compile", *options) if result.node.resource_type == "model"]
    assert len(models) == len(MODELS)
    for result in models:
        (statement,) = sqlglot.parse(result.node.compiled_code, dialect="trino")
        assert statement is not None
        called = {str(function.this).lower() for function in statement.find_all(exp.Anonymous)}
        assert not called & SPARK_ONLY, result.node.name
        assert "datediff" not in result.node.compiled_code
        assert "'2026-01'" in result.node.compiled_code
