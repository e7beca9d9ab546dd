"""Validation by rules and keys: every strategy gives the same rows, and rows are sorted only where that is needed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakehouse.quality import Rule, at_least, expect, not_null
from lakehouse.runs import validate
from lakehouse.runs.validate import Keys, ValidationResult, rejected_rows, validated, validated_few

pytestmark = pytest.mark.spark

SALES = "id bigint, item string, amount bigint, changed bigint"
RULES = (not_null("id"), at_least("amount", 0), at_least("changed", 1, severity="warn"))
KEYS = Keys(("id", "item"), ("changed",))


def sales(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    return spark.createDataFrame(list(rows), SALES)


@contextmanager
def validation(
    rows: DataFrame, rules: tuple[Rule, ...] = RULES, keys: Keys | None = KEYS, few: bool = False
) -> Iterator[ValidationResult]:
    with ExitStack() as cached:
        if few:
            yield validated_few("shop.sales", rows, rules, keys, cached)
        else:
            yield cached.enter_context(validated("shop.sales", rows, rules, keys))


def valid_rows(
    rows: DataFrame, rules: tuple[Rule, ...] = RULES, keys: Keys | None = KEYS, few: bool = False
) -> list[tuple[Any, ...]]:
    with validation(rows, rules, keys, few) as result:
        assert result.valid.columns == rows.columns
        return sorted((tuple(row) for row in result.valid.collect()), key=str)


SOME = [
    (1, "tea", 5, 1),
    (2, "tea", 5, 1),
    (2, "tea", 7, 3),
    (2, "tea", 6, 2),
    (2, None, 1, 1),
    (2, None, 2, 2),
    (3, "jam", -1, 9),
    (3, "jam", 4, 1),
    (None, "jam", 4, 1),
]
VALID = [(1, "tea", 5, 1), (2, "tea", 7, 3), (2, None, 2, 2), (3, "jam", 4, 1)]


@pytest.mark.parametrize(
    ("suspects", "collected"), [(50_000, 50), (50_000, 0), (0, 50), (0, 0)],
    ids=["by-driver", "by-spark", "too-many-by-driver", "too-many-by-spark"],
)  # fmt: skip
def test_of_one_key_the_newest_good_row_is_left(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, suspects: int, collected: int
) -> None:
    monkeypatch.setattr(validate, "MAX_SUSPECTS", suspects)
    monkeypatch.setattr(validate, "MAX_COLLECTED_HASHES", collected)
    assert valid_rows(sales(spark, *SOME)) == sorted(VALID, key=str)


def test_sorted_it_is_the_same(spark: SparkSession) -> None:
    assert valid_rows(sales(spark, *SOME), keys=Keys(KEYS.columns, KEYS.newest, sort=True)) == sorted(VALID, key=str)


def test_of_few_rows_it_is_the_same(spark: SparkSession) -> None:
    assert valid_rows(sales(spark, *SOME), few=True) == sorted(VALID, key=str)
    assert valid_rows(sales(spark, *VALID), few=True) == sorted(VALID, key=str)


def test_keys_that_only_collide_in_the_filter_are_kept(spark: SparkSession) -> None:
    rows = [(number, "tea", number, 1) for number in range(2000)] + [
        (number, "tea", -1, 2) for number in range(0, 2000, 7)
    ]
    valid = valid_rows(sales(spark, *rows), rules=())
    assert len(valid) == 2000
    assert {row[0]: row[2] for row in valid} == {number: -1 if number % 7 == 0 else number for number in range(2000)}


def test_without_duplicates_nothing_is_sorted(spark: SparkSession) -> None:
    with validation(sales(spark, *VALID)) as result:
        assert "Window" not in result.valid._jdf.queryExecution().toString()  # type: ignore[operator]


@pytest.mark.parametrize("few", [False, True])
def test_broken_rows_are_counted_by_rule_and_kept(spark: SparkSession, few: bool) -> None:
    rows = sales(spark, (1, "a", -1, 0), (None, "b", -2, 1), (3, "c", 1, 0), (4, "d", 1, 1))
    with validation(rows, few=few) as result:
        assert [(outcome.name, outcome.severity, outcome.broken, outcome.passed) for outcome in result.outcomes] == [
            ("id_not_null", "quarantine", 1, False),
            ("amount_at_least_0", "quarantine", 2, False),
            ("changed_at_least_1", "warn", 2, False),
        ]
        assert result.invalid is not None
        rejected = rejected_rows(result.invalid, RULES, ["item"], "r1", datetime(2026, 1, 1))
        assert sorted((row.item, row.reason) for row in rejected.collect()) == [
            ("a", "amount_at_least_0"),
            ("b", "id_not_null, amount_at_least_0"),
        ]
        assert sorted(row.item for row in result.valid.collect()) == ["c", "d"]


@pytest.mark.parametrize("few", [False, True])
def test_rows_that_block_a_run_are_shown(spark: SparkSession, few: bool) -> None:
    rule = expect("no_jam", lambda: F.col("item") != "jam", "block")
    with validation(sales(spark, *SOME), (rule,), few=few) as result:
        (outcome,) = result.outcomes
    assert outcome.blocks
    assert outcome.broken == 3
    assert all('"item":"jam"' in row for row in outcome.rows)


def test_without_rules_and_keys_the_rows_are_unchanged(spark: SparkSession) -> None:
    rows = sales(spark, *SOME)
    with validation(rows, (), None) as result:
        assert result.invalid is None
        assert not result.outcomes
        assert result.valid is rows


def test_no_rows_are_valid(spark: SparkSession) -> None:
    assert valid_rows(sales(spark).where("id > 0")) == []
