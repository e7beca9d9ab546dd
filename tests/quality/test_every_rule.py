"""Every rule and every check, in runs of one small pipeline: rows that satisfy all of them, and rows that break each."""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.sales_pipeline import lake_with

from lakehouse import quality
from lakehouse.core.errors import RunBlockedError, UnknownChoiceError
from lakehouse.lake import Lake
from lakehouse.pipelines import Pipeline, Source, SourceContext, Table
from lakehouse.quality import (
    Check,
    Rule,
    accepted,
    at_least,
    between,
    expect,
    fresh,
    keeps_most_of,
    not_null,
    reconciles,
    reference,
    steady_row_count,
    unique,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lakehouse.runs import build
from lakehouse.runs import build
from lakehouse.runs.model import RunRecord

ORDERS = "id bigint, item string, price double, pieces int, kind string, buyer bigint, sold_at timestamp"
BUYERS = [1, 2]
NOW = datetime.now(UTC)


def order(number: int, **other: Any) -> dict[str, Any]:
    """An order that satisfies every rule."""
    good = {"item": "tea", "price": 5.0, "pieces": 2, "kind": "a", "buyer": 1, "sold_at": NOW - timedelta(hours=23)}
    return {"id": number, **good, **other}


#: As many as there are buyers; each value stands on a bound, or is null where that is no mistake.
GOOD = [
    order(1, price=1.0, pieces=1, kind="b"),
    order(2, price=10.0, pieces=None, kind=None, buyer=None, sold_at=None),
]
OLD = {"sold_at": NOW - timedelta(hours=25)}
BAD = [
    order(1, item=None, **OLD),
    order(1, price=0.99, **OLD),
    order(3, price=10.01, **OLD),
    order(4, pieces=0, **OLD),
    order(5, kind="c", **OLD),
    order(6, pieces=10, **OLD),
    order(7, buyer=3, **OLD),
]
#: What each of them says of the bad rows: how many it counts, and in which words.
BROKEN_RULES = {
    "item_not_null": 1,
    "price_in_range": 2,
    "pieces_at_least_1": 1,
    "kind_accepted": 1,
    "costs_little": 1,
}
BROKEN_CHECKS = {
    "unique_id": (1, "1 keys more than once"),
    "buyer_refers_to_{0}_buyers": (1, "1 rows refer to nothing in {0}.buyers: buyer 3 is not in id"),
    "sold_at_fresh": (0, "the newest row is 1 day, 1:"),
    "row_count_steady": (5, "2 rows before, 7 now"),
    "reconciles_with_{0}_buyers": (1, "7 here, 2 in {0}.buyers"),
    "keeps_most_of_{0}_pairs": (42, "7 of 49 rows of {0}.pairs are left"),
}


def costs_little() -> Column:
    from pyspark.sql import functions as F

    return F.col("price") * F.col("pieces") < 50


def rules(severity: Any) -> tuple[Rule, ...]:
    return (
        not_null("item", severity),
        between("price", 1, 10, severity),
        at_least("pieces", 1, severity),
        accepted("kind", ("a", "b"), severity),
        expect("costs_little", costs_little, severity),
    )


def checks(namespace: str, severity: Any) -> tuple[Check, ...]:
    buyers = f"{namespace}.buyers"
    return (
        unique("id", severity=severity),
        reference("buyer", buyers, "id", severity=severity),
        fresh("sold_at", timedelta(days=1), severity=severity),
        steady_row_count(0.5, severity=severity),
        reconciles(buyers, own="count(*)", other="count(*)", severity=severity),
        keeps_most_of(f"{namespace}.pairs", severity=severity),
    )


def read_orders(context: SourceContext) -> DataFrame:
    rows = json.loads(Path(context.settings["path"]).read_text())
    times = [row["sold_at"] and datetime.fromisoformat(row["sold_at"]) for row in rows]
    values = [tuple({**row, "sold_at": at}.values()) for row, at in zip(rows, times, strict=True)]
    return context.spark.createDataFrame(values, ORDERS)


def orders(raw: DataFrame) -> DataFrame:
    """Orders as they came."""
    return raw.select("id", "item", "price", "pieces", "kind", "buyer", "sold_at")


def buyers(raw: DataFrame) -> DataFrame:
    """Who may buy."""
    return raw.sparkSession.createDataFrame([(buyer,) for buyer in BUYERS], "id bigint")


def pairs(raw: DataFrame) -> DataFrame:
    """Every order beside every order, so that half of two orders' pairs are left and less of seven orders'."""
    return raw.select("id").crossJoin(raw.select(raw["id"].alias("other")))


def unsold(orders: DataFrame) -> DataFrame:
    """No rows at all."""
    return orders.where("id < 0")


class Shop:
    """A pipeline with every rule and check, and its lake."""

    first: RunRecord

    def __init__(self, lake: Lake, namespace: str, file: Path) -> None:
        self.lake, self.namespace, self._file = lake_with(lake, {namespace: {"path": str(file)}}), namespace, file

    def run(self, rows: Sequence[dict[str, Any]], rules_are: Any = "warn", checks_are: Any = "warn") -> RunRecord:
        self._file.write_text(json.dumps(rows, default=datetime.isoformat))
        name = self.namespace
        source = Source("orders", read_orders, settings={"path": "where the orders are"})
        all_rules, all_checks = rules(rules_are), checks(name, checks_are)
        known = Table(f"{name}.buyers", buyers, inputs=(source,))
        crossed = Table(f"{name}.pairs", pairs, inputs=(source,))
        sold = Table(f"{name}.orders", orders, inputs=(source,), rules=all_rules, checks=all_checks)
        empty = Table(f"{name}.unsold", unsold, inputs=(f"{name}.orders",), checks=all_checks)
        return self.lake.run(Pipeline(name, (known, crossed, sold, empty) if rows is GOOD else (known, crossed, sold)))

    def outcomes(self, record: RunRecord, table: str = "orders") -> dict[str, Any]:
        return {outcome.name: outcome for outcome in record.outcomes if outcome.table == f"{self.namespace}.{table}"}


@pytest.fixture(scope="module")
def shop(local_lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """A shop after a run of good orders."""
    shop = Shop(local_lake, "t_every_rule", tmp_path_factory.mktemp("orders") / "orders.json")
    shop.first = shop.run(GOOD)
    return shop


def test_no_rule_and_no_check_is_left_out() -> None:
    made = {
        name
        for name in quality.__all__
        if inspect.isfunction(function := getattr(quality, name))
        and inspect.signature(function).return_annotation in ("Rule", "Check")
    }
    of_rows = (not_null, between, at_least, accepted, expect)
    of_tables = (unique, reference, fresh, steady_row_count, reconciles, keeps_most_of)
    assert made == {function.__name__ for function in (*of_rows, *of_tables)}
    assert len(made) == len(rules("warn")) + len(checks("x", "warn"))


@pytest.mark.spark
def test_rows_within_all_bounds_pass(shop: Shop) -> None:
    outcomes = shop.outcomes(shop.first)
    assert {name for name, outcome in outcomes.items() if not outcome.passed} == set()
    assert len(outcomes) == len(BROKEN_RULES) + len(BROKEN_CHECKS)


@pytest.mark.spark
def test_a_table_without_rows_is_not_fresh_and_passes_what_it_cannot_break(shop: Shop) -> None:
    outcomes = shop.outcomes(shop.first, "unsold")
    assert {name: outcome.detail for name, outcome in outcomes.items() if not outcome.passed} == {
        "sold_at_fresh": "there is no newest row",
        f"reconciles_with_{shop.namespace}_buyers": f"0 here, 2 in {shop.namespace}.buyers",
        f"keeps_most_of_{shop.namespace}_pairs": f"0 of 4 rows of {shop.namespace}.pairs are left",
    }


@pytest.mark.spark
def test_every_rule_and_every_check_blocks_when_it_is_to(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    before = shop.lake.history(f"{shop.namespace}.orders")
    with pytest.raises(RunBlockedError) as by_rules:
        shop.run(BAD, rules_are="block")
    assert all(name in by_rules.value.message for name in BROKEN_RULES), by_rules.value.message
    monkeypatch.setattr(build, "MAX_ROWS", -1)  # too many rows: Spark evaluates the checks
    with pytest.raises(RunBlockedError) as by_checks:
        shop.run(BAD, checks_are="block")
    message = by_checks.value.message
    assert all(name.format(shop.namespace) in message for name in BROKEN_CHECKS), message
    assert shop.lake.history(f"{shop.namespace}.orders") == before


@pytest.mark.spark
def test_each_bad_row_is_counted_where_it_belongs_and_put_aside_if_asked(shop: Shop) -> None:
    outcomes = shop.outcomes(shop.run(BAD))
    assert {name for name, outcome in outcomes.items() if outcome.passed} == set()
    assert {name: outcomes[name].broken for name in BROKEN_RULES} == BROKEN_RULES
    for name, (broken, detail) in BROKEN_CHECKS.items():
        outcome = outcomes[name.format(shop.namespace)]
        assert (outcome.broken, outcome.detail.startswith(detail.format(shop.namespace))) == (broken, True), outcome
    (shown,) = outcomes[f"buyer_refers_to_{shop.namespace}_buyers"].rows
    assert json.loads(shown) == {"buyer": 3}
    held = f"select id from {shop.namespace}.orders order by 1"
    assert len(shop.lake.sql(held).rows()) == len(BAD), "a warning takes nothing away"
    assert shop.run(BAD, rules_are="quarantine").state == "published"
    assert shop.lake.sql(held).rows() == [(7,)]
    reasons = shop.lake.sql(f"select reason from {shop.namespace}.orders__rejected").rows()
    assert Counter(reason for (reason,) in reasons) == BROKEN_RULES


def test_a_check_cannot_put_rows_aside_and_a_severity_is_one_of_three() -> None:
    with pytest.raises(UnknownChoiceError, match="quarantine"):
        unique("id", severity="quarantine")  # type: ignore[arg-type]
    with pytest.raises(UnknownChoiceError, match="shout"):
        not_null("id", severity="shout")  # type: ignore[arg-type]
