"""Trips and revenue of yellow taxis by day, hour and distance. Sums are exact, averages are rounded half up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse.pipelines import functions as F
from lakehouse.pipelines.columns import exact_sum

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MONEY = "decimal(18,2)"
AVERAGE = "decimal(12,2)"
#: The divisor's type: with it, the quotient of a sum of cents is rounded only once.
_COUNT = "decimal(10,0)"

#: The first mile of each bucket, and its name; the last bucket has no end.
BUCKETS = ((0, "0-1"), (1, "1-2"), (2, "2-5"), (5, "5-10"), (10, "10-20"), (20, "20+"))

_CARD, _CASH = 1, 2
_TENTHS = 10


def fct_daily_trips(trips: DataFrame) -> DataFrame:
    """Trips, passengers, miles and amounts of each day, by pickup date."""
    per_day = trips.groupBy("month", "pickup_date").agg(
        F.count(F.lit(1)).alias("trips"),
        F.coalesce(F.sum(F.col("passenger_count").cast("bigint")), F.lit(0).cast("bigint")).alias("passengers"),
        _sum("trip_distance").alias("distance_miles"),
        _sum("fare_amount").alias("fares"),
        _sum("tip_amount").alias("tips"),
        _sum("tolls_amount").alias("tolls"),
        _sum("total_amount").alias("revenue"),
        F.sum("duration_seconds").alias("_seconds"),
    )
    return per_day.select(
        "month",
        "pickup_date",
        "trips",
        "passengers",
        "distance_miles",
        "fares",
        "tips",
        "tolls",
        "revenue",
        _average("distance_miles").alias("avg_distance_miles"),
        _average("fares").alias("avg_fare"),
        _average("tips").alias("avg_tip"),
        _average("revenue").alias("avg_revenue"),
        _minutes(F.col("_seconds"), F.col("trips")).alias("avg_duration_minutes"),
    )


def fct_hourly_revenue(trips: DataFrame) -> DataFrame:
    """Trips and revenue of each hour of each day, and the revenue by card and in cash."""
    by_card = F.col("payment_type_id") == _CARD
    in_cash = F.col("payment_type_id") == _CASH
    per_hour = trips.groupBy("month", "pickup_date", "pickup_hour").agg(
        F.count(F.lit(1)).alias("trips"),
        _sum("total_amount").alias("revenue"),
        _sum("total_amount", where=by_card).alias("card_revenue"),
        _sum("total_amount", where=in_cash).alias("cash_revenue"),
        _sum("tip_amount").alias("tips"),
    )
    neither = F.col("revenue") - F.col("card_revenue") - F.col("cash_revenue")
    return per_hour.select(
        "month",
        "pickup_date",
        "pickup_hour",
        "trips",
        "revenue",
        "card_revenue",
        "cash_revenue",
        neither.cast(MONEY).alias("other_revenue"),
        "tips",
        _average("revenue").alias("avg_revenue"),
    )


def fct_trip_distance_stats(trips: DataFrame) -> DataFrame:
    """Trips of each month by distance: count, revenue, averages, and the median and 90th percentile of the duration.

    The median is the shortest duration that at least half of the trips do not exceed; the 90th percentile likewise.
    """
    bucketed = trips.select("*", _bucket_start().alias("from_miles"))
    stats = (
        bucketed.transform(_per_duration)
        .groupBy("month", "from_miles")
        .agg(
            F.sum("_trips").alias("trips"),
            F.sum("_fares").cast(MONEY).alias("fares"),
            F.sum("_revenue").cast(MONEY).alias("revenue"),
            F.sum("_miles").cast(MONEY).alias("_miles"),
            _percentile(tenths=5).alias("median_duration_seconds"),
            _percentile(tenths=9).alias("p90_duration_seconds"),
        )
    )
    return stats.select(
        "month",
        _bucket_name().alias("distance_bucket"),
        "from_miles",
        "trips",
        "revenue",
        _average("_miles").alias("avg_distance_miles"),
        _average("fares").alias("avg_fare"),
        "median_duration_seconds",
        "p90_duration_seconds",
    )


def _per_duration(bucketed: DataFrame) -> DataFrame:
    """One row per bucket and duration, with the number of trips of the bucket that take at most that long.

    Durations repeat, so counting them sorts far fewer rows than sorting the trips.
    """
    from pyspark.sql import Window

    bucket = Window.partitionBy("month", "from_miles")
    up_to_here = bucket.orderBy("duration_seconds").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    whole_bucket = bucket.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    counted = bucketed.groupBy("month", "from_miles", "duration_seconds").agg(
        F.count(F.lit(1)).alias("_trips"),
        exact_sum(F.col("fare_amount"), MONEY).alias("_fares"),
        exact_sum(F.col("total_amount"), MONEY).alias("_revenue"),
        exact_sum(F.col("trip_distance"), MONEY).alias("_miles"),
    )
    return counted.select(
        "*", F.sum("_trips").over(up_to_here).alias("_reached"), F.sum("_trips").over(whole_bucket).alias("_all")
    )


def _percentile(tenths: int) -> Column:
    """The shortest duration that this many tenths of a bucket's trips do not exceed."""
    enough = F.col("_reached") * _TENTHS >= F.col("_all") * tenths
    return F.min(F.when(enough, F.col("duration_seconds")))


def _sum(column: str, where: Column | None = None) -> Column:
    amount = F.col(column) if where is None else F.when(where, F.col(column))
    return F.coalesce(exact_sum(amount, MONEY), F.lit(0).cast(MONEY))


def _average(total: str) -> Column:
    return F.round(F.col(total) / F.col("trips").cast(_COUNT), 2).cast(AVERAGE)


def _minutes(seconds: Column, trips: Column) -> Column:
    return F.round(seconds.cast("decimal(18,0)") / (trips * 60).cast(_COUNT), 2).cast(AVERAGE)


def _bucket_start() -> Column:
    start = F.lit(BUCKETS[0][0])
    for miles, _ in BUCKETS[1:]:
        start = F.when(F.col("trip_distance") >= miles, F.lit(miles)).otherwise(start)
    return start


def _bucket_name() -> Column:
    name = F.lit(BUCKETS[0][1])
    for miles, label in BUCKETS[1:]:
        name = F.when(F.col("from_miles") == miles, F.lit(label)).otherwise(name)
    return name
