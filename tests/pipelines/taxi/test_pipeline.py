"""The taxi pipeline on generated months: valid trips, rejected trips, and the gold tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession
from tests.support.sales_pipeline import lake_with
from tests.support.servers.web import serving
from tests.support.taxi_trips import PUBLISHED, published

from lakehouse.core.errors import LakeError
from lakehouse.lake import Lake
from lakehouse.pipelines.taxi.pipeline import taxi
from lakehouse.pipelines.taxi.sample import write_month
from lakehouse.pipelines.taxi.silver import stg_yellow_trips
from lakehouse.quality.model import SparkCheckContext
from lakehouse.runs.validate import validated

#: The expected rows of silver, as a query of the published file.
VALID_TRIPS = """
SELECT DISTINCT ON (VendorID, tpep_pickup_datetime, tpep_dropoff_datetime, PULocationID, DOLocationID, trip_distance,
    payment_type, total_amount) *
FROM '{file}'
WHERE fare_amount >= 0 AND total_amount >= 0 AND trip_distance > 0 AND trip_distance <= 200
    AND tpep_dropoff_datetime > tpep_pickup_datetime
    AND date_diff('second', tpep_pickup_datetime, tpep_dropoff_datetime) <= 86400
    AND strftime(tpep_pickup_datetime, '%Y-%m') = '{month}'"""

SILVER = taxi.tables[1]


def test_every_table_is_laid_out_by_month_and_says_what_it_is() -> None:
    assert [table.name for table in taxi.tables] == [
        "bronze.yellow_trips",
        "silver.stg_yellow_trips",
        "gold.fct_daily_trips",
        "gold.fct_hourly_revenue",
        "gold.fct_trip_distance_stats",
    ]
    assert {table.partition_by for table in taxi.tables} == {"month"}  # type: ignore[union-attr]
    assert all(table.description.split(".")[0] for table in taxi.tables)
    assert set(taxi.known_settings) == {"url", "path", "tries", "timeout_s", "wait_s"}


@pytest.mark.spark
@pytest.mark.parametrize(
    ("other", "broken"),
    [
        ({}, set()),
        ({"tpep_pickup_datetime": None}, {"pickup_at_not_null"}),
        ({"tpep_dropoff_datetime": None}, {"dropoff_at_not_null"}),
        ({"trip_distance": None}, {"trip_distance_not_null"}),
        ({"total_amount": float("nan")}, {"total_amount_not_null"}),
        ({"fare_amount": -15.0, "total_amount": -20.6}, {"fare_amount_at_least_0", "total_amount_at_least_0"}),
        ({"trip_distance": 0.0}, {"goes_somewhere"}),
        ({"trip_distance": 200.01}, {"goes_somewhere", "speed_mph_in_range"}),
        (
            {"tpep_dropoff_datetime": datetime(2026, 1, 14, 23, 40)},
            {"ends_after_it_starts", "duration_seconds_in_range"},
        ),
        ({"tpep_dropoff_datetime": datetime(2026, 1, 14, 23, 50)}, {"ends_after_it_starts"}),
        ({"tpep_dropoff_datetime": datetime(2026, 1, 15, 23, 50, 1)}, {"duration_seconds_in_range"}),
        ({"month": "2026-02"}, {"starts_in_its_month"}),
        ({"passenger_count": 0}, {"passenger_count_in_range"}),
        ({"passenger_count": None}, set()),
        ({"payment_type": 8}, {"payment_type_id_accepted"}),
        ({"payment_type": 0}, set()),
        ({"RatecodeID": 7}, {"rate_code_id_accepted"}),
        ({"PULocationID": 266}, {"pickup_location_id_in_range"}),
        ({"DOLocationID": 0}, {"dropoff_location_id_in_range"}),
    ],
    ids=lambda value: str(value if isinstance(value, dict) else sorted(value)),
)
def test_a_trip_breaks_the_rules_that_it_should(spark: SparkSession, other: dict[str, Any], broken: set[str]) -> None:
    rows = stg_yellow_trips(spark.createDataFrame([published(**other)], PUBLISHED))
    with validated("t", rows, SILVER.rules) as result:
        assert {outcome.name for outcome in result.outcomes if outcome.broken} == broken


@pytest.mark.spark
def test_a_file_without_pickup_times_blocks(spark: SparkSession) -> None:
    (check,) = taxi.tables[0].checks

    def finding(timed: int, untimed: int) -> bool:
        rows = [published()] * timed + [published(tpep_pickup_datetime=None)] * untimed
        frame = spark.createDataFrame(rows, PUBLISHED)
        return check.evaluate(SparkCheckContext(frame, lambda name: frame, {}, None, datetime(2026, 3, 1))).passed

    assert finding(99, 1)
    assert not finding(98, 2)
    assert not finding(0, 0)
    assert check.severity == "block"


@pytest.fixture(scope="module")
def months(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two months, of eras with other types."""
    folder = tmp_path_factory.mktemp("published")
    write_month(folder, "2023-01", rows=3_000, seed=1)
    write_month(folder, "2026-01", rows=4_000, seed=2)
    return folder


