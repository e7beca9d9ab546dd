"""The README from top to bottom in one checkout: its commands run in its order and print what it shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.conftest import stop_spark
from tests.support.repetitions import REPEAT
from tests.support.wheel import build_wheel, install_wheel, without_checkout

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
#: `-o setup`: the environment is set up already, and the Makefile would create another one in the checkout. Where `make test`
#: runs this, make is called by make, and would print which folder it enters and leaves.
MAKE = f"make --no-print-directory -f {ROOT}/Makefile -o setup BIN="


@dataclass(frozen=True)
class Step:
    """A command of the README with the output that it shows, and what it printed here."""

    command: str
    shown: str
    done: subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Shell:
    """A shell in a folder, which finds the programs of an environment first."""

    folder: Path
    programs: Path

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        environment = {**without_checkout(), "PATH": f"{self.programs}:{os.environ['PATH']}"}
        arguments = ["bash", "-c", command]
        return subprocess.run(arguments, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=1800)

    def demo(self) -> subprocess.CompletedProcess[str]:
        return self.run(f"{MAKE}{self.programs} demo")

    def readme(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the README."""
        if command == "make demo":
            return self.demo()
        already_done = ("make test", "source .venv/bin/activate")
        assert command.startswith("lake ") or command in already_done, command
        return self.run("true" if command in already_done else command)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment into which the wheel is installed, without the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    return install_wheel(build_wheel(folder), folder)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("checkout")
    yield folder
    stop_spark(folder / ".lake")
    stop_spark(folder / ".lake-demo")


@pytest.fixture(scope="module")
def terminal(checkout: Path, programs: Path) -> Shell:
    return Shell(checkout, programs)


@pytest.fixture(scope="module")
def steps(checkout: Path, terminal: Shell) -> list[Step]:
    """Every command of the README, run in its order, and after them its Python."""
    readme = (ROOT / "README.md").read_text()
    all_steps = []
    for kind, block in re.findall(r"^```(console|python)\n(.*?)^```", readme, re.DOTALL | re.MULTILINE):
        if kind == "python":
            (checkout / "first.py").write_text(block)
            all_steps.append(Step("python first.py", "", terminal.run("python first.py")))
            continue
        for text in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = text.partition("\n")
            command = re.sub(r"\s+#.*", "", command)
            all_steps.append(Step(command, shown, terminal.readme(command)))
            stop_spark(checkout / ".lake-demo")  # the README goes on in another lake; two would need twice the memory
    return all_steps


def test_every_command_prints_what_the_readme_shows(steps: list[Step]) -> None:
    assert steps[0].command == "make demo"
    assert steps[-1].command == "python first.py"
    for step in steps:
        printed = step.done.stdout + step.done.stderr
        assert all(line in printed for line in step.shown.splitlines()), f"{step.command}:\n{printed}"
        fails = "Error: " in step.shown
        assert bool(step.done.returncode) == fails, f"{step.command}:\n{printed}"


def test_the_last_lines_of_the_demo_lead_on_with_its_lake_and_its_console(steps: list[Step], terminal: Shell) -> None:
    tables, console = steps[0].done.stdout.splitlines()[-2:]
    assert tables == "Go on with this lake: lake --home .lake-demo tables"
    assert console == "Look at it in a browser: lake --home .lake-demo ui"
    listed = terminal.run(tables.partition(": ")[2])
    assert {"demo.orders", "gold.daily_bars", "crm.leads", "dbt_gold.fct_daily_trips"} <= set(
        re.findall(r"^\S+", listed.stdout, re.MULTILINE)
    )


def test_the_demo_shows_every_part(steps: list[Step], checkout: Path) -> None:
    check_tour(steps[0].done, checkout)


@pytest.mark.faults
@pytest.mark.skipif(REPEAT != "full", reason="a demo takes minutes; make test-faults runs it a second time")
def test_the_demo_is_the_same_tour_when_it_runs_again(steps: list[Step], terminal: Shell, checkout: Path) -> None:
    check_tour(terminal.demo(), checkout)


def check_tour(done: subprocess.CompletedProcess[str], checkout: Path) -> None:
    assert done.returncode == 0, done.stderr
    assert "Edsger  Rotterdam  1       3.20" in done.stdout, "the join of Hudi and Iceberg"
    assert "1 added, 0 removed, 1 changed by key id" in done.stderr
    assert "files:  1 of 2 read" in done.stderr
    assert "again: 4 rows" in done.stderr, "the rollback"
    assert "demo.customers is restored with 3 rows" in done.stderr
    for table in ("demo.leads", "demo.leads_hudi"):
        assert re.search(rf"{table} +upsert +3 +1 +1 +1 +0 ", done.stdout), "Tuesday: 1 inserted, updated, unchanged"
        assert f"is already in {table}" in done.stderr
    assert done.stderr.count("column added: city string") >= 4, "while ingesting, and in the diff, for each format"
    assert re.search(r"model +fct_daily_trips +success", done.stdout), "the dbt models"
    assert str(checkout) not in done.stdout + done.stderr, "paths are relative to the working folder"


def test_lake_home_chooses_where_the_demo_creates_its_lake(terminal: Shell) -> None:
    shown = terminal.run(f"LAKE_HOME=/elsewhere {MAKE}{BIN} -n demo").stdout
    chosen = terminal.run(f"LAKE_HOME=/elsewhere; {shown.replace(f'{BIN}/lake demo', 'printenv LAKE_HOME')}")
    assert chosen.stdout.splitlines()[-1] == "/elsewhere"
