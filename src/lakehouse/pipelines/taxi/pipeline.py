"""New York's yellow taxis: the city's monthly files become trips that are believed, and what they drove and earned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse.pipelines.columns import exact_sum
from lakehouse.pipelines.model import Batch, Pipeline, Reading, Source, Table
from lakehouse.pipelines.partitions import Months
from lakehouse.pipelines.taxi import bronze, gold, silver, source
from lakehouse.quality import (
    Check,
    CheckContext,
    Finding,
    accepted,
    at_least,
    between,
    expect,
    not_null,
    reconciles,
    steady_row_count,
    unique,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BRONZE, SILVER = "bronze.yellow_trips", "silver.stg_yellow_trips"

LONGEST_TRIP_MILES = 200
LONGEST_TRIP_SECONDS = 86_400
FASTEST_TRIP_MPH = 100
MOST_PASSENGERS = 9
#: The city's zones, of which the last two stand for unknown places.
LAST_ZONE = 265
#: With more of them, the file is not what we take it for.
MOST_WITHOUT_PICKUP = 0.01
FEWEST_BELIEVED = 0.5


def _read(reading: Reading) -> Batch:
    month = source.read(reading)
    return Batch(month.rows, notes=month.notes)


def _ends_after_it_starts() -> Column:
    from pyspark.sql import functions as F

    return F.col("dropoff_at") > F.col("pickup_at")


def _goes_somewhere() -> Column:
    from pyspark.sql import functions as F

    return (F.col("trip_distance") > 0) & (F.col("trip_distance") <= LONGEST_TRIP_MILES)


def _starts_in_its_month() -> Column:
    from pyspark.sql import functions as F

    # In numbers: to write every trip's month as text took longer than the other rules together.
    year, month = F.substring("month", 1, 4).cast("int"), F.substring("month", 6, 2).cast("int")
    return (F.year("pickup_date") == year) & (F.month("pickup_date") == month)


def _pickup_times_are_there(at: CheckContext) -> Finding:
    from pyspark.sql import functions as F

    counted = at.rows.select(F.count(F.lit(1)), F.count("tpep_pickup_datetime")).first()
    rows, timed = counted if counted else (0, 0)
    return Finding(
        rows > 0 and rows - timed <= rows * MOST_WITHOUT_PICKUP, rows - timed, f"{rows - timed} of {rows} have none"
    )


def _most_are_believed(at: CheckContext) -> Finding:
    published, believed = at.table(BRONZE).count(), at.rows.count()
    fine = believed >= published * FEWEST_BELIEVED
    return Finding(fine, published - believed, f"{believed} of {published} published rows are left")


def _trips_and_revenue_of_gold(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    return rows.select(F.struct(F.sum("trips").alias("trips"), F.sum("revenue").alias("revenue")))


def _trips_and_revenue_of_silver(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    some = F.when(F.count(F.lit(1)) > 0, F.count(F.lit(1)))  # no rows at all: null, as the sum of nothing is
    revenue = exact_sum(F.col("total_amount"), gold.MONEY)
    return rows.select(F.struct(some.alias("trips"), revenue.alias("revenue")))


_agrees_with_silver = reconciles(SILVER, _trips_and_revenue_of_gold, _trips_and_revenue_of_silver)

yellow_trips = Table(
    BRONZE,
    bronze.yellow_trips,
    inputs=[Source("raw.yellow_trips", _read, source.available, source.SETTINGS)],
    partition_by="month",
    one_snapshot_each=True,
    checks=[Check("pickup_times_are_there", _pickup_times_are_there)],
)

stg_yellow_trips = Table(
    SILVER,
    silver.stg_yellow_trips,
    inputs=[BRONZE],
    key=silver.TRIP_KEY,
    newest=["ingested_at", "source_file"],
    partition_by="month",
    rules=[
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
    ],
    checks=[
        Check("most_are_believed", _most_are_believed),
        # A lake's second month doubles its rows, which is as steady as it gets.
        steady_row_count(drift=1.5),
    ],
)

fct_daily_trips = Table(
    "gold.fct_daily_trips",
    gold.fct_daily_trips,
    inputs=[SILVER],
    key=["pickup_date"],
    partition_by="month",
    checks=[unique("pickup_date"), _agrees_with_silver],
)

fct_hourly_revenue = Table(
    "gold.fct_hourly_revenue",
    gold.fct_hourly_revenue,
    inputs=[SILVER],
    key=["pickup_date", "pickup_hour"],
    partition_by="month",
    checks=[unique("pickup_date", "pickup_hour"), _agrees_with_silver],
)

fct_trip_distance_stats = Table(
    "gold.fct_trip_distance_stats",
    gold.fct_trip_distance_stats,
    inputs=[SILVER],
    key=["month", "distance_bucket"],
    partition_by="month",
    checks=[unique("month", "distance_bucket"), _agrees_with_silver],
)

taxi = Pipeline(
    name="taxi",
    description="New York's yellow taxi trips, month by month",
    partitions=Months("month"),
    tables=(yellow_trips, stg_yellow_trips, fct_daily_trips, fct_hourly_revenue, fct_trip_distance_stats),
)
