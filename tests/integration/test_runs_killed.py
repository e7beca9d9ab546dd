"""Runs that are killed: main is what it was or what it should be, never something between, and the next run goes on."""

from __future__ import annotations

import os
import random
import subprocess
import time
from datetime import date
from pathlib import Path

import pytest
from tests.conftest import LAKE, Command, command_for

from lakehouse.pipelines.market.sample import write_day

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TABLES = (
    "bronze.minute_aggs",
    "silver.minute_aggs",
    "silver.minute_aggs__rejected",
    "gold.daily_bars",
    "gold.volatility",
)
#: What differs from run to run by its nature.
EXCEPT = {"ingested_at", "run", "rejected_at"}
KILLS = 3


def contents(command: Command) -> dict[str, str]:
    """Every table's rows, in an order of their own."""
    found = {}
    for table in TABLES:
        described = command("describe", table, "-o", "json")
        if described.returncode:
            continue
        columns = [name for name in _columns(described.stdout) if name not in EXCEPT]
        picked = ", ".join(f"cast({name} as string)" for name in columns)
        done = command(
            "sql",
            f"select {picked} from {table} order by {', '.join(map(str, range(1, len(columns) + 1)))}",
            "-o",
            "csv",
        )
        # A rejected row holds the moment of its reading inside its JSON.
        assert done.returncode == 0, done.stderr
        found[table] = done.stdout if "rejected" not in table else str(done.stdout.count("\n"))
    return found


def _columns(text: str) -> list[str]:
    import json

    return [column["name"] for column in json.loads(text)[0]["columns"]]


def test_killed_at_any_moment_a_run_leaves_the_old_or_the_new_and_a_rerun_completes_it(tmp_path: Path) -> None:
    bars = tmp_path / "bars"
    for day in (14, 15):
        write_day(bars, date(2026, 1, day))
    source = {"LAKE_SOURCES__MARKET__PATH": str(bars)}
    clean, killed = command_for(tmp_path / "clean"), command_for(tmp_path / "killed")
    started = time.monotonic()
    assert clean("run", "market", env=source).returncode == 0
    took = time.monotonic() - started
    wanted, chance = contents(clean), random.Random(5)
    for _ in range(KILLS):
        environment = {**os.environ, **source, "LAKE_HOME": str(tmp_path / "killed")}
        process = subprocess.Popen(
            [LAKE, "run", "market"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(chance.uniform(took * 0.3, took * 0.95))
        process.kill()
        process.wait()
        assert contents(killed) in ({}, wanted), "all tables or none"
    done = killed("run", "market", env=source)
    assert done.returncode == 0, done.stderr
    assert contents(killed) == wanted
    assert killed("run", "market", env=source).stderr.count("There was nothing new") == 1
