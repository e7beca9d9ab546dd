"""`lake plan` says what a run rebuilds and why, and the run does exactly that: the tables equal a rebuild from nothing."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import partial
from typing import TYPE_CHECKING

import pytest
from tests.support.repetitions import repetitions
from tests.support.sales_pipeline import lake_with

from lakehouse.core.errors import BadDeclarationError, PipelineError
from lakehouse.core.requests import RunRequest
from lakehouse.lake import Lake
from lakehouse.pipelines import Days, Pipeline, Source, SourceContext, Table
from lakehouse.quality import at_least

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.spark

MONDAY, TUESDAY, WEDNESDAY = "2026-01-05", "2026-01-06", "2026-01-07"


def landed(raw: DataFrame) -> DataFrame:
    """Sales as they were recorded."""
    return raw


def priced(sales: DataFrame, prices: DataFrame, factor: int) -> DataFrame:
    """Sales with the price of today's list, which has no partitions."""
    from pyspark.sql import functions as F

    joined = sales.join(prices, on="item", how="inner")
    return joined.select("item", (F.col("pieces") * F.col("price") * F.lit(factor)).alias("cents"), "date")


def compared(priced: DataFrame) -> DataFrame:
    """The sales of a day and of the day before."""
    from pyspark.sql import functions as F

    days = priced.groupBy("date").agg(F.sum("cents").alias("cents"))
    before = days.select(F.date_add("date", 1).alias("date"), F.col("cents").alias("before"))
    return days.join(before, on="date", how="left").select(
        "date", "cents", F.coalesce("before", F.lit(0)).alias("before")
    )


@dataclass
class Shop:
    """A shop whose sales, prices and code change."""

    lake: Lake
    name: str
    sales: dict[str, int] = field(default_factory=dict)
    """How many pieces of tea were sold on each day."""
    price: int = 2
    factor: int = 1
    lowest: int = 0

    @property
    def gold(self) -> str:
        return f"{self.name}.gold"

    def set_price(self, price: int) -> None:
        self.price = price
        self.lake.sql(
            f"create or replace table {self.name}.prices as select 'tea' as item, {price} as price", engine="spark"
        )

    def pipeline(self, **changes: str) -> Pipeline:
        def read(context: SourceContext) -> DataFrame:
            day, pieces = context.partition, self.sales.get(context.partition, 0)
            return context.spark.sql(f"select 'tea' as item, {pieces} as pieces, date '{day}' as date")

        def available(context: SourceContext) -> Mapping[str, str]:
            return {day: str(pieces) for day, pieces in self.sales.items()}

        bronze, silver = f"{self.name}.bronze", f"{self.name}.silver"
        layout = changes.get("partition_by", "date")
        prices = changes.get("prices", f"{self.name}.prices")
        source = Source(f"{self.name}.tills", read, available, deletes=True)
        tables = (
            Table(bronze, landed, (source,), partition_by="date", rules=(at_least("pieces", self.lowest),)),
            Table(silver, partial(priced, factor=self.factor), (bronze, prices), partition_by=layout),
            Table(self.gold, compared, (silver,), partition_by="date", lookback=1),
        )
        return Pipeline(self.name, tables, Days())

    def run(
        self, *partitions: str, tables: tuple[str, ...] = (), accept_code: bool = False
    ) -> dict[str, tuple[str, ...]]:
        """Run what the plan says; returns the partitions that were rebuilt, by table."""
        request = RunRequest(partitions, tables, accept_code=accept_code)
        planned = {plan.table: tuple(plan.partitions) for plan in self.lake.plan(self.pipeline(), request)}
        record = self.lake.run_pipeline(self.pipeline(), request)
        built = {report.table: report.partitions for report in record.tables}
        assert built == planned
        return {table.partition(".")[2]: keys for table, keys in built.items() if keys}

    def reasons(self) -> set[tuple[str, str]]:
        plans = self.lake.plan(self.pipeline())
        return {(plan.table.partition(".")[2], reason) for plan in plans for reason in plan.partitions.values()}

    def check(self) -> None:
        """The last table has what a rebuild from nothing would have."""
        rows = self.lake.sql(f"select cast(date as string), cents, before from {self.gold} order by 1").rows()
        cents = {
            day: pieces * self.price * self.factor
            for day, pieces in sorted(self.sales.items())
            if pieces >= self.lowest
        }
        assert rows == [(day, amount, cents.get(day_before(day), 0)) for day, amount in cents.items()]


def day_before(day: str) -> str:
    return (date.fromisoformat(day) - timedelta(days=1)).isoformat()


@pytest.fixture
def shop(local_lake: Lake, namespace: str) -> Shop:
    shop = Shop(lake_with(local_lake, {}), namespace[:50], {MONDAY: 1, TUESDAY: 2})
    shop.set_price(2)
    return shop


def test_what_is_requested_is_rebuilt(shop: Shop) -> None:
    shop.run()
    assert shop.reasons() == set()
    assert shop.run(TUESDAY, tables=(shop.gold,)) == {"gold": (TUESDAY,)}
    assert shop.run(MONDAY) == {"bronze": (MONDAY,), "silver": (MONDAY,), "gold": (MONDAY, TUESDAY)}
    shop.check()


def test_a_changed_input_without_partitions_rebuilds_all_that_was_built_from_it(shop: Shop) -> None:
    shop.run()
    shop.set_price(3)
    assert shop.reasons() == {
        ("silver", f"changed input {shop.name}.prices"),
        ("gold", f"changed input {shop.name}.silver"),
    }
    assert shop.run() == {"silver": (MONDAY, TUESDAY), "gold": (MONDAY, TUESDAY)}
    assert shop.run() == {}
    shop.check()


