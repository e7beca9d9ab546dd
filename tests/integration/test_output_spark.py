"""What a command prints does not tell which engine answered: the warm Spark's rows arrive as text, DuckDB's as values."""

from __future__ import annotations

import pytest
from tests.conftest import command_for

from lakehouse.config.settings import Settings
from lakehouse.lake import Lake

pytestmark = pytest.mark.spark

#: A value of each type, and times that Python's classes cannot hold.
VALUES = """
select true as yes, cast(7 as tinyint) as tiny, 9223372036854775807 as big, 1.50 as price,
  123456789012345678901234567890.12345678 as wide, cast(0.1 as float) as f, 1e300 as d, double('NaN') as nan, -double('inf') as inf,
  'ü, "quoted"' as text, x'00ff' as raw, cast(null as string) as missing, date'2026-01-31' as day,
  timestamp'2026-01-31 12:30:00' as at, timestamp'2026-01-31 12:30:00.5' as late, timestamp_ntz'2026-01-31 12:30:00' as local,
  array(1, null) as numbers, array(timestamp'2026-01-31 12:30:00') as times, array(1.50) as prices,
  map('a', date'2026-01-31') as named, named_struct('at', timestamp'2026-01-31 12:30:00', 'raw', x'00') as event,
  timestamp'0001-01-01 00:00:00' as least, timestamp'0001-01-01 00:00:00' - interval 1 day as before,
  timestamp'9999-12-31 23:59:59.5' + interval 1 second as after, date'0001-01-01' - interval 3 day as old,
  array(date'9999-12-31' + interval 1 day) as later
"""


@pytest.mark.parametrize("output", ["table", "json", "csv"])
def test_both_engines_print_the_same(shared_lake: Lake, shared_settings: Settings, output: str) -> None:
    lake = command_for(shared_settings.home)
    duckdb, spark = (lake("sql", "--engine", engine, "-o", output, VALUES) for engine in ("duckdb", "spark"))
    assert (duckdb.returncode, spark.returncode) == (0, 0), duckdb.stderr + spark.stderr
    assert spark.stdout == duckdb.stdout


@pytest.mark.parametrize("engine", ["duckdb", "spark"])
def test_python_gets_what_its_classes_can_hold_and_text_otherwise(shared_lake: Lake, engine: str) -> None:
    (row,) = shared_lake.sql(VALUES, engine=engine).dicts()
    assert row["least"].isoformat() == "0001-01-01T00:00:00+00:00"
    assert row["times"] == [row["at"]]
    assert (row["before"], row["after"]) == ("0000-12-31 00:00:00Z", "+10000-01-01 00:00:00.5Z")
    assert (row["old"], row["later"]) == ("0000-12-29", ["+10000-01-01"])
