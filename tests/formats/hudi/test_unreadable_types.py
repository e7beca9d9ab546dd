"""A Hudi table with types or names that hudi-rs does not know is read, and no panic of Rust reaches anybody."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from tests.conftest import command_for

from lakehouse.config.settings import Settings
from lakehouse.lake import Lake

pytestmark = pytest.mark.spark


def test_a_timestamp_without_a_zone_is_read_and_ends_no_command_about_many_tables(
    shared_lake: Lake, shared_settings: Settings, namespace: str, tmp_path: Path
) -> None:
    table = f"{namespace[:60]}.events"
    shared_lake.sql(
        f"create table {table} (id int, at timestamp_ntz, `größe` int) using hudi tblproperties (primaryKey = 'id')"
    )
    shared_lake.sql(f"insert into {table} values (1, timestamp_ntz '2026-01-14 10:00:00', 5)")
    result = shared_lake.sql(f"select id, at from {table}")
    assert (result.rows(), result.explain.engine) == ([(1, datetime(2026, 1, 14, 10))], "duckdb")
    lake = command_for(shared_settings.home)
    for command in (
        ["verify", table],
        ["verify"],
        ["tables"],
        ["health"],
        ["export", table, str(tmp_path / "events.csv")],
    ):
        done = lake(*command)
        assert "panicked" not in done.stderr and "Traceback" not in done.stderr, done.stderr
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "events.csv").read_text() == "id,at,größe\n1,2026-01-14 10:00:00,5\n"