def test_changed_code_is_rebuilt_or_accepted(shop: Shop) -> None:
    shop.run()
    shop.factor = 10
    assert shop.reasons() == {("silver", "changed code"), ("gold", f"changed input {shop.name}.silver")}
    assert shop.run(MONDAY)["silver"] == (MONDAY,), "who requests partitions tries new code on them"
    assert shop.run() == {"silver": (TUESDAY,), "gold": (TUESDAY,)}
    shop.check()
    shop.factor = 100
    assert shop.run(accept_code=True) == {}
    assert shop.reasons() == set()
    shop.sales[WEDNESDAY] = 3
    assert shop.run() == {"bronze": (WEDNESDAY,), "silver": (WEDNESDAY,), "gold": (WEDNESDAY,)}


def test_days_without_rows_are_rebuilt_when_the_code_or_an_input_changes(shop: Shop) -> None:
    shop.lowest = 5
    shop.run()
    assert shop.run() == {}
    shop.check()
    shop.lowest = 0
    assert shop.run()["bronze"] == (MONDAY, TUESDAY), "all of their rows were rejected"
    shop.check()
    shop.lake.sql(f"update {shop.name}.prices set item = 'coffee'", engine="spark")
    shop.run()
    assert shop.lake.sql(f"select count(*) from {shop.gold}").rows() == [(0,)]
    shop.set_price(3)
    shop.run()
    shop.check()
    del shop.sales[MONDAY]
    shop.run()
    shop.lowest = 1
    assert shop.run()["bronze"] == (TUESDAY,), "a day that the source no longer has is not read again"
    shop.check()


def test_a_changed_partition_by_is_applied_to_the_whole_table(shop: Shop) -> None:
    shop.run()
    pipeline = shop.pipeline(partition_by="item, date")
    plan = next(plan for plan in shop.lake.plan(pipeline) if plan.table.endswith(".silver"))
    assert plan.partitions == {MONDAY: "changed code", TUESDAY: "changed code"}
    shop.lake.run(pipeline)
    assert shop.lake.describe(f"{shop.name}.silver").partitioning == ("item", "date")
    shop.check()


def test_unknown_inputs_are_refused_before_anything_runs(shop: Shop) -> None:
    misspelled = shop.pipeline(prices=f"{shop.name}.price")
    runs = len(shop.lake.runs())
    with pytest.raises(BadDeclarationError, match="there is no such table") as error:
        shop.lake.run(misspelled)
    assert f"Did you mean {shop.name}.prices" in error.value.hint
    with pytest.raises(PipelineError, match="not built yet"):
        shop.lake.run(shop.pipeline(), tables=[shop.gold])
    assert len(shop.lake.runs()) == runs
    assert f"{shop.name}.bronze" not in shop.lake.table_names()


def test_a_table_without_partitions_is_rebuilt_when_it_is_named_or_its_code_changes(shop: Shop) -> None:
    def summed(prices: DataFrame, plus: int) -> DataFrame:
        from pyspark.sql import functions as F

        return prices.select("item", (F.col("price") + F.lit(plus)).alias("price"))

    def pipeline(plus: int) -> Pipeline:
        return Pipeline(f"{shop.name}_all", (Table(shop.gold, partial(summed, plus=plus), (f"{shop.name}.prices",)),))

    def state(plus: int, *tables: str) -> tuple[str, str]:
        request = RunRequest(tables=tables)
        (plan,) = shop.lake.plan(pipeline(plus), request)
        return plan.reason, shop.lake.run_pipeline(pipeline(plus), request).state

    assert state(0) == ("not built yet", "published")
    assert state(0) == ("", "nothing")
    assert state(0, shop.gold) == ("requested", "published")
    assert state(5) == ("changed code", "published")
    assert state(5) == ("", "nothing")
    assert shop.lake.sql(f"select price from {shop.gold}").rows() == [(7,)]


#: What may happen to the shop between two runs.
CHANGES: dict[str, Callable[[Shop, random.Random], None]] = {
    "new or changed days": lambda shop, dice: shop.sales.update({_day(dice): dice.randrange(1, 9) for _ in range(2)}),
    "deleted day": lambda shop, dice: _delete_a_day(shop, dice),
    "changed code": lambda shop, dice: setattr(shop, "factor", dice.randrange(1, 9)),
    "changed rule": lambda shop, dice: setattr(shop, "lowest", dice.randrange(0, 4)),
    "changed input": lambda shop, dice: shop.set_price(dice.randrange(1, 9)),
    "nothing": lambda shop, dice: None,
}


def _day(dice: random.Random) -> str:
    return (date(2026, 1, 5) + timedelta(days=dice.randrange(6))).isoformat()


def _delete_a_day(shop: Shop, dice: random.Random) -> None:
    """The last day stays: a source without any day has nothing to build from."""
    if len(shop.sales) > 1:
        del shop.sales[dice.choice(sorted(shop.sales)[:-1])]


@pytest.mark.faults
@pytest.mark.parametrize("seed", range(repetitions(smoke=1, full=200)))
def test_plan_run_and_a_rebuild_agree_in_history(shop: Shop, seed: int) -> None:
    dice, history = random.Random(seed), []
    for name in ["nothing", *dice.choices(list(CHANGES), k=6)]:
        history.append(name)
        CHANGES[name](shop, dice)
        shop.run()
        try:
            shop.check()
        except AssertionError as error:
            raise AssertionError(f"history {seed}: {history}") from error
        assert shop.run() == {}, f"history {seed}: {history}"
