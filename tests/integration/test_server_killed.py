"""A server that dies while a pipeline runs: main is old or new in all tables, and the next run goes on."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import LAKE, command_for
from tests.support.repetitions import repetitions
from tests.support.servers.stack import Stack

from lakehouse.config.settings import Settings
from lakehouse.engines.trino import Trino, TrinoSettings
from lakehouse.lake.assemble import assemble
from lakehouse.pipelines.market.sample import write_day
from lakehouse.stack.native import status, up

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.faults]

#: The server dies when the run prints the name of this table.
STEP = "silver.minute_aggs"
VICTIMS = repetitions(smoke=("postgres",), full=("storage", "postgres"))
TABLES = {
    "bronze.minute_aggs",
    "silver.minute_aggs",
    "gold.daily_bars",
    "gold.volatility",
}


Contents = dict[str, list[dict[str, Any]]]


def contents(settings: Settings) -> Contents:
    """The rows of every table, as a lake sees them that was opened after the server died."""
    with assemble(settings) as lake:
        names = sorted({str(info.name) for info in lake.tables()} & TABLES)
        read = {name: lake.sql(f"select * from {name}", engine="duckdb").to_arrow().to_pylist() for name in names}
    return {name: sorted(rows, key=repr) for name, rows in read.items()}


def days(tables: Contents) -> dict[str, int]:
    """How many days each table has."""
    return {name: len({row["date"] for row in rows}) for name, rows in tables.items()}


def run_until(step: str, environment: dict[str, str]) -> subprocess.Popen[str]:
    """A run of the pipeline that has come to a step."""
    process = subprocess.Popen(
        [LAKE, "run", "market"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout
    assert any(line.startswith(step) for line in process.stdout), f"the run ended without {step}"
    return process


def test_a_server_killed_during_a_run_costs_nothing_but_the_run(stack: Stack, tmp_path: Path) -> None:
    facts = stack.need("storage", "postgres", "trino")
    trino = Trino(TrinoSettings(facts.trino_url))
    trino.run("show schemas from lake", "asked for")  # it keeps a connection to the catalog's database
    bars, settings = tmp_path / "bars", replace(stack.settings, profile="sql")
    environment = {**stack.environment, "LAKE_PROFILE": "sql", "LAKE_SOURCES__MARKET__PATH": str(bars)}
    for number, victim in enumerate(VICTIMS):
        write_day(bars, date(2026, 1, 14 + number), tickers=20)
        before = contents(settings)
        running = run_until(STEP, environment)
        (pid,) = [service.pid for service in status(stack.settings) if service.service == victim]
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        said, _ = running.communicate(timeout=300)
        assert "Traceback" not in said
        up(stack.settings, VICTIMS)  # the supervisor has started it anew; this waits until it answers
        left = contents(settings)
        if running.returncode:
            assert left == before, f"{victim} died, and a table has changed: {said}"
        else:
            assert days(left) == dict.fromkeys(left, number + 1)
    completed = command_for(stack.settings.home)("run", "market", env=environment)
    assert completed.returncode == 0, completed.stderr
    assert days(contents(settings)) == dict.fromkeys(TABLES, len(VICTIMS))
    assert trino.run("select count(*) from lake.gold.daily_bars", "asked for").rows()
