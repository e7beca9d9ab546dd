"""Ingests that run concurrently, are killed or lose their Spark: every row once, none lost, nothing left behind."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.conftest import LAKE, Command, command_for, stop_spark
from tests.support.audit import ALL, audit
from tests.support.repetitions import repetitions

from lakehouse.config.load import load_settings
from lakehouse.lake import Lake
from lakehouse.lake.assemble import assemble
from lakehouse.lake.spark import spark_daemon

pytestmark = pytest.mark.spark

#: How often an ingest is killed.
MOMENTS = repetitions(2, 50)
HUDI_MOMENTS = repetitions(1, 10)
ORPHANS = repetitions(1, 5)
ROWS = 100_000
PROCESSES, FILES = repetitions(3, 8), repetitions(3, 25)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A separate lake, because its Spark is killed."""
    home = tmp_path_factory.mktemp("faults") / "lake"
    yield home
    stop_spark(home)


@pytest.fixture(scope="module")
def lake(home: Path) -> Iterator[Lake]:
    with assemble(load_settings({"home": home})) as lake:
        lake.sql("select 1", engine="spark").rows()
        yield lake


@pytest.fixture(scope="module")
def command(home: Path) -> Command:
    return command_for(home)


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("big") / "big.csv"
    path.write_text("id,name,score\n" + "".join(f"{n},name {n},{n * 1.5}\n" for n in range(ROWS)))
    return path


