"""New York's yellow taxis: monthly files to trips, and their daily, hourly and distance statistics."""

from __future__ import annotations

from lakehouse.pipelines.model import Pipeline, Source, Table
from lakehouse.pipelines.partitions import Months
from lakehouse.pipelines.taxi import bronze, gold, silver, source
from lakehouse.pipelines.taxi.rules import PICKUP_TIMES, TRIP_RULES, agrees_with
from lakehouse.quality import keeps_most_of, steady_row_count, unique

BRONZE, SILVER = "bronze.yellow_trips", "silver.stg_yellow_trips"

yellow_trips = Table(
    BRONZE,
    bronze.yellow_trips,
    inputs=[Source("raw.yellow_trips", source.read, source.available, source.SETTINGS)],
    partition_by="month",
    snapshot_per_partition=True,
    checks=[PICKUP_TIMES],
)

stg_yellow_trips = Table(
    SILVER,
    silver.stg_yellow_trips,
    inputs=[BRONZE],
    key=silver.TRIP_KEY,
    newest=["ingested_at", "source_file"],
    partition_by="month",
    rules=TRIP_RULES,
    checks=[keeps_most_of(BRONZE), steady_row_count(drift=1.5)],  # the second month doubles the rows
)

fct_daily_trips = Table(
    "gold.fct_daily_trips",
    gold.fct_daily_trips,
    inputs=[SILVER],
    key=["pickup_date"],
    partition_by="month",
    checks=[unique("pickup_date"), agrees_with(SILVER)],
)

fct_hourly_revenue = Table(
    "gold.fct_hourly_revenue",
    gold.fct_hourly_revenue,
    inputs=[SILVER],
    key=["pickup_date", "pickup_hour"],
    partition_by="month",
    checks=[unique("pickup_date", "pickup_hour"), agrees_with(SILVER)],
)

fct_trip_distance_stats = Table(
    "gold.fct_trip_distance_stats",
    gold.fct_trip_distance_stats,
    inputs=[SILVER],
    key=["month", "distance_bucket"],
    partition_by="month",
    checks=[unique("month", "distance_bucket"), agrees_with(SILVER)],
)

taxi = Pipeline(
    name="taxi",
    description="New York's yellow taxi trips, month by month",
    partitions=Months("month"),
    tables=(yellow_trips, stg_yellow_trips, fct_daily_trips, fct_hourly_revenue, fct_trip_distance_stats),
)
