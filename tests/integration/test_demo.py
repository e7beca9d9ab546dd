"""`lake demo`, as a newcomer runs it: once, and again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.conftest import Command, stop_spark

pytestmark = pytest.mark.spark


def test_the_demo_tells_its_story_and_is_safe_to_run_twice(lake_command: Command, home: Path) -> None:
    try:
        first, second = lake_command("demo"), lake_command("demo")
    finally:
        stop_spark(home)
    for told in (first, second):
        assert told.returncode == 0, told.stderr
        assert "Edsger  Rotterdam  1       3.20" in told.stdout, "the join of Hudi and Iceberg"
        assert "1 added, 0 removed, 1 changed by key id" in told.stderr
        assert "files:  1 of 2 read" in told.stderr
        assert "again: 4 rows" in told.stderr, "the rollback"
        assert "demo.customers is back, with 3 rows" in told.stderr
        for table in ("demo.leads", "demo.leads_hudi"):
            assert re.search(rf"{table} +upsert +3 +1 +1 +1 +0 ", told.stdout), (
                "Tuesday: one inserted, updated, unchanged"
            )
            assert f"is in {table} already" in told.stderr
        assert told.stderr.count("column added: city string") >= 4, "while ingesting, and in the diff, for each format"
