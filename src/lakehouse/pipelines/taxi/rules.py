"""Rules and checks of taxi trips and of the tables that are computed from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse.pipelines import functions as F
from lakehouse.pipelines.taxi import silver
from lakehouse.quality import Check, CheckContext, Finding, accepted, at_least, between, expect, not_null, reconciles

if TYPE_CHECKING:
    from pyspark.sql import Column

LONGEST_TRIP_MILES = 200
LONGEST_TRIP_SECONDS = 86_400
FASTEST_TRIP_MPH = 100
MOST_PASSENGERS = 9
#: The city's zones; the last two stand for unknown locations.
LAST_ZONE = 265
#: With more trips without a pickup time, the file is not a month of trips.
MOST_WITHOUT_PICKUP = 0.01


def _ends_after_it_starts() -> Column:
    return F.col("dropoff_at") > F.col("pickup_at")


def _goes_somewhere() -> Column:
    return (F.col("trip_distance") > 0) & (F.col("trip_distance") <= LONGEST_TRIP_MILES)


def _starts_in_its_month() -> Column:
    # Integers: formatting every trip's month as text took longer than all other rules together.
    year, month = F.substring("month", 1, 4).cast("int"), F.substring("month", 6, 2).cast("int")
    return (F.year("pickup_date") == year) & (F.month("pickup_date") == month)


def _pickup_times_are_there(context: CheckContext) -> Finding:
    counted = context.query("SELECT count(*) AS trips, count(tpep_pickup_datetime) AS timed FROM {rows}")[0]
    rows, timed = int(counted["trips"]), int(counted["timed"])
    passed = rows > 0 and rows - timed <= rows * MOST_WITHOUT_PICKUP
    return Finding(passed, rows - timed, f"{rows - timed} of {rows} have none")


PICKUP_TIMES = Check("pickup_times_are_there", _pickup_times_are_there, portable=True)


def agrees_with(silver: str) -> Check:
    """Trips and revenue equal those of the silver table."""
    # Null without rows, as a sum is.
    of_silver = ("nullif(count(*), 0)", "sum(total_amount)")
    return reconciles(silver, own=("sum(trips)", "sum(revenue)"), other=of_silver)


TRIP_RULES = (
    not_null("pickup_at"),
    not_null("dropoff_at"),
    not_null("trip_distance"),
    not_null("total_amount"),
    # Refunds and voided trips are published as the same trip once more with all amounts negative.
    at_least("fare_amount", 0),
    at_least("total_amount", 0),
    expect("goes_somewhere", _goes_somewhere),
    expect("ends_after_it_starts", _ends_after_it_starts),
    between("duration_seconds", 0, LONGEST_TRIP_SECONDS),
    expect("starts_in_its_month", _starts_in_its_month),
    between("passenger_count", 1, MOST_PASSENGERS, severity="warn"),
    accepted("payment_type_id", silver.PAYMENT_TYPES, severity="warn"),
    accepted("rate_code_id", silver.RATE_CODES, severity="warn"),
    between("pickup_location_id", 1, LAST_ZONE, severity="warn"),
    between("dropoff_location_id", 1, LAST_ZONE, severity="warn"),
    between("speed_mph", 0, FASTEST_TRIP_MPH, severity="warn"),
)