@pytest.fixture(scope="module")
def lake(local_lake: Lake, months: Path) -> Iterator[Lake]:
    """A lake in which both months were run."""
    with_source = lake_with(local_lake, {"taxi": {"path": str(months)}})
    done = with_source.run(taxi)
    assert done.state == "published", done
    assert done.partitions == ("2023-01", "2026-01") or not done.partitions
    yield with_source
    for table in taxi.tables:
        with_source.drop(table.name)
    with_source.drop("silver.stg_yellow_trips__rejected")


def query(lake: Lake, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in lake.sql(sql).rows()]


def expected(months: Path, what: str, month: str) -> list[tuple[Any, ...]]:
    file = months / f"yellow_tripdata_{month}.parquet"
    return duckdb.sql(f"WITH trips AS ({VALID_TRIPS.format(file=file, month=month)}) SELECT {what}").fetchall()


@pytest.mark.spark
@pytest.mark.parametrize("month", ["2023-01", "2026-01"])
def test_bronze_has_every_row_and_silver_each_valid_one_once(lake: Lake, months: Path, month: str) -> None:
    file = months / f"yellow_tripdata_{month}.parquet"
    every = duckdb.sql(f"SELECT count(*) FROM '{file}'").fetchall()
    assert query(lake, f"SELECT count(*) FROM bronze.yellow_trips WHERE month = '{month}'") == every
    sums = "count(*), CAST(sum(CAST(total_amount AS DECIMAL(12,2))) AS DECIMAL(18,2)), sum(passenger_count)"
    trips = query(lake, f"SELECT {sums} FROM silver.stg_yellow_trips WHERE month = '{month}'")
    assert trips == expected(months, f"{sums} FROM trips", month)
    assert trips[0][0] < every[0][0]


@pytest.mark.spark
@pytest.mark.parametrize("month", ["2023-01", "2026-01"])
def test_gold_is_what_duckdb_makes_of_the_published_file(lake: Lake, months: Path, month: str) -> None:
    money = "CAST(sum(CAST({} AS DECIMAL(12,2))) AS DECIMAL(18,2))".format
    daily = f"SELECT pickup_date, trips, distance_miles, fares, tips, revenue FROM gold.fct_daily_trips WHERE month = '{month}' ORDER BY 1"
    by_day = (
        f"CAST(tpep_pickup_datetime AS DATE), count(*), {money('trip_distance')}, {money('fare_amount')}, "
        f"{money('tip_amount')}, {money('total_amount')} FROM trips GROUP BY 1 ORDER BY 1"
    )
    assert query(lake, daily) == expected(months, by_day, month)
    hourly = f"SELECT pickup_date, pickup_hour, trips, revenue FROM gold.fct_hourly_revenue WHERE month = '{month}' ORDER BY 1, 2"
    by_hour = (
        f"CAST(tpep_pickup_datetime AS DATE), hour(tpep_pickup_datetime), count(*), {money('total_amount')} "
        "FROM trips GROUP BY 1, 2 ORDER BY 1, 2"
    )
    assert query(lake, hourly) == expected(months, by_hour, month)
    stats = f"SELECT distance_bucket, trips, median_duration_seconds FROM gold.fct_trip_distance_stats WHERE month = '{month}' ORDER BY from_miles"
    by_distance = (
        "CASE WHEN trip_distance < 1 THEN '0-1' WHEN trip_distance < 2 THEN '1-2' WHEN trip_distance < 5 THEN '2-5' "
        "WHEN trip_distance < 10 THEN '5-10' WHEN trip_distance < 20 THEN '10-20' ELSE '20+' END, count(*), "
        "quantile_disc(date_diff('second', tpep_pickup_datetime, tpep_dropoff_datetime), 0.5) "
        "FROM trips GROUP BY 1 ORDER BY min(trip_distance)"
    )
    assert query(lake, stats) == expected(months, by_distance, month)


