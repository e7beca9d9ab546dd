"""Daily bars, volatility and overnight gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse.pipelines import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: An older close does not count as the previous close: the ticker was not traded, or not published, in between.
GAP_LOOKBACK_DAYS = 7
#: The last digits of a sum of doubles depend on its order; rounding removes them.
RATIO_DECIMALS = 9


def daily_bars(minutes: DataFrame) -> DataFrame:
    """One bar per ticker and day, of the regular session (09:30 to 16:00 in New York).

    `vwap` is the average of the minutes' typical prices, (high + low + close) / 3, weighted by volume; null for a day
    without volume.
    """
    # The sum of three prices is divided once, at the end; everything before the division is exact.
    thrice_traded = F.sum((F.col("high") + F.col("low") + F.col("close")) * F.col("volume"))
    bars = regular(minutes).groupBy("ticker", "date")
    days = bars.agg(
        F.min_by("open", "bar_at").alias("open"),
        F.max("high").alias("high"),
        F.min("low").alias("low"),
        F.max_by("close", "bar_at").alias("close"),
        F.sum("volume").alias("volume"),
        thrice_traded.alias("_thrice_traded"),
        F.sum("trades").alias("trades"),
    )
    vwap = F.col("_thrice_traded").cast("double") / (F.col("volume") * 3).cast("double")
    return days.select(
        "ticker",
        "date",
        "open",
        "high",
        "low",
        "close",
        "volume",
        F.when(F.col("volume") > 0, vwap).cast("decimal(18,6)").alias("vwap"),
        "trades",
    )


def volatility(minutes: DataFrame, days: DataFrame) -> DataFrame:
    """The price movement of a ticker on a day: within the regular session, and since the previous close.

    `realised_volatility` is the square root of the sum of squared log returns between the closes of neighbouring minute
    bars, not annualised (multiply by the square root of 252); null with fewer than two `bars`. `gap` is
    open / previous close - 1, where the previous close is that of the ticker's last day within the 7 days before;
    null if there is none.
    """
    return (
        squared_returns(minutes)
        .alias("moves")
        # Both sides are grouped by the join key, so each row matches at most once.
        .join(overnight_gaps(days).alias("gaps"), on=["ticker", "date"], how="left")
        .select(
            "ticker",
            "date",
            F.round(F.sqrt("_squares"), RATIO_DECIMALS).alias("realised_volatility"),
            F.round("_gap", RATIO_DECIMALS).alias("gap"),
            "bars",
        )
    )


def regular(minutes: DataFrame) -> DataFrame:
    """The bars of the regular session."""
    return minutes.where(F.col("session") == "regular")


def squared_returns(minutes: DataFrame) -> DataFrame:
    """The sum of the squared log returns between neighbouring bars, per ticker and day."""
    from pyspark.sql import Window

    in_order = Window.partitionBy("ticker", "date").orderBy("bar_at")
    # A difference of logarithms needs no division.
    levels = regular(minutes).select("ticker", "date", "bar_at", F.log(F.col("close").cast("double")).alias("_level"))
    moves = levels.withColumn("_move", F.col("_level") - F.lag("_level").over(in_order))
    return moves.groupBy("ticker", "date").agg(
        F.sum(F.col("_move") * F.col("_move")).alias("_squares"), F.count(F.lit(1)).alias("bars")
    )


def overnight_gaps(days: DataFrame) -> DataFrame:
    """The change from the previous close to the open, as a share of that close."""
    from pyspark.sql import Window

    in_order = Window.partitionBy("ticker").orderBy("date")
    # A run of many days reads further back than a run of one day, and must return the same gap.
    recent = F.date_diff(F.col("date"), F.lag("date").over(in_order)) <= GAP_LOOKBACK_DAYS
    previous = F.when(recent, F.lag("close").over(in_order)).cast("double")
    return days.select("ticker", "date", (F.col("open").cast("double") / previous - 1).alias("_gap"))
