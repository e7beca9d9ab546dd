"""A month or a day of bad source data: the run is blocked, and silver and gold keep the rows and snapshots that they had."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from tests.support.sales_pipeline import lake_with

from lakehouse.core.errors import LakeError, RunBlockedError
from lakehouse.lake import Lake
from lakehouse.pipelines.market.sample import write_day
from lakehouse.pipelines.taxi.sample import write_month

pytestmark = pytest.mark.spark

JANUARY, FEBRUARY = "2026-01", "2026-02"
WEDNESDAY, THURSDAY = date(2026, 1, 14), date(2026, 1, 15)

LakeOf = Callable[[str, Path], Lake]


@pytest.fixture
def lake_of(local_lake: Lake) -> Iterator[LakeOf]:
    """A lake whose pipeline of that name reads a folder; its tables are dropped afterwards."""
    used: list[str] = []

    def prepare(pipeline: str, folder: Path) -> Lake:
        used.extend(table.name for table in local_lake.pipelines()[pipeline].tables)
        return lake_with(local_lake, {pipeline: {"path": str(folder)}})

    yield prepare
    for info in local_lake.tables():
        if str(info.name).removesuffix("__rejected") in used:
            local_lake.drop(str(info.name))


def state_of(lake: Lake, pipeline: str) -> dict[str, tuple[Any, ...]]:
    """Rows and newest snapshot of every table."""
    state = {}
    for table in lake.pipelines()[pipeline].tables:
        rows = lake.sql(f"select * from {table.name}", engine="duckdb").rows()
        state[table.name] = (sorted(map(repr, rows)), lake.history(table.name)[-1].id)
    return state


def test_a_bad_month_and_a_bad_correction_leave_all_taxi_tables_as_they_were(lake_of: LakeOf, tmp_path: Path) -> None:
    lake = lake_of("taxi", tmp_path)
    write_month(tmp_path, JANUARY, rows=400)
    assert lake.run("taxi").state == "published"
    before = state_of(lake, "taxi")
    # Both files hold trips of another month.
    for month in (JANUARY, FEBRUARY):
        write_month(tmp_path, "2025-06", rows=500).rename(tmp_path / f"yellow_tripdata_{month}.parquet")
    with pytest.raises(RunBlockedError, match=r"silver\.stg_yellow_trips: keeps_most_of_"):
        lake.run("taxi")
    assert state_of(lake, "taxi") == before
    blocked = lake.runs()[0]
    assert (blocked.state, blocked.branch in lake.branches()) == ("blocked", True)
    write_month(tmp_path, JANUARY, rows=400)
    write_month(tmp_path, FEBRUARY, rows=400, seed=1)
    assert lake.run("taxi").state == "published"
    months = lake.sql("select month, sum(trips) > 0 from gold.fct_daily_trips group by 1 order by 1").rows()
    assert months == [(JANUARY, True), (FEBRUARY, True)]


def crossed_prices(content: bytes) -> bytes:
    """A day whose every bar has its lowest price above its highest."""
    header, *lines = gzip.decompress(content).decode().splitlines()
    high, low = header.split(",").index("high"), header.split(",").index("low")
    rows = [line.split(",") for line in lines]
    for row in rows:
        if len(row) > max(high, low):
            row[high], row[low] = row[low], f"1{row[high]}"
    return gzip.compress("\n".join([header, *(",".join(row) for row in rows)]).encode())


def cut_off(content: bytes) -> bytes:
    return content[: len(content) // 2]


def other_columns(content: bytes) -> bytes:
    return gzip.compress(gzip.decompress(content).replace(b"ticker,volume", b"ticker,shares", 1))


def test_bad_days_leave_all_market_tables_as_they_were(lake_of: LakeOf, tmp_path: Path) -> None:
    lake = lake_of("market", tmp_path)
    write_day(tmp_path, WEDNESDAY, tickers=2)
    assert lake.run("market").state == "published"
    before = state_of(lake, "market")
    for spoil, day, state in (
        (crossed_prices, THURSDAY, "blocked"),
        (crossed_prices, WEDNESDAY, "blocked"),
        (cut_off, THURSDAY, "failed"),
        (other_columns, THURSDAY, "failed"),
    ):
        for file in write_day(tmp_path, day, tickers=2).files:
            file.write_bytes(spoil(file.read_bytes()))
        with pytest.raises((LakeError, PySparkException, Py4JJavaError)) as caught:
            lake.run("market", day.isoformat())
        record = lake.runs()[0]
        assert (record.state, record.branch in lake.branches()) == (state, True), caught.value
        assert state_of(lake, "market") == before, f"{spoil.__name__} {day}"