def start(home: Path, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "LAKE_HOME": str(home)}
    return subprocess.Popen(
        [LAKE, "ingest", *arguments], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def row_counts(lake: Lake, table: str) -> tuple[int, int]:
    """The number of rows of a table, and of distinct ones."""
    rows, distinct = lake.sql(f"SELECT count(*), count(DISTINCT id) FROM {table}", engine="duckdb").rows()[0]
    return rows, distinct


def branches(home: Path) -> set[str]:
    """The branches with tables in the catalog."""
    db = sqlite3.connect(home / "catalog.db")
    names = {name for (name,) in db.execute("SELECT DISTINCT catalog_name FROM iceberg_tables")}
    db.close()
    return names - {"lake", "lake__dropped"}


def work_folders(home: Path) -> list[str]:
    return [path.name for path in (home / "run" / "ingest").glob("work-*")]


# ---- concurrently ----------------------------------------------------------------------------------------------------

INGEST_ALL = """
import sys
from lakehouse import open_lake
with open_lake() as lake:
    for path in sys.argv[2:]:
        report = lake.ingest(path, into=sys.argv[1])
        assert report.inserted == 25, report
"""


@pytest.mark.faults
def test_many_processes_ingest_into_one_table_at_once(home: Path, lake: Lake, tmp_path: Path) -> None:
    environment = {**os.environ, "LAKE_HOME": str(home)}
    running = []
    for process in range(PROCESSES):
        paths = []
        for number in range(FILES):
            first = (process * FILES + number) * 25
            path = tmp_path / f"{process}-{number}.csv"
            path.write_text("id,v\n" + "".join(f"{n},x\n" for n in range(first, first + 25)))
            paths.append(str(path))
        arguments = [LAKE.parent / "python", "-c", INGEST_ALL, "crowd.rows", *paths]
        running.append(subprocess.Popen(arguments, env=environment, stderr=subprocess.PIPE, text=True))
    errors = [process.communicate(timeout=900)[1] for process in running]
    assert errors == [""] * PROCESSES
    assert row_counts(lake, "crowd.rows") == (PROCESSES * FILES * 25, PROCESSES * FILES * 25)
    assert len(lake.history("crowd.rows")) == PROCESSES * FILES
    assert work_folders(home) == [] and branches(home) == set()


# ---- killed -----------------------------------------------------------------------------------------------------


@pytest.mark.faults
@pytest.mark.parametrize(
    ("table_format", "moments"),
    [
        ("iceberg", MOMENTS),
        ("hudi", HUDI_MOMENTS),
    ],
)
def test_killed_at_any_moment_the_same_command_completes_it(
    home: Path, lake: Lake, command: Command, big: Path, table_format: str, moments: int
) -> None:
    chance = random.Random(4)
    options = ("--mode", "append", "--format", table_format)
    started = time.monotonic()
    assert command("ingest", str(big), "--into", f"killed.clean_{table_format}", *options).returncode == 0
    clean_run = time.monotonic() - started
    wrong = []
    for moment in range(moments):
        table = f"killed.{table_format}_{moment}"
        delay = chance.uniform(0.05, clean_run)
        with audit(lake, {table: ALL}, refs={"ingest_*"}, leaves=True):
            process = start(home, str(big), "--into", table, *options)
            time.sleep(delay)
            process.kill()
            process.communicate()
            again = command("ingest", str(big), "--into", table, *options)
        if again.returncode or row_counts(lake, table) != (ROWS, ROWS):
            wrong.append((moment, round(delay, 2), again.returncode, again.stderr, *row_counts(lake, table)))
    assert wrong == []
    assert work_folders(home) == [], "the next ingest deletes what the killed one left"


def test_a_killed_ingest_leaves_the_table_as_it_was(
    home: Path, lake: Lake, command: Command, big: Path, tmp_path: Path
) -> None:
    (tmp_path / "first.csv").write_text("id,name\n-1,first\n")
    lake.ingest(tmp_path / "first.csv", into="killed.before")
    before = lake.describe("killed.before")
    with audit(lake, {"killed.before": {"id": range(ROWS)}}, refs={"ingest_*"}, leaves=True):
        process = start(home, str(big), "--into", "killed.before")
        wait_for_a_branch(home)
        process.kill()
        process.communicate()
        assert lake.describe("killed.before") == before
        # The new column and the rows come together, or not at all.
        assert lake.ingest(big, into="killed.before").inserted == ROWS
    assert len(lake.history("killed.before")) == 2


def test_the_branch_of_a_killed_ingest_is_dropped(home: Path, lake: Lake, big: Path, tmp_path: Path) -> None:
    process = start(home, str(big), "--into", "killed.branch")
    wait_for_a_branch(home)
    process.kill()
    process.communicate()
    (tmp_path / "next.csv").write_text("id\n1\n")
    lake.ingest(tmp_path / "next.csv", into="killed.branch")
    assert branches(home) == set()


@pytest.mark.faults
def test_what_a_killed_ingest_has_still_running_does_not_get_into_the_next_one(
    home: Path, lake: Lake, tmp_path: Path
) -> None:
    chance = random.Random(4)
    (tmp_path / "first.csv").write_text("id,name,score\n0,zero,0.5\n")
    lake.ingest(tmp_path / "first.csv", into="killed.orphans")
    rows, wrong = 1, []
    for moment in range(ORPHANS):
        path = tmp_path / f"{moment}.csv"
        last = rows + ROWS
        path.write_text("id,name,score\n" + "".join(f"{n},name {n},{n * 1.5}\n" for n in range(rows, last)))
        process = start(home, str(path), "--into", "killed.orphans")
        wait_for_a_branch(home)
        delay = chance.uniform(0, 0.5)
        time.sleep(delay)
        process.kill()
        process.communicate()
        lake.ingest(path, into="killed.orphans")
        rows = last
        if row_counts(lake, "killed.orphans") != (rows, rows):
            wrong.append((moment, round(delay, 2), *row_counts(lake, "killed.orphans")))
    assert wrong == []


def test_spark_killed_during_an_ingest_fails_clearly_and_the_next_one_works(
    home: Path, lake: Lake, command: Command, big: Path
) -> None:
    health = spark_daemon(load_settings({"home": home})).health()
    assert health is not None
    daemon = psutil.Process(health["pid"])
    (jvm,) = [child for child in daemon.children(recursive=True) if child.name() == "java"]
    jvm.suspend()  # so that the ingest is not done before the kill
    try:
        process = start(home, str(big), "--into", "killed.spark", "--mode", "append")
        wait_until_busy(home)
        daemon.kill()
    finally:
        jvm.resume()
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "Traceback" not in errors
    jvm.wait(timeout=60)  # it ends with the process that started it
    assert "killed.spark" not in [str(info.name) for info in lake.tables()]
    again = command("ingest", str(big), "--into", "killed.spark", "--mode", "append")
    assert again.returncode == 0, again.stderr
    assert row_counts(lake, "killed.spark") == (ROWS, ROWS)


def wait_for_a_branch(home: Path) -> None:
    known = branches(home)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if branches(home) - known:
            return
        time.sleep(0.002)
    raise AssertionError("the ingest created no branch")


def wait_until_busy(home: Path) -> None:
    spark = spark_daemon(load_settings({"home": home}))
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        health = spark.health()
        if health is not None and health["running"] > 0:
            return
        time.sleep(0.005)
    raise AssertionError("Spark did not become busy")
