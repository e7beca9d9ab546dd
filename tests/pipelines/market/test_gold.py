"""Gold tables of the market: equal to what DuckDB computes from the same minutes, to the last digit."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from pyspark.sql import DataFrame, SparkSession

from lakehouse.pipelines.market.gold import daily_bars, volatility

pytestmark = pytest.mark.spark

MINUTES = (
    "ticker string, bar_at timestamp, date date, session string, open decimal(18,6), high decimal(18,6), "
    "low decimal(18,6), close decimal(18,6), volume bigint, trades bigint"
)
DAYS = [date(2026, 1, 5), date(2026, 1, 6), date(2026, 1, 9), date(2026, 1, 19), date(2026, 1, 26)]
Row = tuple[Any, ...]

DAILY_SQL = """
    SELECT ticker, date, arg_min(open, bar_at) AS open, max(high) AS high, min(low) AS low, arg_max(close, bar_at) AS close,
        sum(volume)::BIGINT AS volume,
        (sum((high + low + close) * volume)::DOUBLE / nullif(3 * sum(volume), 0)::DOUBLE)::DECIMAL(18, 6) AS vwap,
        sum(trades)::BIGINT AS trades
    FROM minutes WHERE session = 'regular' GROUP BY ticker, date
"""
VOLATILITY_SQL = f"""
    WITH days AS ({DAILY_SQL}),
    returns AS (
        SELECT ticker, date, ln(close::DOUBLE / lag(close::DOUBLE) OVER (PARTITION BY ticker, date ORDER BY bar_at)) AS r
        FROM minutes WHERE session = 'regular'
    ),
    moves AS (SELECT ticker, date, round(sqrt(sum(r * r)), 9) AS rv, count(*) AS bars FROM returns GROUP BY ALL)
    SELECT ticker, date, rv, round(open::DOUBLE / (
        SELECT arg_max(earlier.close, earlier.date) FROM days AS earlier
        WHERE earlier.ticker = days.ticker AND earlier.date BETWEEN days.date - 7 AND days.date - 1
    )::DOUBLE - 1, 9) AS gap, bars
    FROM moves JOIN days USING (ticker, date)
