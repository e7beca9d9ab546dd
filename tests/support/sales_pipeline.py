"""A small pipeline of a shop, written as a user would: sales in files by day, cleaned, summed, compared with yesterday."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse.lake import Lake
from lakehouse.pipelines import Days, Pipeline, Source, SourceContext, Table
from lakehouse.quality import at_least, expect, not_null, reconciles, unique

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SALES = "id bigint, item string, amount bigint, changed bigint"


def read_sales(context: SourceContext) -> DataFrame:
    from pyspark.sql import functions as F

    file = Path(context.settings["path"]) / f"{context.partition}.csv"
    rows = context.spark.read.schema(SALES).csv(str(file))
    return rows.withColumn("date", F.lit(context.partition).cast("date"))


def published_sales(context: SourceContext) -> Mapping[str, str]:
    return {file.stem: file.read_text() for file in Path(context.settings["path"]).glob("*.csv")}


def landed(raw: DataFrame) -> DataFrame:
    """Sales as they were written down."""
    return raw.select("id", "item", "amount", "changed", "date")


def deduplicated(sales: DataFrame) -> DataFrame:
    """One sale per id."""
    return sales.select("id", "item", "amount", "changed", "date")


def by_day(sales: DataFrame) -> DataFrame:
    """What was sold on a day."""
    from pyspark.sql import functions as F

    return sales.groupBy("date").agg(F.sum("amount").alias("amount"), F.count("id").alias("sales"))


def growth(days: DataFrame) -> DataFrame:
    """How a day compares with the one before."""
    from pyspark.sql import functions as F

    before = days.select(F.date_add("date", 1).alias("date"), F.col("amount").alias("before"))
    joined = days.alias("d").join(before.alias("b"), on="date", how="left")
    return joined.select("date", (F.col("amount") - F.col("before")).alias("growth"))


def _total(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    return rows.agg(F.sum("amount"))


def shop(namespace: str) -> Pipeline:
    from pyspark.sql import functions as F

    sales = Source("sales", read_sales, published_sales, settings={"path": "where the files are"})
    bronze, silver, gold, grown = (f"{namespace}.{name}" for name in ("bronze", "silver", "gold", "growth"))
    return Pipeline(
        name=namespace,
        partitions=Days("date"),
        tables=(
            Table(bronze, landed, inputs=(sales,), partition_by="date"),
            Table(
                silver,
                deduplicated,
                inputs=(bronze,),
                key=("id",),
                newest=("changed",),
                partition_by="date",
                rules=(
                    not_null("id"),
                    at_least("amount", 0),
                    expect("item_is_named", lambda: F.col("item") != "?", "warn"),
                    expect("not_forbidden", lambda: F.col("item") != "forbidden", "block"),
                ),
                checks=(unique("id"),),
            ),
            Table(
                gold,
                by_day,
                inputs=(silver,),
                partition_by="date",
                checks=(reconciles(silver, own=_total, other=_total),),
            ),
            Table(grown, growth, inputs=(gold,), partition_by="date", lookback=1),
        ),
    )


@pytest.fixture
def shop_of(local_lake: Lake, namespace: str, tmp_path: Path) -> Iterator[Callable[[dict[str, str]], Any]]:
    """Gives (lake, pipeline, folder) with files of sales in place; the lake shares the local Spark."""
    folder = tmp_path / "sales"
    folder.mkdir()
    name = namespace[:60]
    with_source = lake_with(local_lake, {name: {"path": str(folder)}})

    def make(files: dict[str, str]) -> tuple[Lake, Pipeline, Path]:
        for day, lines in files.items():
            (folder / f"{day}.csv").write_text(lines)
        return with_source, shop(name), folder

    yield make


def without_spark(lake: Lake) -> Lake:
    """The same lake, whose runs fail if they start Spark."""

    def session(settings: Mapping[str, str]) -> Any:
        raise AssertionError("this run needs no Spark")

    runner = replace(lake._components.runner(), session=session)
    return Lake(replace(lake._components, runner=lambda: runner))


def lake_with(lake: Lake, sources: Mapping[str, Mapping[str, str]]) -> Lake:
    """The same lake with other settings of sources."""
    rooms = lake._components
    runner = rooms.runner()
    return Lake(replace(rooms, runner=lambda: replace(runner, settings=sources)))
