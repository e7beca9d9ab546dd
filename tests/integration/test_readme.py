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
from tests.wheel import build_wheel, install_wheel, without_checkout

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
#: `-o setup`: the environment that runs the tests is set up, and the Makefile's own would be made in the checkout.
MAKE = f"make -f {ROOT}/Makefile -o setup BIN="
#: How a command of the README that is not `lake` runs here.
OTHER_COMMANDS = {
    "make demo": f"{MAKE}{BIN} demo",
    "make test": "true",  # it is running
    "source .venv/bin/activate": "true",  # PATH has that folder
}


@dataclass(frozen=True)
class Step:
    """A command of the README with the output that it shows, and what it printed here."""

    command: str
    shown: str
    done: subprocess.CompletedProcess[str]


def shell(command: str, folder: Path, programs: Path = BIN) -> subprocess.CompletedProcess[str]:
    others = os.environ if programs == BIN else without_checkout()
    environment = {**others, "PATH": f"{programs}:{os.environ['PATH']}"}
    arguments = ["bash", "-c", command]
    return subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, text=True, timeout=1800)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("checkout")
    yield folder
    stop_spark(folder / ".lake")
    stop_spark(folder / ".lake-demo")


@pytest.fixture(scope="module")
def steps(checkout: Path) -> list[Step]:
    """Every command of the README, run in its order, and after them its Python."""
    readme = (ROOT / "README.md").read_text()
    found = []
    for kind, block in re.findall(r"^```(console|python)\n(.*?)^```", readme, re.DOTALL | re.MULTILINE):
        if kind == "python":
            (checkout / "first.py").write_text(block)
            found.append(Step("python first.py", "", shell(f"{sys.executable} first.py", checkout)))
            continue
        for text in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = text.partition("\n")
            command = re.sub(r"\s+#.*", "", command)
            run = command if command.startswith("lake ") else OTHER_COMMANDS[command]
            found.append(Step(command, shown, shell(run, checkout)))
            stop_spark(checkout / ".lake-demo")  # the README goes on in another lake; two would need twice the memory
    return found


def test_every_command_prints_what_the_readme_shows(steps: list[Step]) -> None:
    assert steps[0].command == "make demo"
    assert steps[-1].command == "python first.py"
    for step in steps:
        printed = step.done.stdout + step.done.stderr
        assert all(line in printed for line in step.shown.splitlines()), f"{step.command}:\n{printed}"
        fails = "Error: " in step.shown
        assert bool(step.done.returncode) == fails, f"{step.command}:\n{printed}"


def test_the_last_line_of_the_demo_leads_on_with_its_lake(steps: list[Step], checkout: Path) -> None:
    last = steps[0].done.stdout.splitlines()[-1]
    assert last == "Go on with this lake: lake --home .lake-demo tables"
    listed = shell(last.partition(": ")[2], checkout)
    assert {"demo.orders", "gold.daily_bars", "crm.leads", "dbt_gold.fct_daily_trips"} <= set(
        re.findall(r"^\S+", listed.stdout, re.MULTILINE)
    )


def test_the_demo_is_the_same_tour_when_it_runs_again_from_a_wheel(
    steps: list[Step], checkout: Path, tmp_path: Path
) -> None:
    programs = install_wheel(build_wheel(tmp_path), tmp_path)
    again = shell(f"{MAKE}{programs} demo", checkout, programs)
    for told in (steps[0].done, again):
        assert told.returncode == 0, told.stderr
        assert "Edsger  Rotterdam  1       3.20" in told.stdout, "the join of Hudi and Iceberg"
        assert "1 added, 0 removed, 1 changed by key id" in told.stderr
        assert "files:  1 of 2 read" in told.stderr
        assert "again: 4 rows" in told.stderr, "the rollback"
        assert "demo.customers is restored with 3 rows" in told.stderr
        for table in ("demo.leads", "demo.leads_hudi"):
            assert re.search(rf"{table} +upsert +3 +1 +1 +1 +0 ", told.stdout), (
                "Tuesday: 1 inserted, updated, unchanged"
            )
            assert f"is already in {table}" in told.stderr
        assert told.stderr.count("column added: city string") >= 4, "while ingesting, and in the diff, for each format"
        assert re.search(r"model +fct_daily_trips +success", told.stdout), "the dbt models"
        assert str(checkout) not in told.stdout + told.stderr, "paths are relative to the working folder"


def test_lake_home_chooses_where_the_demo_makes_its_lake(checkout: Path) -> None:
    shown = shell(f"LAKE_HOME=/elsewhere {MAKE}{BIN} -n demo", checkout).stdout
    chosen = shell(f"LAKE_HOME=/elsewhere; {shown.replace(f'{BIN}/lake demo', 'printenv LAKE_HOME')}", checkout)
    assert chosen.stdout.splitlines()[-1] == "/elsewhere"
