"""Runs of every pipeline, killed on their way: main is what it was or what it should be, never a mixture, and a later run completes it."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import LAKE, Command
from tests.support.audit import ALL, audit
from tests.support.repetitions import repetitions
from tests.support.servers.postgres import running_server

from lakehouse.lake import Lake
from lakehouse.pipelines.market.sample import write_day
from lakehouse.pipelines.social import sample
from lakehouse.pipelines.taxi.sample import write_month

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.faults]

#: Columns that differ from run to run by their nature.
VOLATILE = {"ingested_at", "run", "rejected_at"}
#: Of each pipeline.
KILLS = repetitions(smoke=1, full=17)
LONGEST_DELAY_S = 0.5

Contents = dict[str, list[str]]


@dataclass(frozen=True)
class Victim:
    """A pipeline whose first run is published, with something new at its source."""

    pipeline: str
    lake: Lake
    command: Command
    tables: tuple[str, ...]
    before: Contents
    after: Contents
    steps: tuple[str, ...]
    """What `lake run` prints on its way, the publish last."""

    def contents(self) -> Contents:
        return contents(self.lake, self.tables)

    def kill_at(self, step: str, delay: float = 0.0) -> str:
        """Kill a run so long after it has printed a step; returns its id, or nothing if the run was faster."""
        process = subprocess.Popen(
            [LAKE, "run", self.pipeline], stderr=subprocess.PIPE, text=True, env=self.environment
        )
        assert process.stderr is not None
        with process.stderr:
            assert any(line.strip() == step for line in process.stderr), f"the run ended without {step!r}"
            time.sleep(delay)
            seen = None if step == self.steps[-1] else (self.lake.runs()[0], self.lake.branches())
            process.kill()
        if process.wait() != -signal.SIGKILL:
            assert delay, "a kill without a delay hits a run that is in progress"
            return ""
        if seen is not None:
            record, branches = seen
            assert (record.pipeline, record.state, record.pid) == (self.pipeline, "running", process.pid)
            assert record.branch in branches
        return self.lake.runs()[0].id

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "LAKE_HOME": str(self.lake.folder)}

    def revert(self, run: str) -> None:
        done = self.command("revert", f"run_{run}")
        assert done.returncode == 0, done.stderr
        assert self.contents() == self.before


def contents(lake: Lake, tables: tuple[str, ...]) -> Contents:
    """The rows of every table, sorted; of rejected rows their reasons, since their text holds when they were read."""
    content = {}
    for info in lake.tables():
        name = str(info.name)
        if name.removesuffix("__rejected") in tables:
            columns = [column.name for column in lake.describe(name).columns if column.name not in VOLATILE]
            chosen = "reason" if name.endswith("__rejected") else ", ".join(columns)
            rows = lake.sql(f"select {chosen} from {name}", engine="duckdb").rows()
            content[name] = sorted(map(repr, rows))
    return content


@pytest.fixture
def victim_of(
    shared_lake: Lake, command: Command, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str, str, str, Callable[[], Any]], Victim]]:
    """Prepares a pipeline: one run is published, a second one was and is reverted, so that its work is to be done again."""
    tables: list[str] = []

    def prepare(pipeline: str, setting: str, value: str, grow: Callable[[], Any]) -> Victim:
        monkeypatch.setenv(f"LAKE_SOURCES__{pipeline.upper()}__{setting}", value)
        tables.extend(table.name for table in shared_lake.pipelines()[pipeline].tables)
        names = tuple(tables)
        published(command("run", pipeline))
        before = contents(shared_lake, names)
        grow()
        second = published(command("run", pipeline))
        steps = tuple(line for line in second.splitlines() if line.startswith((*names, "Publishing")))
        assert {re.split(r":| \(", step)[0] for step in steps} == {*names, "Publishing"}
        after = contents(shared_lake, names)
        assert after.keys() == before.keys() and after != before
        victim = Victim(pipeline, shared_lake, command, names, before, after, steps)
        victim.revert(shared_lake.runs()[0].id)
        return victim

    yield prepare
    for info in shared_lake.tables():
        if str(info.name).removesuffix("__rejected") in tables:
            shared_lake.drop(str(info.name))
    for branch in shared_lake.branches():
        assert command("branch", "drop", branch).returncode == 0


def published(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    assert "Published" in done.stderr
    return done.stderr


def kill_and_complete(victim: Victim, complete: Callable[[str], subprocess.CompletedProcess[str]]) -> None:
    """Kill runs at steps chosen at random and at the publish, then have the work completed."""
    rejected = [f"{table}__rejected" for table in victim.tables]
    with audit(victim.lake, dict.fromkeys((*victim.tables, *rejected), ALL), refs={"run_*"}, leaves=True):
        killed = kill_often(victim)
        published(complete(killed))
    assert victim.contents() == victim.after
    assert "There was nothing new" in victim.command("run", victim.pipeline).stderr


def kill_often(victim: Victim) -> str:
    """Kill runs; returns one that was not published."""
    chance = random.Random(5)
    killed = ""
    kills = 0
    while kills < KILLS:
        step = victim.steps[-1] if kills % 2 else chance.choice(victim.steps[:-1])
        run = victim.kill_at(step, chance.uniform(0, LONGEST_DELAY_S) if kills >= 2 else 0.0)
        state = victim.lake.run_record(run).state if run else "published"
        assert state == "killed" or step == victim.steps[-1] or not run, f"killed at {step}, the run is {state}"
        assert victim.contents() == (victim.after if state == "published" else victim.before), f"killed at {step}"
        kills += bool(run)
        killed = run if state == "killed" else killed
        if state == "published":
            victim.revert(run or victim.lake.runs()[0].id)
    return killed


def test_a_killed_market_run_leaves_the_old_or_the_new_and_a_second_run_completes_it(
    victim_of: Callable[..., Victim], tmp_path: Path
) -> None:
    write_day(tmp_path, date(2026, 1, 14), tickers=3)
    victim = victim_of("market", "PATH", str(tmp_path), lambda: write_day(tmp_path, date(2026, 1, 15), tickers=3))
    kill_and_complete(victim, lambda killed: victim.command("run", "market"))


def test_a_killed_taxi_run_leaves_the_old_or_the_new_and_is_resumed(
    victim_of: Callable[..., Victim], tmp_path: Path
) -> None:
    write_month(tmp_path, "2025-12", rows=1_000)
    victim = victim_of("taxi", "PATH", str(tmp_path), lambda: write_month(tmp_path, "2026-01", rows=1_000))
    kill_and_complete(victim, lambda killed: victim.command("run", "--resume", killed))


def test_a_killed_social_run_leaves_the_old_or_the_new_and_is_resumed(victim_of: Callable[..., Victim]) -> None:
    # Not the server that other tests share, which is started where they run: this one needs the warm Spark.
    with running_server() as postgres, postgres.connect() as connection:
        sample.create(connection, users=40)
        victim = victim_of("social", "URL", postgres.url, lambda: sample.change(connection))
        kill_and_complete(victim, lambda killed: victim.command("run", "--resume", killed))
