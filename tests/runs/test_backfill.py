"""A backfill replaces exactly the partitions that it delivers, however many there are and whatever stands between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING

import pytest
from tests.support.repetitions import repetitions
from tests.support.sales_pipeline import lake_with

from lakehouse.core.errors import BadDeclarationError
from lakehouse.core.requests import RunRequest
from lakehouse.lake import Lake
from lakehouse.pipelines import Days, Pipeline, Source, SourceContext, Table
from lakehouse.pipelines.partitions import Partitions
from lakehouse.tables.spark import contiguous_days

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.spark

FIRST = date(2022, 1, 1)
ROWS_PER_KEY = 3


@dataclass(frozen=True)
class Keys:
    """Partitions by a text such as `shop-0042`."""

    column: str = "shop"
    start: str = "shop-0000"

    def check(self, key: str) -> str:
        return key

    def between(self, first: str, last: str) -> list[str]:
        return [self.shifted(first, by) for by in range(int(last[5:]) - int(first[5:]) + 1)]

    def shifted(self, key: str, by: int) -> str:
        return f"shop-{int(key[5:]) + by:04}"

    def sql_type(self) -> str:
        return "string"


class Feed:
    """A source whose partitions are published little by little; each has three rows, which name their version."""

    def __init__(self, partitions: Partitions) -> None:
        self.partitions = partitions
        self.versions: dict[str, int] = {}

    def publish(self, keys: Sequence[str], version: int) -> None:
        self.versions |= dict.fromkeys(keys, version)

    def available(self, context: SourceContext) -> Mapping[str, str]:
        return {key: str(version) for key, version in self.versions.items()}

    def read_many(self, context: SourceContext, keys: Sequence[str]) -> DataFrame:
        import pyarrow
        from pyspark.sql import functions as F

        published = pyarrow.table({"key": list(keys), "version": [self.versions[key] for key in keys]})
        rows = context.spark.createDataFrame(published.to_pandas())
        numbered = rows.withColumn("n", F.explode(F.sequence(F.lit(1), F.lit(ROWS_PER_KEY))))
        key = F.col("key").cast(self.partitions.sql_type()).alias(self.partitions.column)
        return numbered.select(key, "n", F.col("version").cast("int").alias("version"))

    def read(self, context: SourceContext) -> DataFrame:
        return self.read_many(context, [context.partition])

    def pipeline(self, name: str, partition_by: str = "") -> Pipeline:
        source = Source("feed", self.read, self.available, read_many=self.read_many)
        column = partition_by or self.partitions.column
        bronze = Table(f"{name}.bronze", _as_published, inputs=(source,), partition_by=column)
        gold = Table(f"{name}.gold", self._counted, inputs=(bronze.name,), partition_by=column)
        return Pipeline(name, (bronze, gold), self.partitions)

    def _counted(self, rows: DataFrame) -> DataFrame:
        """The number of rows of each key, and their version."""
        from pyspark.sql import functions as F

        counted = rows.groupBy(self.partitions.column).agg(F.count("n").alias("n"), F.max("version").alias("version"))
        return counted.select(self.partitions.column, "n", "version")


def _as_published(rows: DataFrame) -> DataFrame:
    return rows


def days(count: int) -> list[str]:
    return [(FIRST + timedelta(days=number)).isoformat() for number in range(count)]


def expected(feed: Feed) -> list[tuple[str, int, int]]:
    return [(key, n, feed.versions[key]) for key in sorted(feed.versions) for n in range(1, ROWS_PER_KEY + 1)]


def rows_of(lake: Lake, table: str, column: str) -> list[tuple[str, int, int]]:
    sql = f"SELECT CAST({column} AS STRING), n, version FROM {table} ORDER BY 1, 2"
    return [tuple(row) for row in lake.sql(sql, engine="duckdb").rows()]  # type: ignore[misc]


def check_rows(lake: Lake, name: str, feed: Feed) -> None:
    """Both tables have every row that was published, exactly once, in its last version."""
    column = feed.partitions.column
    assert rows_of(lake, f"{name}.bronze", column) == expected(feed)
    assert rows_of(lake, f"{name}.gold", column) == [
        (key, ROWS_PER_KEY, feed.versions[key]) for key in sorted(feed.versions)
    ]


@pytest.mark.parametrize("count", [450, 1100])
def test_days_that_are_already_there_stay_when_the_days_around_them_are_loaded(
    local_lake: Lake, namespace: str, count: int
) -> None:
    feed, every = Feed(Days()), days(count)
    lake, pipeline = lake_with(local_lake, {}), feed.pipeline(namespace)
    feed.publish(every[7:8] + every[200:203], version=1)
    assert lake.run(pipeline).state == "published"
    feed.publish([key for key in every if key not in feed.versions], version=2)
    record = lake.run(pipeline)
    assert (record.state, record.tables[0].rows) == ("published", (count - 4) * ROWS_PER_KEY)
    check_rows(lake, namespace, feed)


@pytest.mark.faults
def test_text_keys_with_holes_leave_the_others_as_they_are(local_lake: Lake, namespace: str) -> None:
    feed = Feed(Keys())
    count = repetitions(smoke=300, full=6000)
    every = [f"shop-{number:04}" for number in range(count)]
    lake, pipeline = lake_with(local_lake, {}), feed.pipeline(namespace)
    feed.publish(every[::2], version=1)
    assert lake.run(pipeline).state == "published"
    feed.publish(every[1::2], version=2)
    assert lake.run(pipeline).state == "published"
    feed.publish(every[::3], version=3)
    assert lake.run(pipeline).state == "published"
    check_rows(lake, namespace, feed)


def test_rows_of_other_partitions_are_noticed_where_the_metadata_does_not_list_them(
    local_lake: Lake, namespace: str
) -> None:
    feed, every = Feed(Days()), days(6)
    lake = lake_with(local_lake, {})
    pipeline = feed.pipeline(namespace, partition_by="months(date)")  # the summary names months, not days
    feed.publish(every[:3], version=1)
    assert lake.run(pipeline).state == "published"

    def with_a_row_of_the_day_before(rows: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        return rows.union(rows.limit(1).withColumn("date", F.lit(FIRST)).select(rows.columns))

    stray = Table(f"{namespace}.bronze", with_a_row_of_the_day_before, pipeline.tables[0].inputs, partition_by="date")
    feed.publish(every[3:], version=2)
    with pytest.raises(BadDeclarationError, match=f"returned rows of {FIRST} too"):
        lake.run_pipeline(Pipeline(namespace, (stray,), Days()), RunRequest(accept_code=True))
    feed.publish(every[3:], version=3)
    assert lake.run(pipeline).state == "published"
    check_rows(lake, namespace, feed)


@pytest.mark.parametrize(
    ("keys", "ranges"),
    [
        ([], []),
        (["2026-01-02", "2026-01-01", "2026-01-02"], [("2026-01-01", "2026-01-02")]),
        (["2025-12-31", "2026-01-01", "2026-01-03"], [("2025-12-31", "2026-01-01"), ("2026-01-03", "2026-01-03")]),
    ],
)
def test_contiguous_days_cover_exactly_the_keys(keys: list[str], ranges: list[tuple[str, str]]) -> None:
    assert contiguous_days(keys) == [(date.fromisoformat(first), date.fromisoformat(last)) for first, last in ranges]
