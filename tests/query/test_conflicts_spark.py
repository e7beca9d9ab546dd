"""Statements that lose a race are run again: real writers on one table, in one warm Spark."""

from __future__ import annotations

import json
import sys

import pytest
from tests.support.racing_writers import start_writer
from tests.support.repetitions import repetitions
from tests.support.threads import at_once

from lakehouse.config.settings import Settings
from lakehouse.core.result import Result
from lakehouse.lake import Lake

pytestmark = pytest.mark.spark


def test_updates_at_the_same_time_all_count(shared_lake: Lake, namespace: str) -> None:
    table = f"{namespace}.t"
    shared_lake.sql(f"create table {table} as select 1 as id, 0 as n")
    updates = at_once(lambda number: shared_lake.sql(f"update {table} set n = n + 1 where id = 1"), 4)
    assert all(isinstance(update, Result) for update in updates), updates
    assert shared_lake.sql(f"select n from {table}", engine="duckdb").rows() == [(4,)]


WRITERS = ("merge", "command", "upsert", "upsert")


@pytest.mark.faults
def test_merges_and_upserts_beside_maintenance_all_make_progress_and_count_once(
    shared_lake: Lake, shared_settings: Settings, namespace: str
) -> None:
    table, seconds = f"{namespace}.t", repetitions(8.0, 120.0)
    shared_lake.sql(f"create table {table} (writer bigint, step bigint, n bigint)")
    ways = (*WRITERS, "maintain")
    processes = [start_writer(shared_settings.home, table, number, way, seconds) for number, way in enumerate(ways)]
    steps = [json.loads(process.communicate(timeout=seconds + 120)[0]) for process in processes]
    outcomes = [outcome for own in steps[:-1] for _, outcome, _ in own]
    done = {number: [step for step, outcome, _ in own if outcome == "done"] for number, own in enumerate(steps[:-1])}
    rows = shared_lake.sql(f"select writer, step, n from {table} order by 1, 2", engine="duckdb").rows()
    slowest = max(taken for own in steps[:-1] for _, _, taken in own)
    by_writer = ", ".join(f"{way} {len(done[number])} of {len(steps[number])}" for number, way in enumerate(WRITERS))
    sys.stdout.write(f"{seconds:.0f} s: {by_writer}, maintain {len(steps[-1])}; slowest statement {slowest:.1f} s\n")

    assert set(outcomes) <= {"done", "conflict"}
    assert outcomes.count("done") >= 0.95 * len(outcomes), outcomes
    assert all(len(acknowledged) > 1 for acknowledged in done.values()), done
    assert {outcome for _, outcome, _ in steps[-1]} == {"done"}
    expected = {(writer, step): 1 for writer, acknowledged in done.items() for step in acknowledged}
    for writer, way in enumerate(WRITERS):
        expected[writer, 0] = max(done[writer]) if way == "upsert" else len(done[writer])
    assert {(writer, step): n for writer, step, n in rows} == expected
    assert len(rows) == len(expected)
