"""Runs as transactions: several at once, killed anywhere, and read all the while."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
from tests.support.audit import audit
from tests.support.repetitions import repetitions
from tests.support.servers.nessie import NessieServer, nessie_server
from tests.support.servers.postgres import Postgres
from tests.support.transaction_pipelines import NESSIE_STEPS, STEPS, command, environment, opened, write, writing

from lakehouse.core.names import TableName
from lakehouse.lake import Lake

__all__ = ["nessie_server"]

pytestmark = pytest.mark.slow

LEFT, RIGHT = "pair.left", "pair.right"
#: How often it is read meanwhile: a server is asked over the network.
READS = {"sqlite": repetitions(200, 10_000), "postgres": repetitions(200, 10_000), "nessie": repetitions(50, 1_000)}
QUERIES = repetitions(5, 100)
RUNS = repetitions(2, 5)
#: The code is that of SQLite; what PostgreSQL does with a transaction whose client is gone shows before and after the commit.
POSTGRES_STEPS = repetitions(("between two tables", "before the commit", "after the commit"), tuple(STEPS))
#: Who writes what: three that overlap in the pair, one beside them.
WRITERS = {
    "ann": (LEFT, RIGHT),
    "bob": (RIGHT, LEFT),
    "cid": (LEFT, RIGHT, "solo.third"),
    "dee": ("solo.one", "solo.two"),
}


def place_of(kind: str, request: pytest.FixtureRequest) -> dict[str, str]:
    """The settings of an empty catalog of a kind, as variables; none for the file in the lake's own folder."""
    if kind == "postgres":
        postgres: Postgres = request.getfixturevalue("postgres")
        return {"LAKE_CATALOG__URI": postgres.url}
    if kind == "nessie":
        nessie: NessieServer = request.getfixturevalue("nessie_server")
        return nessie.emptied().settings
    return {}


def counts(lake: Lake, *tables: str) -> list[int]:
    return [lake.sql(f"select count(*) from {table}").rows()[0][0] for table in tables]


def seen_at_once(lake: Lake) -> tuple[int | None, int | None]:
    """The rows of both tables as a statement that joins them would scan them."""
    left, right = TableName.parse(LEFT), TableName.parse(RIGHT)
    tables = lake._components.tables.pinned([left, right])
    return tables.format_of(left).scan(left).total_rows, tables.format_of(right).scan(right).total_rows


JOIN = (
    f"select count(*), count(r.run), (select count(*) from {RIGHT}) from {LEFT} l left join {RIGHT} r on l.run = r.run"
)


@pytest.mark.faults
@pytest.mark.parametrize("kind", ["sqlite", "postgres", "nessie"])
def test_four_runs_at_once_publish_all_or_nothing_while_somebody_reads(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    home, place, reads_wanted = tmp_path / "lake", place_of(kind, request), READS[kind]
    lake = opened(home, place)
    write(lake, "seed", 1, [LEFT, RIGHT])
    started = [
        subprocess.Popen(
            command(home, "write", name, str(RUNS), *tables),
            env=environment(place),
            stderr=subprocess.PIPE,
            text=True,
        )
        for name, tables in WRITERS.items()
    ]
    reads = queries = 0
    while reads < reads_wanted or any(process.poll() is None for process in started):
        left, right = seen_at_once(lake)
        assert left == right, f"read {reads} saw {left} rows beside {right}"
        reads += 1
        if reads % (reads_wanted // QUERIES) == 0:
            rows, joined, others = lake.sql(JOIN, engine="duckdb").rows()[0]
            assert rows == joined == others
            queries += 1
    assert [process.communicate(timeout=300)[1] for process in started] == [""] * 4
    assert [process.returncode for process in started] == [0] * 4
    assert (reads, queries) >= (reads_wanted, QUERIES)
    assert counts(lake, LEFT, RIGHT) == [1 + 3 * RUNS] * 2, "nothing lost, nothing twice"
    assert counts(lake, "solo.third", "solo.one", "solo.two") == [RUNS] * 3
    assert lake.branches() == []
    assert len(lake.refs.branches.tags()) == 1 + 4 * RUNS
    published = [line.run for line in lake.refs.log.lines(limit=1000) if line.commit]
    assert len(published) == len(set(published)) == 1 + 4 * RUNS


@pytest.mark.faults
@pytest.mark.parametrize(
    ("kind", "step"),
    [
        *(("sqlite", step) for step in STEPS),
        *(("postgres", step) for step in POSTGRES_STEPS),
        *(("nessie", step) for step in NESSIE_STEPS),
    ],
)
def test_killed_at_any_step_of_publishing_main_is_old_or_new_and_the_next_run_recovers(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str, step: str
) -> None:
    home, place = tmp_path / "lake", place_of(kind, request)
    lake = opened(home, place)
    write(lake, "seed", 1, [LEFT, RIGHT])
    rows = {"run": {"the_run"}}
    with audit(lake, {LEFT: rows, RIGHT: rows}, refs={"run_*"}, leaves=True):
        kill_and_recover(lake, home, place, step)


def kill_and_recover(lake: Lake, home: Path, place: dict[str, str], step: str) -> None:
    killed = subprocess.run(
        command(home, "die", step, "the_run", LEFT, RIGHT), env=environment(place), capture_output=True, text=True
    )
    assert killed.returncode == -9, killed.stderr
    started = time.monotonic()
    after = counts(lake, LEFT, RIGHT)
    committed = step in ("between the commit and its tag", "after the commit")
    assert after == ([2, 2] if committed else [1, 1])
    record = lake.run_record("the_run")
    assert record.state == ("published" if committed else "killed")
    again = lake.run(writing("dies", "the_run", [LEFT, RIGHT]), id="the_run", light=True)
    assert again.state == "published"
    assert counts(lake, LEFT, RIGHT) == [2, 2], "done once, not twice"
    assert lake.branches() == []
    assert "run_the_run" in [tag.name for tag in lake.refs.branches.tags()]
    assert time.monotonic() - started < 25, "nobody waits for a lock of the dead"
