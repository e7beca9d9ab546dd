"""Silver minute bars: exact moments, New York's sessions on both clock changes, stray bars."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.support.frames import assert_same_frame

from lakehouse.pipelines.market.silver import minute_aggs

NEW_YORK = ZoneInfo("America/New_York")
PUBLISHED = datetime(2026, 1, 15, 12, tzinfo=UTC)
LINEAGE = "source_file string, file_modified_at timestamp, ingested_at timestamp"
BRONZE = (
    "ticker string, volume bigint, open decimal(18,6), close decimal(18,6), high decimal(18,6), low decimal(18,6), "
    f"window_start bigint, transactions bigint, unparsed string, date date, {LINEAGE}"
)
SILVER = (
    "ticker string, bar_at timestamp, date date, session string, open decimal(18,6), high decimal(18,6), "
    f"low decimal(18,6), close decimal(18,6), volume bigint, trades bigint, {LINEAGE}, unparsed string"
)
pytestmark = pytest.mark.spark


def bronze(spark: SparkSession, *bars: tuple[int | None, date]) -> DataFrame:
    """Bars at these nanoseconds, in files of these days."""
    prices = [Decimal(text) for text in ("2.5", "3.25", "4", "1.000001")]
    lineage = ("f.csv.gz", PUBLISHED, PUBLISHED)
    return spark.createDataFrame([("A", 10, *prices, at, 7, None, day, *lineage) for at, day in bars], BRONZE)


def nanoseconds(*moment: int) -> int:
    """A moment on New York's clock (fold 0: the first of two that read the same)."""
    return int(datetime(*moment, tzinfo=NEW_YORK).timestamp()) * 10**9


def sessions(spark: SparkSession, day: date, *moments: int | None) -> list[str | None]:
    rows = minute_aggs(bronze(spark, *((moment, day) for moment in moments)))
    return [row.session for row in rows.orderBy("bar_at").collect()]


def test_a_bar_has_exact_prices_and_the_promised_columns(spark: SparkSession) -> None:
    result = minute_aggs(bronze(spark, (nanoseconds(2026, 1, 14, 9, 30), date(2026, 1, 14))))
    at = datetime(2026, 1, 14, 14, 30, tzinfo=UTC)
    prices = [Decimal(text) for text in ("2.5", "4", "1.000001", "3.25")]
    lineage = ("f.csv.gz", PUBLISHED, PUBLISHED)
    row = ("A", at, date(2026, 1, 14), "regular", *prices, 10, 7, *lineage, None)
    assert_same_frame(result, spark.createDataFrame([row], SILVER))


@pytest.mark.parametrize(
    ("nanos", "micros"),
    [
        # The next double is 1768401000123456768 / 1000, but of the others the quotient itself is rounded up.
        (1768401000123456789, 1768401000123456),
        (1768401000123456999, 1768401000123456),
        (1768401000999999999, 1768401000999999),
        (1768401000000000000, 1768401000000000),
    ],
)
def test_nanoseconds_become_microseconds_without_rounding_up(spark: SparkSession, nanos: int, micros: int) -> None:
    result = minute_aggs(bronze(spark, (nanos, date(2026, 1, 14)))).select(F.unix_micros("bar_at"))
    assert result.collect()[0][0] == micros


def test_sessions_begin_and_end_on_the_minute(spark: SparkSession) -> None:
    day = date(2026, 1, 14)
    clock = [(0, 0), (3, 59), (4, 0), (9, 29), (9, 30), (15, 59), (16, 0), (19, 59), (20, 0), (23, 59)]
    result = sessions(spark, day, *(nanoseconds(2026, 1, 14, hour, minute) for hour, minute in clock))
    assert result == ["closed", "closed", "pre", "pre", "regular", "regular", "post", "post", "closed", "closed"]


@pytest.mark.parametrize(
    ("day", "utc_open"),
    [
        (date(2026, 3, 6), 14),
        (date(2026, 3, 9), 13),  # the Monday after clocks went forward
        (date(2026, 10, 30), 13),
        (date(2026, 11, 2), 14),  # the Monday after they went back
    ],
    ids=str,
)
def test_the_regular_session_follows_new_yorks_clock(spark: SparkSession, day: date, utc_open: int) -> None:
    opens = int(datetime(day.year, day.month, day.day, utc_open, 30, tzinfo=UTC).timestamp()) * 10**9
    minute = 60 * 10**9
    result = sessions(spark, day, opens - minute, opens, opens + 389 * minute, opens + 390 * minute)
    assert result == ["pre", "regular", "regular", "post"]


def test_the_day_on_which_clocks_go_forward_has_23_hours(spark: SparkSession) -> None:
    day, midnight = date(2026, 3, 8), nanoseconds(2026, 3, 8)
    hour, minute = 3600 * 10**9, 60 * 10**9
    # 04:00 comes three hours after midnight, and the next day after 23.
    moments = [midnight - minute, midnight, midnight + 3 * hour - minute, midnight + 3 * hour]
    result = sessions(spark, day, *moments, midnight + 23 * hour - minute, midnight + 23 * hour)
    assert result == [None, "closed", "closed", "pre", "closed", None]


def test_the_day_on_which_clocks_go_back_has_25_hours(spark: SparkSession) -> None:
    day, midnight = date(2026, 11, 1), nanoseconds(2026, 11, 1)
    hour, minute = 3600 * 10**9, 60 * 10**9
    moments = [midnight - minute, midnight, midnight + 5 * hour - minute, midnight + 5 * hour]
    result = sessions(spark, day, *moments, midnight + 25 * hour - minute, midnight + 25 * hour)
    assert result == [None, "closed", "closed", "pre", "closed", None]


def test_a_bar_of_another_day_has_no_session_and_stays_with_its_file(spark: SparkSession) -> None:
    result = minute_aggs(bronze(spark, (nanoseconds(2026, 1, 13, 12), date(2026, 1, 14))))
    assert result.select("date", "session").collect() == [(date(2026, 1, 14), None)]


def test_an_evening_bar_belongs_to_new_yorks_day_and_not_to_utcs(spark: SparkSession) -> None:
    half_past_midnight_utc = int(datetime(2026, 1, 15, 0, 30, tzinfo=UTC).timestamp()) * 10**9
    assert sessions(spark, date(2026, 1, 14), half_past_midnight_utc) == ["post"]


def test_a_bar_without_a_moment_has_no_session(spark: SparkSession) -> None:
    assert sessions(spark, date(2026, 1, 14), None) == [None]


def test_the_sessions_time_zone_changes_nothing(spark: SparkSession) -> None:
    elsewhere = spark.newSession()
    elsewhere.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    assert sessions(elsewhere, date(2026, 1, 14), nanoseconds(2026, 1, 14, 9, 30)) == ["regular"]
