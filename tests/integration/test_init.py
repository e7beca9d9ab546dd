"""`lake init` in an empty folder, and then every command that its output and its files suggest, as they stand there."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.conftest import stop_spark

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@dataclass(frozen=True)
class Terminal:
    """A shell in a folder, where `lake` and `python` are those of this environment and nothing is set."""

    folder: Path

    def type(self, command: str) -> str:
        """What a command prints, on either stream; it has to succeed."""
        environment = {name: value for name, value in os.environ.items() if name != "LAKE_HOME"}
        environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
        done = subprocess.run(
            ["bash", "-c", command], capture_output=True, text=True, cwd=self.folder, env=environment, timeout=600
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    folder = tmp_path / "new"
    folder.mkdir()
    yield Terminal(folder)
    stop_spark(folder / ".lake")


def suggestions(output: str) -> list[str]:
    """The commands of the line that says what to do next."""
    (line,) = [line for line in output.splitlines() if line.startswith("Next: ")]
    listed = re.sub(r"\(.*?\)", "", line.removeprefix("Next: ")).replace(" or ", " ")
    return [command.strip() for command in listed.split(",")]


def docstring_of(file: Path) -> str:
    return ast.get_docstring(ast.parse(file.read_text()), clean=False) or ""


def test_every_suggested_command_works(terminal: Terminal) -> None:
    output = terminal.type("lake init")
    files = {line.split()[1] for line in output.splitlines() if line.startswith("written")}
    assert (
        files
        == {path.name for path in terminal.folder.iterdir()}
        == {"lake.toml", ".env.example", "first.py", "shop.py"}
    )
    suggested = suggestions(output)
    assert {command.split()[0] for command in suggested} == {"lake", "python"}
    assert "lake run shop" in suggested
    printed = {command: terminal.type(command) for command in suggested}
    assert "shop_files has nothing to read in sales" in printed["lake run shop"], "there are no files yet"
    assert "There was nothing new." in printed["lake run shop"]

    script = docstring_of(terminal.folder / "first.py").partition("Run it with: ")[2]
    assert script in suggested
    assert "0 added, 0 removed, 1 changed" in terminal.type(script), "a second time, too"
    for line in docstring_of(terminal.folder / "shop.py").splitlines():
        if line.startswith("    "):
            printed[line.strip()] = terminal.type(line)
    last = list(printed)[-1]
    assert last.startswith("lake sql")
    assert re.search(r"2026-01-14 +2 +570", printed[last]), printed[last]

    for command in re.findall(r"`(lake [a-z ]+)`", (terminal.folder / "lake.toml").read_text()):
        printed[command] = terminal.type(command)
    assert "gold.sales_by_day" in printed["lake pipelines"]
    terminal.type("cp .env.example .env")
    assert str(terminal.folder / "sales") in terminal.type("lake -o json config show"), (
        "the copied .env changes nothing"
    )
    assert (terminal.folder / ".lake").is_dir()


def test_a_new_pipeline_runs_and_its_unit_test_passes(terminal: Terminal) -> None:
    output = terminal.type("lake new pipeline orders")
    assert suggestions(output)[0] == "lake run orders"
    printed = [
        terminal.type(line) for line in docstring_of(terminal.folder / "orders.py").splitlines() if "    " in line
    ]
    assert re.search(r"2026-01-14 +2 +570", printed[1]), printed[1]
    assert "4 passed" in printed[2]
