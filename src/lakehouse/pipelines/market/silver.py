"""Minute bars with exact times and prices, and the trading session of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse.pipelines import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

NEW_YORK = "America/New_York"
MINUTE_US = 60_000_000
DAY_US = 24 * 60 * MINUTE_US

#: When the sessions begin, in microseconds since midnight in New York.
PRE_BEGINS = 4 * 60 * MINUTE_US
REGULAR_BEGINS = (9 * 60 + 30) * MINUTE_US
POST_BEGINS = 16 * 60 * MINUTE_US
POST_ENDS = 20 * 60 * MINUTE_US


def minute_aggs(bronze: DataFrame) -> DataFrame:
    """Minute bars of stocks, one per ticker and minute, with their New York session.

    `date` is the day of the bar's file. A bar of another day in New York has no `session`: it stays in the partition
    of its file, where a rule finds it.
    """
    return (
        bronze.withColumn("bar_at", to_timestamp(F.col("window_start")))
        .withColumn("_since_midnight", since_midnight(F.col("bar_at"), F.col("date")))
        .select(
            "ticker",
            "bar_at",
            "date",
            session(F.col("_since_midnight")).alias("session"),
            F.col("open").cast("decimal(18,6)").alias("open"),
            F.col("high").cast("decimal(18,6)").alias("high"),
            F.col("low").cast("decimal(18,6)").alias("low"),
            F.col("close").cast("decimal(18,6)").alias("close"),
            F.col("volume").cast("bigint").alias("volume"),
            F.col("transactions").cast("bigint").alias("trades"),
            "source_file",
            "file_modified_at",
            "ingested_at",
            "unparsed",
        )
    )


def to_timestamp(nanoseconds: Column) -> Column:
    """Nanoseconds since 1970 as a timestamp in microseconds."""
    # `/` divides doubles, which are off by up to 128 ns at this size; decimals are slow.
    return F.timestamp_micros(F.call_function("div", nanoseconds, F.lit(1000)))


def since_midnight(at: Column, day: Column) -> Column:
    """Microseconds on New York's clock from the start of a day to a timestamp; negative before it."""
    # from_utc_timestamp applies New York's offset and the rest is integer arithmetic, so the session's time zone does
    # not matter.
    clock = F.unix_micros(F.from_utc_timestamp(at, NEW_YORK))
    return clock - F.unix_date(day) * F.lit(DAY_US)


def session(since: Column) -> Column:
    """The session at a time since midnight; null if it is another day."""
    return (
        F.when((since < 0) | (since >= DAY_US), F.lit(None))
        .when(since.between(REGULAR_BEGINS, POST_BEGINS - 1), "regular")
        .when(since.between(PRE_BEGINS, REGULAR_BEGINS - 1), "pre")
        .when(since.between(POST_BEGINS, POST_ENDS - 1), "post")
        .when(since.isNotNull(), "closed")
    )
