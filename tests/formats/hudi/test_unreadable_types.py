"""A Hudi table with types that hudi-rs does not know: Spark reads it, and no panic of Rust reaches anybody."""

from __future__ import annotations

from datetime import datetime

import pytest
from tests.conftest import command_for

from lakehouse.config.settings import Settings
from lakehouse.lake import Lake

pytestmark = pytest.mark.spark


def test_a_timestamp_without_a_zone_is_read_by_spark_and_ends_no_command_about_many_tables(
    shared_lake: Lake, shared_settings: Settings, namespace: str
) -> None:
    table = f"{namespace[:60]}.events"
    shared_lake.sql(f"create table {table} (id int, at timestamp_ntz) using hudi tblproperties (primaryKey = 'id')")
    shared_lake.sql(f"insert into {table} values (1, timestamp_ntz '2026-01-14 10:00:00')")
    result = shared_lake.sql(f"select id, at from {table}")
    assert (result.rows(), result.explain.engine) == ([(1, datetime(2026, 1, 14, 10))], "spark")
    lake = command_for(shared_settings.home)
    for command in (["verify", table], ["verify"], ["tables"], ["health"], ["export", table, "/nowhere.csv"]):
        done = lake(*command)
        assert "panicked" not in done.stderr and "Traceback" not in done.stderr, done.stderr
        assert done.returncode == (0 if command[0] != "export" else 2), done.stderr
