"""Bronze minute bars: nothing is changed, nothing is lost."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.support.frames import assert_same_frame

from lakehouse.pipelines.market.bronze import minute_aggs

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
SHAPE = (
    "ticker string, volume bigint, open decimal(18,6), close decimal(18,6), high decimal(18,6), low decimal(18,6), "
    "window_start bigint, transactions bigint, unparsed string, date date, source_file string, "
    "file_modified_at timestamp, ingested_at timestamp"
)


def raw(spark: SparkSession) -> DataFrame:
    price = Decimal("1.5")
    lineage = (date(2026, 1, 14), "file:///a/2026-01-14.csv.gz", NOON, NOON)
    bar = ("A", 10, price, price, price, price, 1768401000000000000, 1, None, *lineage)
    broken = ("B", None, price, None, None, None, None, None, "B,many,1.5", *lineage)
    return spark.createDataFrame([bar, bar, broken], SHAPE)


@pytest.mark.spark
def test_every_line_is_kept_as_it_was_published_even_twice_and_broken(spark: SparkSession) -> None:
    assert_same_frame(minute_aggs(raw(spark)), raw(spark))


@pytest.mark.spark
def test_columns_that_are_not_promised_do_not_pass(spark: SparkSession) -> None:
    more = raw(spark).selectExpr("1 AS surprise", "*")
    assert minute_aggs(more).schema == raw(spark).schema
