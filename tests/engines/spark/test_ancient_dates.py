"""Dates long ago: Spark's own files of old used another calendar before 1582, ours never do."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from lakehouse.lake import Lake

pytestmark = pytest.mark.spark

DAYS = [date(1, 1, 1), date(1582, 10, 4), date(1582, 10, 15), date(1899, 12, 31), date(2026, 1, 31)]
TIMES = [datetime(day.year, day.month, day.day, 12, 30, tzinfo=UTC) for day in DAYS]


@pytest.mark.parametrize("table_format", ["iceberg", "hudi"])
def test_dates_before_1900_are_the_same_for_both_engines(
    shared_lake: Lake, namespace: str, tmp_path: Path, table_format: str
) -> None:
    table = f"{namespace}.days"
    lines = [f"{day.isoformat()},{at.isoformat()}" for day, at in zip(DAYS, TIMES, strict=True)]
    for number in (1, 2):  # a new table, which Spark creates, then an append, which is native for Iceberg
        file = tmp_path / f"{number}.csv"
        file.write_text("\n".join(["n,day,at", *(f"{number},{line}" for line in lines)]) + "\n")
        assert shared_lake.ingest(file, into=table, format=table_format).inserted == len(DAYS)
    expected = [(number, day, at) for number in (1, 2) for day, at in zip(DAYS, TIMES, strict=True)]
    for engine in ("duckdb", "spark"):
        assert shared_lake.sql(f"select n, day, at from {table} order by n, day", engine=engine).rows() == expected
