"""The gain of each optimization of the taxi pipeline: the same step with and without it, in turns, in one Spark.

`python -m bench.tricks 1000000 --rounds 3` prints the median processor seconds of Python and Java (machines that others use make
wall time useless) and records the ratios in bench/results/tricks.json. A warm-up round of every variant comes first.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import psutil
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.measure import Ratio, report
from lakehouse.config.load import load_settings
from lakehouse.lake.assemble import assemble
from lakehouse.pipelines.taxi import gold, silver
from lakehouse.pipelines.taxi.pipeline import stg_yellow_trips
from lakehouse.pipelines.taxi.sample import write_month
from lakehouse.pipelines.taxi.source.months import RawMonth
from lakehouse.pipelines.taxi.source.published import read_published, with_lineage
from lakehouse.runs.validate import Keys, validated
from lakehouse.storage.raw import local_raw_area

MONTH = "2026-01"
ON, PLAIN = {"spark.sql.codegen.maxFields": "25"}, "without "


def cpu_seconds() -> float:
    """Processor seconds of this process and its Java so far."""
    own = psutil.Process()
    times = [process.cpu_times() for process in (own, *own.children(recursive=True))]
    return sum(time.user + time.system for time in times)


def decimal_columns() -> Any:
    """silver.py with Spark's decimals instead of integers."""

    def hundredths(number: Column, largest: float) -> Column:
        return F.when(F.abs(number) <= largest, (number.cast("decimal(18,2)") * 100).cast("bigint"))

    def quotient(over: Column, under: Column) -> Column:
        return F.round(over.cast("decimal(18,0)") / under.cast("decimal(10,0)"), 0).cast("bigint")

    def decimal(count: Column, kind: str, unit: Decimal = Decimal("0.01")) -> Column:
        return (count.cast("decimal(18,0)") * F.lit(unit)).cast(kind)

    return patch.multiple(silver, hundredths=hundredths, quotient=quotient, decimal=decimal)


def decimal_sums() -> Any:
    """gold.py with Spark's sum of decimals."""
    return patch.object(gold, "exact_sum", lambda amount, kind: F.sum(amount).cast(kind))


def build_silver(bronze: DataFrame, sort: bool = False) -> None:
    rows = silver.stg_yellow_trips(bronze)
    keys = Keys(stg_yellow_trips.key, stg_yellow_trips.newest, sort=sort)
    with validated("silver", rows, stg_yellow_trips.rules, keys) as result:
        result.valid.write.format("noop").mode("overwrite").save()


def build_gold(trips: DataFrame) -> None:
    for transform in (gold.fct_daily_trips, gold.fct_hourly_revenue, gold.fct_trip_distance_stats):
        transform(trips).write.format("noop").mode("overwrite").save()


@contextmanager
def session_conf(spark: SparkSession, **conf: str) -> Iterator[None]:
    for name, value in {**ON, **{f"spark.sql.codegen.{key}": value for key, value in conf.items()}}.items():
        spark.conf.set(name, value)
    yield


def variants(spark: SparkSession, bronze: DataFrame, trips: DataFrame) -> dict[str, Callable[[], None]]:
    def step(work: Callable[[], None], patched: Callable[[], Any] | None = None, **conf: str) -> Callable[[], None]:
        def run() -> None:
            with session_conf(spark, **conf):
                if patched is None:
                    work()
                    return
                with patched():
                    work()

        return run

    return {
        "silver": step(lambda: build_silver(bronze)),
        PLAIN + "validate": step(lambda: build_silver(bronze, sort=True)),
        PLAIN + "columns": step(lambda: build_silver(bronze), decimal_columns),
        PLAIN + "maxFields": step(lambda: build_silver(bronze), maxFields="100"),
        "gold": step(lambda: build_gold(trips)),
        PLAIN + "exact_sum": step(lambda: build_gold(trips), decimal_sums),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    from datetime import UTC, datetime

    with tempfile.TemporaryDirectory(prefix="lake-bench-") as scratch:
        file = write_month(Path(scratch), MONTH, rows=options.rows)
        settings = load_settings({"home": f"{scratch}/lake", "spark.master": "local[2]"})
        with assemble(settings) as lake, lake._components.runner().session({}, True) as spark:
            raw = with_lineage(
                read_published(spark, RawMonth(local_raw_area(file.parent), file.name))[0],
                MONTH,
                file.name,
                datetime.now(UTC),
            )
            raw.repartition(4).write.parquet(f"{scratch}/bronze")
            bronze = spark.read.parquet(f"{scratch}/bronze")
            silver.stg_yellow_trips(bronze).write.parquet(f"{scratch}/silver")
            works = variants(spark, bronze, spark.read.parquet(f"{scratch}/silver"))
            times: dict[str, list[float]] = {name: [] for name in works}
            for number in range(options.rounds + 1):
                for name, work in works.items():
                    before = cpu_seconds()
                    work()
                    took = cpu_seconds() - before
                    print(f"{number or 'warm-up'} {name:24} {took:6.2f} s CPU", flush=True)
                    if number:
                        times[name].append(took)
    took_by = {name: median(seconds) for name, seconds in times.items()}
    base = {name: "gold" if name.endswith("exact_sum") else "silver" for name in took_by if name.startswith(PLAIN)}
    ratios = [Ratio(step, took_by[step], name, took_by[name], 1.0) for name, step in base.items()]
    return report("tricks", ratios)


if __name__ == "__main__":
    sys.exit(main())
