"""A server that dies while a pipeline runs: main is old or new in all tables, and the next run goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from datetime import date
from pathlib import Path

import pytest
from tests.conftest import LAKE, command_for, stop_spark
from tests.integration.test_runs_killed import contents
from tests.servers.stack import Stack

from lakehouse.engines.trino import Trino, TrinoSettings
from lakehouse.pipelines.market.sample import write_day
from lakehouse.stack.native import status, up

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_a_server_killed_during_a_run_costs_nothing_but_the_run(stack: Stack, tmp_path: Path) -> None:
    facts = stack.need("storage", "postgres", "trino")
    trino = Trino(TrinoSettings(facts.trino_url))
    trino.run("show schemas from lake", "asked for")  # it keeps a connection to the catalog's database
    bars = tmp_path / "bars"
    environment = {**stack.environment, "LAKE_PROFILE": "sql", "LAKE_SOURCES__MARKET__PATH": str(bars)}
    lake = command_for(stack.settings.home)

    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        return lake(*arguments, env=environment)

    took = 20.0
    for number, victim in enumerate(("storage", "postgres")):
        write_day(bars, date(2026, 1, 14 + number), tickers=20)
        before = contents(command)
        running = subprocess.Popen(
            [LAKE, "run", "market"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        time.sleep(took * 0.6)
        (pid,) = [each.pid for each in status(stack.settings) if each.service == victim]
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        told, _ = running.communicate(timeout=300)
        assert "Traceback" not in told
        up(stack.settings, ["storage", "postgres"])  # the supervisor has started it anew; this waits until it answers
        left = contents(command)
        started = time.monotonic()
        again = command("run", "market")
        took = time.monotonic() - started
        assert again.returncode == 0, again.stderr
        after = contents(command)
        assert left in (before, after), "all tables are old or all are new"
        assert running.returncode == 0 or left == before
    assert trino.run("select count(*) from lake.gold.daily_bars", "asked for").rows()
    stop_spark(stack.settings.home)
