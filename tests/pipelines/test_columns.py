"""Whole numbers of the last digit say the same as decimals do, to the last digit."""

from __future__ import annotations

import random
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakehouse.pipelines.columns import decimal, exact_sum, hundredths, quotient

pytestmark = pytest.mark.spark

LARGEST = 9_999_999_999.0
ODD = [0.0, -0.0, 5e-324, 1.005, -1.005, 2.675, 1.004999999999, float("nan"), float("inf"), -float("inf"), 1.7e308,
       LARGEST, -LARGEST, 9_999_999_998.995, 10_000_000_000.0, 10_000_000_000.01]  # fmt: skip


def doubles(count: int = 3000) -> Iterator[float]:
    """Cents, halves of cents, those with a little added, and any number at all."""
    some = random.Random(7)
    for _ in range(count):
        half = (some.randrange(-(10**6), 10**6) * 2 + 1) / 200
        yield some.randrange(-(10**6), 10**6) / 100
        yield half
        yield half + some.choice([1e-9, -1e-9, 1e-12, -1e-13])
        yield (some.randrange(-(10**11), 10**11) * 2 + 1) / 200
        yield some.uniform(-LARGEST, LARGEST)


def test_hundredths_are_what_a_cast_to_a_decimal_makes(spark: SparkSession) -> None:
    numbers = spark.createDataFrame([(number,) for number in (*ODD, *doubles())], "number double")
    number = F.col("number")
    by_cast = F.when(F.abs(number) <= LARGEST, number).cast("decimal(12,2)")
    ours = decimal(hundredths(number, LARGEST), "decimal(12,2)")
    differ = numbers.select("number", by_cast.alias("cast"), ours.alias("ours")).where(~F.col("cast").eqNullSafe(ours))
    assert differ.collect() == []


@pytest.mark.parametrize("sign", [1, -1])
def test_a_quotient_is_rounded_half_away_from_zero(spark: SparkSession, sign: int) -> None:
    pairs = [(sign * over, under) for over in (0, 1, 2, 3, 5, 7, 333, 10**16 + 1) for under in (1, 2, 3, 4, 6, 60, 997)]
    rows = spark.createDataFrame(pairs, "over bigint, under bigint")
    quotients = {
        (row[0], row[1]): row[2] for row in rows.select("*", quotient(F.col("over"), F.col("under"))).collect()
    }
    assert quotients == {
        (over, under): int((Decimal(over) / Decimal(under)).quantize(Decimal(1), ROUND_HALF_UP))
        for over, under in pairs
    }


def test_units_are_counted_into_a_decimal(spark: SparkSession) -> None:
    counts = spark.createDataFrame([(123_456,), (-5,), (None,)], "count bigint")
    money = decimal(F.col("count"), "decimal(12,2)")
    share = decimal(F.col("count"), "decimal(16,4)", unit=Decimal("0.0001"))
    assert [tuple(row) for row in counts.select(money, share).collect()] == [
        (Decimal("1234.56"), Decimal("12.3456")),
        (Decimal("-0.05"), Decimal("-0.0005")),
        (None, None),
    ]


def test_a_sum_is_that_of_the_decimals_themselves(spark: SparkSession) -> None:
    some = random.Random(11)
    largest = Decimal("9999999999.99")
    amounts = [Decimal(some.randrange(-(10**12) + 1, 10**12)).scaleb(-2) for _ in range(20_000)]
    groups = {"any": amounts, "largest": [largest] * 1000, "cents": [Decimal("0.01"), Decimal("-0.07")] * 999}
    rows = [(name, amount) for name, group in groups.items() for amount in group]
    frame = spark.createDataFrame([*rows, ("none", None), ("cents", None)], "name string, amount decimal(12,2)")
    sums = frame.groupBy("name").agg(exact_sum(F.col("amount"), "decimal(18,2)")).collect()
    assert dict(sums) == {name: sum(group) for name, group in groups.items()} | {"none": None}
