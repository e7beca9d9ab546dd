"""Stock minute bars: gzip CSV flat files, one per day, to daily bars and volatility."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse.pipelines.market import bronze, gold, silver, source
from lakehouse.pipelines.model import Batch, Pipeline, Reading, Source, Table
from lakehouse.pipelines.partitions import Days
from lakehouse.quality.checks import reconciles, steady_row_count, unique
from lakehouse.quality.model import Rule
from lakehouse.quality.rules import at_least, expect, not_null

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BRONZE, SILVER = "bronze.minute_aggs", "silver.minute_aggs"
DAILY_BARS, VOLATILITY = "gold.daily_bars", "gold.volatility"


def read(reading: Reading) -> Batch:
    """The rows of one day's files."""
    rows, notes = source.read(reading)
    return Batch(rows, notes=notes)


flat_files = Source("raw.minute_aggs", read, source.available, source.SETTINGS)


def _all_prices(holds: str) -> Column:
    """What must hold for each of a bar's four prices."""
    from pyspark.sql import functions as F

    prices = [F.col(name) for name in ("open", "high", "low", "close")]
    each = [price.isNotNull() if holds == "there" else price > 0 for price in prices]
    return each[0] & each[1] & each[2] & each[3]


def _in_order(lower: str, upper: str) -> Rule:
    """One price of a bar is never above another."""

    def holds() -> Column:
        from pyspark.sql import functions as F

        return F.col(lower) <= F.col(upper)

    return expect(f"{lower}_not_above_{upper}", holds)


def _parses() -> Column:
    from pyspark.sql import functions as F

    return F.col("unparsed").isNull()


def _of_its_day() -> Column:
    """A bar of another day would be in a partition that its file's run does not replace."""
    from pyspark.sql import functions as F

    return F.col("bar_at").isNull() | F.col("session").isNotNull()


RULES = (
    expect("parses", _parses),
    not_null("ticker"),
    not_null("bar_at"),
    expect("of_its_files_day", _of_its_day),
    expect("prices_not_null", lambda: _all_prices("there")),
    expect("prices_above_zero", lambda: _all_prices("positive")),
    _in_order("low", "open"),
    _in_order("low", "close"),
    _in_order("open", "high"),
    _in_order("close", "high"),
    not_null("volume"),
    at_least("volume", 0),
    at_least("trades", 0),
)


def _volume(days: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    return days.select(F.sum("volume"))


def _regular_volume(minutes: DataFrame) -> DataFrame:
    return _volume(gold.regular(minutes))


market = Pipeline(
    name="market",
    description="Stock minute bars from gzip CSV flat files, to daily bars and volatility.",
    partitions=Days("date"),
    tables=(
        Table(BRONZE, bronze.minute_aggs, inputs=(flat_files,), partition_by="date"),
        Table(
            SILVER,
            silver.minute_aggs,
            inputs=(BRONZE,),
            key=("ticker", "bar_at"),
            # A correction comes in a second file of its day, later than the first.
            newest=("file_modified_at", "source_file"),
            partition_by="date",
            rules=RULES,
            checks=(steady_row_count(drift=1.5),),  # a second day doubles the rows,
        ),
        Table(
            DAILY_BARS,
            gold.daily_bars,
            inputs=(SILVER,),
            partition_by="date",
            checks=(unique("ticker", "date"), reconciles(SILVER, mine=_volume, theirs=_regular_volume)),
        ),
        Table(
            VOLATILITY,
            gold.volatility,
            inputs=(SILVER, DAILY_BARS),
            partition_by="date",
            lookback=gold.GAP_LOOKBACK_DAYS,
            checks=(unique("ticker", "date"),),
        ),
    ),
)
