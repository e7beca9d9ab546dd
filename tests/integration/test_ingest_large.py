"""Ingest of a file of ten times the memory limit."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest
from tests.conftest import Command, stop_spark

pytestmark = pytest.mark.spark

LIMIT_MB = 40
ROWS = 1_000_000


def test_a_file_of_ten_times_the_memory_limit_is_ingested(lake_command: Command, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "large.csv"
    duckdb.sql(
        f"""COPY (SELECT i AS id, DATE '2026-01-01' + CAST(i % 20 AS INTEGER) AS day, repeat(md5(CAST(i AS VARCHAR)), 13) AS note
        FROM range({ROWS}) t(i)) TO '{file}' (HEADER)"""
    )
    assert file.stat().st_size > 10 * LIMIT_MB * 1024 * 1024
    limit = {"LAKE_QUERY__MEMORY_LIMIT": f"{LIMIT_MB}MB"}
    try:
        done = lake_command("ingest", str(file), "--into", "big.rows", "--partition-by", "day", env=limit)
    finally:
        stop_spark(home)
    assert done.returncode == 0, done.stderr
    counted = lake_command("sql", "select count(*) as n, count(distinct id) as ids from big.rows", "-o", "json")
    assert json.loads(counted.stdout) == [{"n": ROWS, "ids": ROWS}]
