"""Silver types, names and derives; it drops nothing, which is for the rules to do."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.support.frames import assert_same_frame
from tests.support.taxi_trips import NOW, PUBLISHED, published

from lakehouse.pipelines.taxi.silver import PAYMENT_TYPES, TRIP_KEY, stg_yellow_trips

TRIP = """vendor_id int, pickup_at timestamp_ntz, dropoff_at timestamp_ntz, pickup_date date, pickup_hour int,
    duration_seconds bigint, duration_minutes decimal(12,2), passenger_count int, trip_distance decimal(10,2),
    speed_mph decimal(14,2), rate_code_id int, rate_code string, store_and_forward boolean, pickup_location_id int,
    dropoff_location_id int, payment_type_id int, payment_type string, fare_amount decimal(12,2), extra decimal(12,2),
    mta_tax decimal(12,2), tip_amount decimal(12,2), tolls_amount decimal(12,2), improvement_surcharge decimal(12,2),
    total_amount decimal(12,2), congestion_surcharge decimal(12,2), airport_fee decimal(12,2),
    cbd_congestion_fee decimal(12,2), tip_share decimal(16,4), month string, source_file string, ingested_at timestamp"""

pytestmark = pytest.mark.spark


def trips(spark: SparkSession, *rows: dict[str, Any]) -> list[Any]:
    return stg_yellow_trips(spark.createDataFrame(list(rows), PUBLISHED)).collect()


def test_a_trip_has_types_names_and_what_follows_from_them(spark: SparkSession) -> None:
    expected = (
        2,
        datetime(2026, 1, 14, 23, 50),
        datetime(2026, 1, 15, 0, 3, 20),
        date(2026, 1, 14),
        23,
        800,
        Decimal("13.33"),
        1,
        Decimal("3.25"),
        Decimal("14.63"),  # 3.25 * 3600 / 800 = 14.625
        1,
        "standard",
        False,
        138,
        265,
        1,
        "credit card",
        *(Decimal(amount) for amount in ("15.00", "1.00", "0.50", "3.10", "0.00", "1.00", "20.60", "2.50")),
        None,
        Decimal("0.75"),
        Decimal("0.2067"),
        "2026-01",
        "yellow_tripdata_2026-01.parquet",
        NOW,
    )
    result = stg_yellow_trips(spark.createDataFrame([published()], PUBLISHED))
    assert_same_frame(result, spark.createDataFrame([expected], TRIP))


def test_speed_and_tip_share_are_null_where_they_mean_nothing(spark: SparkSession) -> None:
    at = datetime(2026, 1, 14, 12)
    standing, free, lost = trips(
        spark,
        published(tpep_pickup_datetime=at, tpep_dropoff_datetime=at),
        published(fare_amount=0.0),
        published(tpep_dropoff_datetime=None, trip_distance=None, fare_amount=None),
    )
    assert (standing["duration_seconds"], standing["speed_mph"]) == (0, None)
    assert free["tip_share"] is None
    assert (lost["duration_seconds"], lost["speed_mph"], lost["tip_share"]) == (None, None, None)


def test_a_trip_that_ends_before_it_starts_has_a_negative_duration_and_no_speed(spark: SparkSession) -> None:
    (row,) = trips(spark, published(tpep_dropoff_datetime=datetime(2026, 1, 14, 23, 40)))
    assert (row["duration_seconds"], row["duration_minutes"], row["speed_mph"]) == (-600, Decimal("-10.00"), None)


def test_the_wall_clock_does_not_depend_on_the_zone_of_the_session(spark: SparkSession) -> None:
    over_the_change = published(
        tpep_pickup_datetime=datetime(2026, 3, 8, 1, 55), tpep_dropoff_datetime=datetime(2026, 3, 8, 3, 5)
    )
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        (row,) = trips(spark, over_the_change)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert (row["pickup_at"].hour, row["pickup_hour"], row["duration_seconds"]) == (1, 1, 4200)


def test_a_clock_that_was_never_set_has_a_day_and_an_hour_too(spark: SparkSession) -> None:
    long_ago, never = datetime(1969, 12, 31, 23, 59, 50), None
    rows = trips(spark, *(published(tpep_pickup_datetime=at) for at in (long_ago, never)))
    assert [(row["pickup_date"], row["pickup_hour"]) for row in rows] == [(date(1969, 12, 31), 23), (None, None)]


@pytest.mark.parametrize("ansi", ["true", "false"], ids=["strict casts", "lenient casts"])
def test_an_amount_that_is_none_is_null(spark: SparkSession, ansi: str) -> None:
    odd = [float("nan"), float("inf"), -float("inf"), 1e15]
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        rows = trips(spark, *(published(fare_amount=x, total_amount=x, trip_distance=x) for x in odd))
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    assert [row[name] for row in rows for name in ("fare_amount", "total_amount", "trip_distance")] == [None] * 12


def test_amounts_are_rounded_half_up_to_the_cent(spark: SparkSession) -> None:
    (row,) = trips(spark, published(fare_amount=2.675, tip_amount=0.1 + 0.2, total_amount=-1.005))
    assert [str(row[name]) for name in ("fare_amount", "tip_amount", "total_amount")] == ["2.68", "0.30", "-1.01"]


def test_codes_have_names_and_unknown_ones_have_none(spark: SparkSession) -> None:
    rows = trips(spark, *(published(payment_type=code) for code in [*PAYMENT_TYPES, 9, None]))
    assert [row["payment_type"] for row in rows] == [*PAYMENT_TYPES.values(), None, None]
    (unknown,) = trips(spark, published(RatecodeID=99, store_and_fwd_flag=" y "))
    assert (unknown["rate_code"], unknown["store_and_forward"]) == ("unknown", True)


def test_the_key_is_made_of_columns_of_the_table(spark: SparkSession) -> None:
    result = stg_yellow_trips(spark.createDataFrame([published()], PUBLISHED))
    assert set(TRIP_KEY) <= set(result.columns)
