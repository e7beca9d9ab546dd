"""Yellow taxi trips with types, names of codes, and derived columns; rules.py says which are valid."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from lakehouse.pipelines import functions as F
from lakehouse.pipelines.columns import decimal, hundredths, quotient
from lakehouse.pipelines.taxi.bronze import AMOUNTS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MONEY = "decimal(12,2)"
MILES = "decimal(10,2)"
MINUTES = "decimal(12,2)"
SPEED = "decimal(14,2)"
SHARE = "decimal(16,4)"

#: Rows that agree in these columns are one trip that was published twice. A refund has negative amounts, so it is a
#: row of its own.
TRIP_KEY = (
    "vendor_id",
    "pickup_at",
    "dropoff_at",
    "pickup_location_id",
    "dropoff_location_id",
    "trip_distance",
    "payment_type_id",
    "total_amount",
)

PAYMENT_TYPES = {
    0: "flex fare",
    1: "credit card",
    2: "cash",
    3: "no charge",
    4: "dispute",
    5: "unknown",
    6: "voided",
}
RATE_CODES = {
    1: "standard",
    2: "JFK",
    3: "Newark",
    4: "Nassau or Westchester",
    5: "negotiated",
    6: "group ride",
    99: "unknown",
}

_LARGEST_MONEY = 9_999_999_999.0
_LARGEST_MILES = 99_999_999.0
_HUNDRED = 100
#: A tip share has four decimal digits.
_SHARE_UNITS = 10_000
_SECONDS_PER_MINUTE = 60
_SECONDS_PER_HOUR = 3600
_SECONDS_PER_DAY = 86_400


def stg_yellow_trips(bronze: DataFrame) -> DataFrame:
    """One row per trip: amounts to the cent, New York wall time, codes with their names, durations and speeds.

    Rows that break a rule are in stg_yellow_trips__rejected, each with its reasons.
    """
    return bronze.transform(_typed).transform(_derived)


def _typed(bronze: DataFrame) -> DataFrame:
    """Types and names; miles and amounts are integers of hundredths."""
    return bronze.select(
        F.col("VendorID").cast("int").alias("vendor_id"),
        F.col("tpep_pickup_datetime").cast("timestamp_ntz").alias("pickup_at"),
        F.col("tpep_dropoff_datetime").cast("timestamp_ntz").alias("dropoff_at"),
        F.col("passenger_count").cast("int").alias("passenger_count"),
        hundredths(F.col("trip_distance"), _LARGEST_MILES).alias("trip_distance"),
        F.col("RatecodeID").cast("int").alias("rate_code_id"),
        _named("RatecodeID", RATE_CODES).alias("rate_code"),
        _yes_or_no("store_and_fwd_flag").alias("store_and_forward"),
        F.col("PULocationID").cast("int").alias("pickup_location_id"),
        F.col("DOLocationID").cast("int").alias("dropoff_location_id"),
        F.col("payment_type").cast("int").alias("payment_type_id"),
        _named("payment_type", PAYMENT_TYPES).alias("payment_type"),
        *[hundredths(F.col(amount), _LARGEST_MONEY).alias(amount) for amount in AMOUNTS],
        _wall_seconds("tpep_pickup_datetime").alias("_picked_up"),
        # When the clocks change, the duration is an hour off.
        (_wall_seconds("tpep_dropoff_datetime") - _wall_seconds("tpep_pickup_datetime")).alias("duration_seconds"),
        "month",
        "source_file",
        "ingested_at",
    )


def _derived(trips: DataFrame) -> DataFrame:
    seconds, miles = F.col("duration_seconds"), F.col("trip_distance")
    second_of_day = F.pmod(F.col("_picked_up"), F.lit(_SECONDS_PER_DAY))
    day = F.call_function("div", F.col("_picked_up") - second_of_day, F.lit(_SECONDS_PER_DAY))
    fare, tip = F.col("fare_amount"), F.col("tip_amount")
    minutes = quotient(seconds * _HUNDRED, F.lit(_SECONDS_PER_MINUTE))
    mph = F.when(seconds > 0, quotient(miles * _SECONDS_PER_HOUR, seconds))
    tip_share = F.when(fare > 0, quotient(tip * _SHARE_UNITS, fare))
    return trips.select(
        "vendor_id",
        "pickup_at",
        "dropoff_at",
        F.date_from_unix_date(day.cast("int")).alias("pickup_date"),
        F.call_function("div", second_of_day, F.lit(_SECONDS_PER_HOUR)).cast("int").alias("pickup_hour"),
        "duration_seconds",
        decimal(minutes, MINUTES).alias("duration_minutes"),
        "passenger_count",
        decimal(miles, MILES).alias("trip_distance"),
        decimal(mph, SPEED).alias("speed_mph"),
        "rate_code_id",
        "rate_code",
        "store_and_forward",
        "pickup_location_id",
        "dropoff_location_id",
        "payment_type_id",
        "payment_type",
        *[decimal(F.col(amount), MONEY).alias(amount) for amount in AMOUNTS],
        decimal(tip_share, SHARE, unit=1 / Decimal(_SHARE_UNITS)).alias("tip_share"),
        "month",
        "source_file",
        "ingested_at",
    )


def _yes_or_no(column: str) -> Column:
    letter = F.upper(F.trim(F.col(column)))
    return F.when(letter == "Y", F.lit(True)).when(letter == "N", F.lit(False))


def _named(column: str, names: dict[int, str]) -> Column:
    """The name of a code; null for an unknown code."""
    named = F.lit(None).cast("string")
    for code, name in names.items():
        named = F.when(F.col(column) == code, F.lit(name)).otherwise(named)
    return named


def _wall_seconds(at: str) -> Column:
    """Wall time in seconds since 1970, independent of any time zone."""
    # Spark's functions for days and hours create Java objects on each call, which takes a microsecond per trip.
    return F.unix_timestamp(F.col(at).cast("timestamp_ntz"))
