"""What a day of trading came to: bars, volatility and overnight gaps."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

#: A close older than that is no previous close: the ticker was not traded, or not published, in between.
GAP_LOOKBACK_DAYS = 7
#: Sums of doubles depend on their order in the last digits, which nobody shall see.
RATIO_DECIMALS = 9


def daily_bars(minutes: DataFrame) -> DataFrame:
    """One bar per ticker and day, of the regular session alone (09:30 to 16:00 in New York).

    `vwap` is the average of the minutes' typical prices, (high + low + close) / 3, weighted by volume; null for a day
    without volume.
    """
    # Three prices are added and the sum divided at the end, so that everything before the one division is exact.
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
    """How much a ticker moved on a day, within the regular session and since the close before it.

    `realised_volatility` is the root of the summed squares of the log returns from one minute bar's close to the next,
    for that day and not annualised (times the root of 252 it would be); null with fewer than two `bars`. `gap` is
    open / previous close - 1, where the previous close is that of the ticker's last day within the 7 days before;
    null if there is none.
    """
    return (
        squared_returns(minutes)
        .alias("moves")
        # Both sides are grouped by it, so a row has at most one partner.
        .join(gaps(days).alias("gaps"), on=["ticker", "date"], how="left")
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
    in_order = Window.partitionBy("ticker", "date").orderBy("bar_at")
    # A difference of logarithms takes one of them per bar; that of a quotient would be one as well, and a division.
    levels = regular(minutes).select("ticker", "date", "bar_at", F.log(F.col("close").cast("double")).alias("_level"))
    moves = levels.withColumn("_move", F.col("_level") - F.lag("_level").over(in_order))
    return moves.groupBy("ticker", "date").agg(
        F.sum(F.col("_move") * F.col("_move")).alias("_squares"), F.count(F.lit(1)).alias("bars")
    )


def gaps(days: DataFrame) -> DataFrame:
    """From the last close before a day to its open, as a share of that close."""
    in_order = Window.partitionBy("ticker").orderBy("date")
    # The rows may reach further back than a single day's run would read, and must not tell more for it.
    recent = F.date_diff(F.col("date"), F.lag("date").over(in_order)) <= GAP_LOOKBACK_DAYS
    previous = F.when(recent, F.lag("close").over(in_order)).cast("double")
    return days.select("ticker", "date", (F.col("open").cast("double") / previous - 1).alias("_gap"))
