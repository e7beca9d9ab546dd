"""Progress of long operations: what they report, as a bar on a terminal, and as plain lines elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest
from tests.support.small_lake import SmallLake, opened
from tests.support.terminal import LAKE

from lakehouse.cli.progress import amount_text
from lakehouse.core.progress import Amount, listening

#: An operation of three seconds, in a process of its own: how long a real one takes depends on the machine.
SCRIPT = """
from time import sleep
from lakehouse.cli.progress import show_progress
from lakehouse.cli.show import note, show_status
from lakehouse.core.progress import report
with show_progress("Exporting"):
    for number in range(1, 31):
        sleep(0.1)
        report(number * 100, 4000, "rows")
    with show_status("Running on Spark"):
        sleep(0.3)
note("Ready.")
"""
#: Steps of a run, the second of which takes three seconds.
RUN = """
from time import sleep
from lakehouse.cli.run import show_steps
from lakehouse.core.progress import report
with show_steps() as start_step:
    start_step("Building shop.orders")
    start_step("Building shop.daily")
    for number in range(1, 31):
        sleep(0.1)
        report(number, 40, "tables")
"""


@pytest.fixture
def small(tmp_path: Path) -> Iterator[SmallLake]:
    with opened(tmp_path / "lake") as lake:
        lake.make("shop.orders")
        lake.add("shop.orders", 1, 2)
        yield lake


def spawned(program: str, *arguments: str, home: Path) -> pexpect.spawn[str]:
    """A program on a terminal."""
    environment = {**os.environ, "LAKE_HOME": str(home), "TERM": "xterm-256color"}
    return pexpect.spawn(program, list(arguments), env=environment, dimensions=(30, 120), encoding="utf-8", timeout=60)


def test_every_long_operation_reports_how_far_it_is(small: SmallLake, tmp_path: Path) -> None:
    seen: list[Amount] = []
    with listening(seen.append):
        small.lake.ingest_rows([{"id": number} for number in range(1000)], into="shop.new")
        assert {amount.unit for amount in seen if amount.done == amount.total} == {"bytes", "rows"}
        assert seen[-1] == Amount(1000, 1000, "rows")
        for name in ("out.parquet", "out.arrow"):
            seen.clear()
            small.lake.export("shop.new", tmp_path / name)
            assert seen[-1] == Amount(1000, 1000, "rows")
        small.lake.maintain(dry_run=True)
        assert seen[-2:] == [Amount(0, 2, "tables"), Amount(1, 2, "tables")]
        report = small.lake.backup(tmp_path / "backups")
        assert seen[-1] == Amount(report.bytes, report.bytes, "bytes")
    before = len(seen)
    small.lake.export("shop.new", tmp_path / "again.parquet")
    assert len(seen) == before, "nobody listens"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["export", "shop.orders", "out.csv"], "Exporting…"),
        (["backup", "backups"], "Backing up…"),
        (["maintain", "--all", "--dry-run"], "Maintaining tables…"),
        (["ingest", "new.csv", "--into", "shop.new", "--dry-run"], "Inspecting files…"),
    ],
)
def test_a_command_shows_on_a_terminal_what_it_does(
    small: SmallLake, tmp_path: Path, arguments: list[str], text: str
) -> None:
    (tmp_path / "new.csv").write_text("id\n1\n")
    paths = [str(tmp_path / word) if word in ("out.csv", "backups", "new.csv") else word for word in arguments]
    with spawned(LAKE, *paths, home=small.home) as process:
        process.expect(text)
        process.expect(pexpect.EOF)
        process.wait()
        assert process.exitstatus == 0


def test_a_run_shows_its_steps_on_a_terminal_and_after_two_seconds_the_time_left(tmp_path: Path) -> None:
    with spawned(sys.executable, "-c", RUN, home=tmp_path) as process:
        process.expect(r"[\d,]+ of 40 tables, \d+ (s|min) left")
        process.expect(r"✓\S* Building shop.orders")
        process.expect(r"✓\S* Building shop.daily")
        process.expect(pexpect.EOF)
        assert "of 40 tables" not in process.before, "the amount goes when the run has ended"


def test_a_terminal_shows_amount_and_time_left_in_one_line(tmp_path: Path) -> None:
    with spawned(sys.executable, "-c", SCRIPT, home=tmp_path) as process:
        process.expect(r"Exporting….*━.*\d+ %.*[\d,]+ of 4,000 rows.*\d+ (s|min) left")
        assert "\n" not in process.match.group(), "the bar is one line"
        process.expect("Running on Spark….*3,000 of 4,000 rows")
        process.expect("Ready.")
        process.expect(pexpect.EOF)


def test_without_a_terminal_there_are_plain_lines_and_the_output_stays_clean() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    *lines, last = done.stderr.splitlines()
    assert any(re.fullmatch(r"Exporting: \d+ % \([\d,]+ of 4,000 rows\), \d+ (s|min) left", line) for line in lines)
    assert (last, done.stdout) == ("Ready.", "")


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (Amount(1_500_000, 3_000_000, "bytes"), "1.5 MB of 3.0 MB"),
        (Amount(3, 8, "tables"), "3 of 8 tables"),
        (Amount(1000, 2000000, "rows"), "1,000 of 2,000,000 rows"),
    ],
)
def test_amounts_are_for_people(amount: Amount, text: str) -> None:
    assert amount_text(amount) == text
