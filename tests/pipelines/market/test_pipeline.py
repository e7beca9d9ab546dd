"""The market pipeline as declared: from flat files with known defects to rows that its rules, key and checks let through."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from functools import reduce
from operator import and_
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from lakehouse.pipelines.market.pipeline import BRONZE, DAILY_BARS, SILVER, VOLATILITY, market
from lakehouse.pipelines.market.rules import MINUTE_RULES
from lakehouse.pipelines.market.sample import Defects, SampleDay, write_day
from lakehouse.pipelines.market.source import read
from lakehouse.pipelines.model import SourceContext, Table
from lakehouse.quality.model import SparkCheckContext
from lakehouse.storage.raw import local_raw_area

DAY = date(2026, 1, 14)
NOW = datetime(2026, 1, 20, tzinfo=UTC)
SHAPE = (
    "ticker string, bar_at timestamp, date date, session string, open decimal(18,6), high decimal(18,6), "
    "low decimal(18,6), close decimal(18,6), volume bigint, trades bigint, unparsed string"
)
GOOD: dict[str, Any] = {
    "ticker": "A",
    "bar_at": datetime(2026, 1, 14, 15, tzinfo=UTC),
    "date": DAY,
    "session": "regular",
    "open": Decimal(2),
    "high": Decimal(3),
    "low": Decimal(1),
    "close": Decimal(2),
    "volume": 0,
    "trades": 0,
    "unparsed": None,
}


def table(name: str) -> Table:
    definition = market.table(name)
    assert isinstance(definition, Table)
    return definition


def test_the_tables_are_made_in_order_and_in_slices_of_a_day() -> None:
    assert [definition.name for definition in market.tables] == [BRONZE, SILVER, DAILY_BARS, VOLATILITY]
    assert {definition.partition_by for definition in market.tables if isinstance(definition, Table)} == {"date"}
    assert (table(SILVER).key, table(SILVER).newest) == (("ticker", "bar_at"), ("file_modified_at", "source_file"))
    assert table(VOLATILITY).lookback == 7
    assert set(market.known_settings) == {"path", "endpoint", "region", "access_key", "secret_key"}


def test_every_table_has_a_description_that_starts_with_one_sentence() -> None:
    for definition in market.tables:
        assert definition.description.splitlines()[0].endswith("."), definition.name
        assert not any(line.startswith(" ") for line in definition.description.splitlines()), (
            "Markdown shows it as code"
        )


@pytest.mark.spark
@pytest.mark.parametrize(
    ("changed", "broken"),
    [
        ({}, []),
        ({"low": Decimal(2), "open": Decimal(2), "close": Decimal(2), "high": Decimal(2)}, []),
        ({"unparsed": "A,1"}, ["parses"]),
        ({"ticker": None}, ["ticker_not_null"]),
        ({"bar_at": None, "session": None}, ["bar_at_not_null"]),
        ({"session": None}, ["of_its_files_day"]),
        ({"close": None}, ["prices_not_null"]),
        ({"low": Decimal(0)}, ["prices_above_zero"]),
        ({"open": Decimal("0.5")}, ["low_not_above_open"]),
        ({"close": Decimal("0.5")}, ["low_not_above_close"]),
        ({"open": Decimal("3.000001")}, ["open_not_above_high"]),
        ({"close": Decimal("3.000001")}, ["close_not_above_high"]),
        ({"volume": None}, ["volume_not_null"]),
        ({"volume": -1}, ["volume_at_least_0"]),
        ({"trades": -1}, ["trades_at_least_0"]),
    ],
    ids=lambda value: str(value) if isinstance(value, list) else "",
)
def test_each_rule_finds_what_it_is_for(spark: SparkSession, changed: dict[str, Any], broken: list[str]) -> None:
    row = GOOD | changed
    rows = spark.createDataFrame([tuple(row.values())], SHAPE)
    results = rows.select(*(rule.condition().alias(rule.name) for rule in MINUTE_RULES)).collect()[0]
    assert [name for name, holds in results.asDict().items() if holds is False] == broken
    assert {rule.severity for rule in MINUTE_RULES} == {"quarantine"}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SampleDay]:
    folder = tmp_path_factory.mktemp("flat")
    return folder, write_day(folder, DAY, ["A", "B", "C"], defects=Defects(corrected=15))


def silver_rows(spark: SparkSession, folder: Path) -> DataFrame:
    batch = read(SourceContext(lambda: spark, {"path": str(folder)}, DAY.isoformat(), NOW, local_raw_area(Path("raw"))))
    return table(SILVER).transform(table(BRONZE).transform(batch.rows))


def valid(rows: DataFrame) -> DataFrame:
    """The rows that a run would publish: they break no rule, and are the newest of their key."""
    good = rows.where(reduce(and_, (F.coalesce(rule.condition(), F.lit(True)) for rule in MINUTE_RULES)))
    newest_first = Window.partitionBy(*table(SILVER).key).orderBy(*(F.desc(name) for name in table(SILVER).newest))
    return good.withColumn("_rank", F.row_number().over(newest_first)).where(F.col("_rank") == 1).drop("_rank")


@pytest.mark.spark
def test_of_files_with_defects_only_the_valid_bars_are_left(
    spark: SparkSession, written: tuple[Path, SampleDay]
) -> None:
    folder, day = written
    rows = silver_rows(spark, folder)
    assert rows.count() == day.bars + day.defects.duplicates + day.defects.rejected + day.defects.corrected
    rows_left = valid(rows)
    assert rows_left.count() == day.bars
    assert {row.date for row in rows_left.select("date").distinct().collect()} == {DAY}


@pytest.mark.spark
def test_a_late_correction_wins(spark: SparkSession, written: tuple[Path, SampleDay]) -> None:
    folder, day = written
    rows_left = valid(silver_rows(spark, folder))
    assert rows_left.where(F.col("source_file").contains("corrections")).count() == day.defects.corrected


@pytest.mark.spark
def test_the_layers_agree_and_a_lost_bar_is_noticed(spark: SparkSession, written: tuple[Path, SampleDay]) -> None:
    minutes = valid(silver_rows(spark, written[0]))
    days = table(DAILY_BARS).transform(minutes)

    def outcomes(of: DataFrame) -> dict[str, bool]:
        context = SparkCheckContext(days, {SILVER: of}.__getitem__, before={}, total=None, now=NOW)
        return {check.name: check.evaluate(context).passed for check in table(DAILY_BARS).checks}

    assert outcomes(minutes) == {"unique_ticker_date": True, "reconciles_with_silver_minute_aggs": True}
    assert not outcomes(minutes.where(F.col("volume") < 1000))["reconciles_with_silver_minute_aggs"]