@pytest.mark.spark
def test_what_is_put_aside_says_why(lake: Lake) -> None:
    reasons = query(lake, "SELECT DISTINCT reason FROM silver.stg_yellow_trips__rejected")
    named = {name for (reason,) in reasons for name in reason.split(", ")}
    assert named == {
        "fare_amount_at_least_0",
        "total_amount_at_least_0",
        "goes_somewhere",
        "ends_after_it_starts",
        "duration_seconds_in_range",
        "starts_in_its_month",
    }


@pytest.mark.spark
def test_a_month_that_was_run_is_not_run_again_and_one_that_changed_is(lake: Lake, months: Path) -> None:
    before = query(lake, "SELECT * FROM gold.fct_daily_trips WHERE month = '2023-01' ORDER BY pickup_date")
    again = lake.run(taxi)
    assert {table.note for table in again.tables} == {"nothing new"}
    write_month(months, "2026-01", rows=4_500, seed=3)
    lake.run(taxi)
    after = query(lake, "SELECT * FROM gold.fct_daily_trips WHERE month = '2023-01' ORDER BY pickup_date")
    assert after == before
    trips = query(lake, "SELECT sum(trips) FROM gold.fct_daily_trips WHERE month = '2026-01'")
    assert trips == expected(months, "count(*) FROM trips", "2026-01")


@pytest.mark.spark
def test_the_file_of_another_month_changes_nothing(lake: Lake, months: Path) -> None:
    before = query(lake, "SELECT month, count(*) FROM bronze.yellow_trips GROUP BY 1 ORDER BY 1")
    wrong = write_month(months, "2025-12", rows=300)
    wrong.rename(months / "yellow_tripdata_2025-11.parquet")
    with pytest.raises(LakeError, match="keeps_most_of_bronze_yellow_trips"):
        lake.run(taxi, "2025-11")
    assert query(lake, "SELECT month, count(*) FROM bronze.yellow_trips GROUP BY 1 ORDER BY 1") == before


@pytest.mark.spark
def test_each_month_is_a_snapshot_and_made_again_only_that_month_is_replaced(lake: Lake) -> None:
    before = [snapshot.notes["partitions"] for snapshot in lake.history("bronze.yellow_trips")]
    assert before[:2] == ["2023-01", "2026-01"]
    rows = query(lake, "SELECT month, count(*) FROM bronze.yellow_trips GROUP BY 1 ORDER BY 1")
    lake.run(taxi, "2023-01", tables=("bronze.yellow_trips",))
    after = [snapshot.notes["partitions"] for snapshot in lake.history("bronze.yellow_trips")]
    assert after == [*before, "2023-01"]
    assert query(lake, "SELECT month, count(*) FROM bronze.yellow_trips GROUP BY 1 ORDER BY 1") == rows


@pytest.mark.spark
def test_a_downloaded_month_is_not_built_twice(local_lake: Lake, months: Path) -> None:
    name = "yellow_tripdata_2026-01.parquet"
    with serving() as web:
        web.files[f"/{name}"] = (months / name).read_bytes()
        lake = lake_with(local_lake, {"taxi": {"url": web.address}})
        renamed = replace(
            taxi, tables=tuple(replace(t, name=f"downloaded.{t.table_name.table}") for t in taxi.tables[:1])
        )
        assert lake.run(renamed, "2026-01").state == "published"
        assert lake.run(renamed).state == "nothing"
