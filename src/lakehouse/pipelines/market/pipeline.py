"""Stock minute bars: gzip CSV flat files, one per day, to daily bars and volatility."""

from __future__ import annotations

from lakehouse.pipelines.market import bronze, gold, silver, source
from lakehouse.pipelines.market.rules import MINUTE_RULES, volume_reconciles
from lakehouse.pipelines.model import Pipeline, Source, Table
from lakehouse.pipelines.partitions import Days
from lakehouse.quality import keeps_most_of, steady_row_count, unique

BRONZE, SILVER = "bronze.minute_aggs", "silver.minute_aggs"
DAILY_BARS, VOLATILITY = "gold.daily_bars", "gold.volatility"

flat_files = Source("raw.minute_aggs", source.read, source.available, source.SETTINGS, read_many=source.read_days)

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
            # A correction is published later, in a second file of the day.
            newest=("file_modified_at", "source_file"),
            partition_by="date",
            rules=MINUTE_RULES,
            checks=(keeps_most_of(BRONZE), steady_row_count(drift=1.5)),  # the second day doubles the rows
        ),
        Table(
            DAILY_BARS,
            gold.daily_bars,
            inputs=(SILVER,),
            partition_by="date",
            checks=(unique("ticker", "date"), volume_reconciles(SILVER)),
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
