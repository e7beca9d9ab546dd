"""Runs without Spark: the same rules and checks decide what is published."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.support.transaction_pipelines import opened

from lakehouse.core.errors import BadDeclarationError, NotSupportedError, RunBlockedError
from lakehouse.lake import Lake
from lakehouse.pipelines import LightContext, Pipeline, Table
from lakehouse.quality import (
    Check,
    Rule,
    accepted,
    at_least,
    between,
    expect,
    fresh,
    not_null,
    reconciles,
    reference,
    unique,
)
from lakehouse.runs.model import RunRecord

NOW = datetime.now(UTC)
GOOD = {"id": 1, "item": "tea", "cents": 5, "at": NOW}


@pytest.fixture
def lake(home: Path) -> Iterator[Lake]:
    with opened(home) as lake:
        yield lake


def build(rows: list[dict[str, Any]], validates: bool = True) -> Any:
    """A light function that writes rows."""

    def write(context: LightContext) -> int:
        schema = pa.schema(
            [("id", pa.int64()), ("item", pa.string()), ("cents", pa.int64()), ("at", pa.timestamp("us", "UTC"))]
        )
        table = pa.Table.from_pylist(rows, schema)
        valid = context.validate(table) if validates else table
        context.catalog.create_table_if_not_exists("shop.sales", schema=table.schema).append(valid, dict(context.notes))
        return int(valid.num_rows)

    return write


def run(
    lake: Lake, *rows: dict[str, Any], rules: tuple[Rule, ...] = (), checks: tuple[Check, ...] = (), **more: Any
) -> RunRecord:
    def needs_spark() -> Any:
        raise AssertionError("this table is built without Spark")

    table = Table(
        "shop.sales", needs_spark, rules=rules, checks=checks, light=build([{**GOOD, **row} for row in rows], **more)
    )
    return lake.run(Pipeline("shop", (table,)), light=True)


def test_a_run_does_not_start_from_a_branch(lake: Lake) -> None:
    run(lake, {})
    lake.refs.branches.create("exp")
    with lake.branch("exp") as branch, pytest.raises(NotSupportedError, match="starts from main"):
        run(branch, {"id": 2})
    assert lake.sql("select id from shop.sales").rows() == [(1,)]


RULES = (
    not_null("item"),
    between("cents", 0, 100),
    at_least("id", 1),
    accepted("item", ("tea", "it's jam")),
    expect("even", lambda: None, sql="cents % 2 = 1", severity="warn"),  # type: ignore[arg-type, return-value]
)


def test_rows_that_break_a_rule_are_rejected_with_their_reasons(lake: Lake) -> None:
    bad = [{"item": None}, {"cents": 101}, {"id": 0, "item": "ham"}, {"cents": 4}, {"item": "it's jam", "cents": None}]
    record = run(lake, {}, *bad, rules=RULES)
    assert record.state == "published"
    assert (record.rows, record.rejected) == (3, 3)
    assert {outcome.name: outcome.broken for outcome in record.outcomes} == {
        "item_not_null": 1,
        "cents_in_range": 1,
        "id_at_least_1": 1,
        "item_accepted": 1,
        "even": 1,
    }
    rows = lake.sql("select reason, row, run from shop.sales__rejected order by reason").rows()
    assert [reason for reason, _, _ in rows] == ["cents_in_range", "id_at_least_1, item_accepted", "item_not_null"]
    assert json.loads(rows[0][1])["cents"] == 101
    assert {run_id for _, _, run_id in rows} == {record.id}
    assert lake.history("shop.sales")[-1].notes["run"] == record.id


def test_a_blocking_rule_publishes_nothing(lake: Lake) -> None:
    run(lake, {})
    with pytest.raises(RunBlockedError, match="item_not_null"):
        run(lake, {"id": 2, "item": None}, rules=(not_null("item", severity="block"),))
    record = lake.runs()[0]
    assert record.state == "blocked"
    (outcome,) = record.outcomes
    assert json.loads(outcome.rows[0])["id"] == 2
    assert lake.sql("select id from shop.sales").rows() == [(1,)]


@pytest.mark.parametrize(
    ("check", "detail"),
    [
        (unique("id"), "1 keys more than once"),
        (reference("id", "shop.sales", "cents"), "2 rows refer to nothing in shop.sales: id 7 is not in cents"),
        (fresh("at", timedelta(hours=-1), severity="block"), "the newest row is 0:"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_failing_check_publishes_nothing(lake: Lake, check: Check, detail: str) -> None:
    run(lake, {"id": 5})
    with pytest.raises(RunBlockedError, match=check.name):
        run(lake, {"id": 7}, {"id": 7}, checks=(check,))
    (outcome,) = lake.runs()[0].outcomes
    assert outcome.detail.startswith(detail)
    assert lake.sql("select id from shop.sales").rows() == [(5,)]


@pytest.mark.parametrize(("count", "named"), [(5, "11, 12, 13, 14, 15"), (7, "11, 12, 13, 14, 15, …")])
def test_a_check_of_references_names_five_of_the_missing_values(lake: Lake, count: int, named: str) -> None:
    run(lake, {"id": 5})
    rows = [{"id": 11 + number % count} for number in range(2 * count)]
    with pytest.raises(RunBlockedError, match=f"shop.sales: id {named} are not in cents"):
        run(lake, *rows, checks=(reference("id", "shop.sales", "cents"),))


def test_rules_and_checks_that_need_spark_are_refused(lake: Lake) -> None:
    with pytest.raises(NotSupportedError, match="rule odd of shop.sales"):
        run(lake, {}, rules=(expect("odd", lambda: None),))  # type: ignore[arg-type, return-value]
    with pytest.raises(NotSupportedError, match="check of shop.sales"):
        run(lake, {}, checks=(reconciles("shop.sales", own=lambda rows: rows, other=lambda rows: rows),))
    assert not lake.tables()


def test_a_table_that_is_written_without_its_rules_is_refused(lake: Lake) -> None:
    with pytest.raises(BadDeclarationError, match="without its rules"):
        run(lake, {"item": None}, rules=(not_null("item"),), validates=False)
    assert not lake.tables()