"""


def walk(dice: random.Random, ticker: str, day: date, session: str, hour: int, bars: int) -> Iterator[Row]:
    """Some bars of a session, with prices of up to six decimals and volumes that a double could not add exactly."""
    level = Decimal(dice.randint(1, 900_000_000)).scaleb(-6)
    for minute in sorted(dice.sample(range(60), bars)):
        moves = sorted(level * Decimal(dice.randint(990_000, 1_010_000)).scaleb(-6) for _ in range(4))
        low, one, other, high = (move.quantize(Decimal("0.000001")) for move in moves)
        at = datetime(day.year, day.month, day.day, hour, minute, tzinfo=UTC)
        level = other
        yield ticker, at, day, session, one, high, low, other, dice.randint(0, 10**15), dice.randint(1, 50)


def some_minutes() -> list[Row]:
    dice = random.Random(4)
    rows = []
    for ticker in ("AAA", "BBB", "CCC"):
        for day in DAYS:
            rows += walk(dice, ticker, day, "pre", 12, 3)
            rows += walk(dice, ticker, day, "regular", 16, dice.randint(2, 40))
            rows += walk(dice, ticker, day, "post", 22, 3)
    rows += walk(dice, "ONE", DAYS[0], "regular", 16, 1)
    rows += walk(dice, "PRE", DAYS[0], "pre", 12, 2)
    dice.shuffle(rows)
    return rows


def frame(spark: SparkSession, rows: list[Row]) -> DataFrame:
    return spark.createDataFrame(rows, MINUTES)


def in_duckdb(sql: str, rows: list[Row]) -> list[Row]:
    with duckdb.connect() as database:
        types = MINUTES.replace("string", "VARCHAR").replace("bar_at timestamp", "bar_at TIMESTAMPTZ")
        database.execute(f"CREATE TABLE minutes ({types})")
        database.executemany(f"INSERT INTO minutes VALUES ({', '.join('?' * len(rows[0]))})", rows)
        return sorted(database.execute(sql).fetchall())


def collected(rows: DataFrame) -> list[Row]:
    return sorted(tuple(row) for row in rows.collect())


def bar(ticker: str, day: date, minute: int, close: str, volume: int = 10) -> Row:
    price = Decimal(close)
    at = datetime(day.year, day.month, day.day, 15, tzinfo=UTC) + timedelta(minutes=minute)
    return ticker, at, day, "regular", price, price, price, price, volume, 1


def test_daily_bars_are_what_duckdb_computes(spark: SparkSession) -> None:
    rows = some_minutes()
    result = daily_bars(frame(spark, rows))
    assert result.columns == ["ticker", "date", "open", "high", "low", "close", "volume", "vwap", "trades"]
    assert collected(result) == in_duckdb(DAILY_SQL, rows)


def test_volatility_is_what_duckdb_computes(spark: SparkSession) -> None:
    rows = some_minutes()
    minutes = frame(spark, rows)
    result = volatility(minutes, daily_bars(minutes))
    assert result.columns == ["ticker", "date", "realised_volatility", "gap", "bars"]
    expected = in_duckdb(VOLATILITY_SQL, rows)
    assert collected_with_nulls(result) == sorted(expected, key=str)
    assert sum(row[3] is None for row in expected) == 7, "the first day of each ticker, and the one after ten without"


def collected_with_nulls(rows: DataFrame) -> list[Row]:
    return sorted((tuple(row) for row in rows.collect()), key=str)


def test_only_the_regular_session_makes_a_day(spark: SparkSession) -> None:
    late = (*bar("A", DAYS[0], 9, "99")[:3], "post", *bar("A", DAYS[0], 9, "99")[4:])
    (day,) = daily_bars(frame(spark, [bar("A", DAYS[0], 1, "10"), late])).collect()
    assert (day.high, day.close, day.volume) == (Decimal(10), Decimal(10), 10)


def test_a_day_without_volume_has_no_vwap(spark: SparkSession) -> None:
    (day,) = daily_bars(frame(spark, [bar("A", DAYS[0], 1, "10", volume=0)])).collect()
    assert (day.volume, day.vwap) == (0, None)


def test_large_volumes_neither_overflow_nor_lose_a_share(spark: SparkSession) -> None:
    # The products do not fit 64 bits, and as a double the last share would vanish.
    rows = [bar("A", DAYS[0], 1, "1", volume=10**17), bar("A", DAYS[0], 2, "3", volume=10**17 + 1)]
    (day,) = daily_bars(frame(spark, rows)).collect()
    assert (day.volume, day.vwap) == (2 * 10**17 + 1, Decimal("2.000000"))


@pytest.mark.parametrize(("days_later", "gap"), [(1, 0.1), (7, 0.1), (8, None)])
def test_a_previous_close_is_at_most_a_week_old(spark: SparkSession, days_later: int, gap: float | None) -> None:
    later = DAYS[0] + timedelta(days=days_later)
    minutes = frame(spark, [bar("A", DAYS[0], 1, "10"), bar("A", later, 1, "11")])
    rows = volatility(minutes, daily_bars(minutes)).orderBy("date").collect()
    assert [row.gap for row in rows] == [None, gap]


def test_returns_do_not_reach_over_the_night(spark: SparkSession) -> None:
    minutes = frame(spark, [bar("A", DAYS[0], 1, "10"), bar("A", DAYS[1], 1, "20"), bar("A", DAYS[1], 2, "20")])
    rows = volatility(minutes, daily_bars(minutes)).orderBy("date").collect()
    assert [(row.realised_volatility, row.bars) for row in rows] == [(None, 1), (0.0, 2)]
