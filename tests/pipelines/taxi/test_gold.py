"""Each gold table on a small fixed input equals what DuckDB's SQL makes of it, to the last digit."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import DataFrame, SparkSession

from lakehouse.pipelines.taxi.gold import fct_daily_trips, fct_hourly_revenue, fct_trip_distance_stats

pytestmark = pytest.mark.spark

# Rounded half up by whole numbers alone: DuckDB divides decimals as doubles.
DUCKDB = """
CREATE MACRO cents(total) AS CAST(total * 100 AS HUGEINT);
CREATE MACRO half_up(over, under) AS CAST(((2 * over + under) // (2 * under)) AS DECIMAL(18, 2)) / 100;
CREATE MACRO average(total, n) AS CAST(half_up(cents(total), n) AS DECIMAL(12, 2));
"""

DAILY = """
SELECT month, pickup_date, count(*) AS trips, CAST(coalesce(sum(passenger_count), 0) AS BIGINT) AS passengers,
    sum(trip_distance) AS distance_miles, sum(fare_amount) AS fares, sum(tip_amount) AS tips,
    sum(tolls_amount) AS tolls, sum(total_amount) AS revenue,
    average(sum(trip_distance), count(*)) AS avg_distance_miles, average(sum(fare_amount), count(*)) AS avg_fare,
    average(sum(tip_amount), count(*)) AS avg_tip, average(sum(total_amount), count(*)) AS avg_revenue,
    CAST(half_up(100 * sum(duration_seconds), 60 * count(*)) AS DECIMAL(12, 2)) AS avg_duration_minutes
FROM trips GROUP BY ALL"""

HOURLY = """
SELECT month, pickup_date, pickup_hour, count(*) AS trips, sum(total_amount) AS revenue,
    coalesce(sum(total_amount) FILTER (payment_type_id = 1), 0) AS card_revenue,
    coalesce(sum(total_amount) FILTER (payment_type_id = 2), 0) AS cash_revenue,
    coalesce(sum(total_amount) FILTER (payment_type_id NOT IN (1, 2) OR payment_type_id IS NULL), 0) AS other_revenue,
    sum(tip_amount) AS tips, average(sum(total_amount), count(*)) AS avg_revenue
FROM trips GROUP BY ALL"""

DISTANCE = """
SELECT month, distance_bucket, from_miles, count(*) AS trips, sum(total_amount) AS revenue,
    average(sum(trip_distance), count(*)) AS avg_distance_miles, average(sum(fare_amount), count(*)) AS avg_fare,
    quantile_disc(duration_seconds, 0.5) AS median_duration_seconds,
    quantile_disc(duration_seconds, 0.9) AS p90_duration_seconds
FROM trips JOIN (VALUES (0, 1, '0-1'), (1, 2, '1-2'), (2, 5, '2-5'), (5, 10, '5-10'), (10, 20, '10-20'),
        (20, 1000, '20+')) AS buckets(from_miles, to_miles, distance_bucket)
    ON trip_distance >= from_miles AND trip_distance < to_miles
GROUP BY ALL"""

SHAPE = """month string, pickup_date date, pickup_hour int, passenger_count int, trip_distance decimal(10,2),
    fare_amount decimal(12,2), tip_amount decimal(12,2), tolls_amount decimal(12,2), total_amount decimal(12,2),
    payment_type_id int, duration_seconds bigint"""


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    """Two months of trips whose averages often lie on a half, whose buckets begin on their bounds, some with nulls."""
    connection = duckdb.connect()
    connection.execute(DUCKDB)
    connection.execute("""
    CREATE TABLE trips AS SELECT
        strftime(picked_up, '%Y-%m') AS month, CAST(picked_up AS DATE) AS pickup_date,
        CAST(hour(picked_up) AS INTEGER) AS pickup_hour,
        CASE WHEN n % 7 > 0 THEN CAST(n % 5 AS INTEGER) END AS passenger_count,
        CAST([0.01, 0.99, 1, 1.99, 2, 4.99, 5, 9.99, 10, 19.99, 20, 55.5][1 + n % 12] AS DECIMAL(10, 2)) AS trip_distance,
        CAST((n * 37 % 5000 + 250) / 100 AS DECIMAL(12, 2)) AS fare_amount,
        CAST((n * 13 % 701) / 100 AS DECIMAL(12, 2)) AS tip_amount,
        CAST(CASE WHEN n % 9 = 0 THEN 6.94 ELSE 0 END AS DECIMAL(12, 2)) AS tolls_amount,
        CAST((n * 53 % 7919 + 301) / 100 AS DECIMAL(12, 2)) AS total_amount,
        CASE WHEN n % 11 > 0 THEN CAST(n % 6 AS INTEGER) END AS payment_type_id,
        CAST(60 + n * 97 % 1801 AS BIGINT) AS duration_seconds
    FROM (SELECT n, TIMESTAMP '2026-01-30 00:00:00' + to_minutes(CAST(n * 29 AS INTEGER)) AS picked_up FROM range(300) t(n))""")
    return connection


@pytest.fixture(scope="module")
def trips(spark: SparkSession, duck: duckdb.DuckDBPyConnection) -> DataFrame:
    return spark.createDataFrame(duck.sql("FROM trips").fetchall(), SHAPE)


def rows_of(relation: duckdb.DuckDBPyRelation) -> list[dict[str, Any]]:
    return [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]


@pytest.mark.parametrize(
    ("make", "sql", "key"),
    [
        (fct_daily_trips, DAILY, ["pickup_date"]),
        (fct_hourly_revenue, HOURLY, ["pickup_date", "pickup_hour"]),
        (fct_trip_distance_stats, DISTANCE, ["month", "from_miles"]),
    ],
    ids=["daily", "hourly", "distance"],
)
def test_a_gold_table_equals_what_duckdb_makes_of_the_same_trips(
    duck: duckdb.DuckDBPyConnection,
    trips: DataFrame,
    make: Callable[[DataFrame], DataFrame],
    sql: str,
    key: list[str],
) -> None:
    computed = [row.asDict() for row in make(trips).collect()]
    expected = rows_of(duck.sql(sql))
    assert len(expected) > 5

    def in_order(row: dict[str, Any]) -> list[str]:
        return [str(row[name]) for name in key]

    assert sorted(computed, key=in_order) == sorted(expected, key=in_order)
    assert list(computed[0]) == list(expected[0])


def test_the_types_of_gold_are_these(trips: DataFrame) -> None:
    def types(frame: DataFrame) -> dict[str, str]:
        return {field.name: field.dataType.simpleString() for field in frame.schema}

    assert types(fct_daily_trips(trips)) == {
        "month": "string",
        "pickup_date": "date",
        "trips": "bigint",
        "passengers": "bigint",
        **dict.fromkeys(["distance_miles", "fares", "tips", "tolls", "revenue"], "decimal(18,2)"),
        **dict.fromkeys(
            ["avg_distance_miles", "avg_fare", "avg_tip", "avg_revenue", "avg_duration_minutes"], "decimal(12,2)"
        ),
    }
    assert types(fct_hourly_revenue(trips)) == {
        "month": "string",
        "pickup_date": "date",
        "pickup_hour": "int",
        "trips": "bigint",
        **dict.fromkeys(["revenue", "card_revenue", "cash_revenue", "other_revenue", "tips"], "decimal(18,2)"),
        "avg_revenue": "decimal(12,2)",
    }
    assert types(fct_trip_distance_stats(trips)) == {
        "month": "string",
        "distance_bucket": "string",
        "from_miles": "int",
        "trips": "bigint",
        "revenue": "decimal(18,2)",
        "avg_distance_miles": "decimal(12,2)",
        "avg_fare": "decimal(12,2)",
        "median_duration_seconds": "bigint",
        "p90_duration_seconds": "bigint",
    }


def test_an_average_on_a_half_is_rounded_up(spark: SparkSession) -> None:
    from datetime import date

    def trip(total: str) -> tuple[Any, ...]:
        money = Decimal(total)
        return ("2026-01", date(2026, 1, 1), 5, 1, Decimal(1), money, money, money, money, 1, 60)

    rows = spark.createDataFrame([trip("1.00"), trip("1.01")], SHAPE)
    assert fct_daily_trips(rows).first()["avg_revenue"] == Decimal("1.01")  # type: ignore[index]


def test_tens_of_thousands_of_cents_add_up_exactly(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    cents = spark.range(100_000).select(
        F.lit("2026-01").alias("month"),
        F.lit("2026-01-01").cast("date").alias("pickup_date"),
        F.lit(5).alias("pickup_hour"),
        F.lit(1).alias("passenger_count"),
        F.lit("0.10").cast("decimal(10,2)").alias("trip_distance"),
        *[F.lit("0.10").cast("decimal(12,2)").alias(f"{name}_amount") for name in ("fare", "tip", "tolls", "total")],
        F.lit(1).alias("payment_type_id"),
        F.lit(60).cast("bigint").alias("duration_seconds"),
    )
    row = fct_daily_trips(cents).first()
    assert row is not None
    assert (row["revenue"], row["distance_miles"]) == (Decimal("10000.00"), Decimal("10000.00"))
