"""Help: quick, complete, with an example for every command."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from lakehouse import __version__
from lakehouse.cli import COMMANDS, help_text

NAMES = [name for commands in COMMANDS.values() for name in commands]
SUBCOMMANDS = [*([name] for name in NAMES if name != "config"), ["config", "show"]]
HEAVY = {"pyspark", "duckdb", "pyiceberg", "pyarrow", "pandas", "sqlglot", "rich", "click", "fastapi"}

LOADED = """
import sys
sys.argv = ["lake", *sys.argv[1:]]
from lakehouse.cli import main
try:
    main()
except SystemExit:
    pass
sys.stderr.write(" ".join(sorted({name.split(".")[0] for name in sys.modules})))
"""


@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [
        pytest.param([], set(), id="nothing"),
        pytest.param(["--help"], set(), id="help"),
        pytest.param(["--version"], set(), id="version"),
        pytest.param(["history", "--help"], {"click"}, id="help-of-a-command"),
        pytest.param(["sql", "--help"], {"click"}, id="help-of-sql"),
    ],
)
def test_help_loads_nothing_heavy(arguments: list[str], allowed: set[str]) -> None:
    told = subprocess.run([sys.executable, "-c", LOADED, *arguments], capture_output=True, text=True, check=True)
    assert set(told.stderr.split()) & HEAVY <= allowed
    assert told.stdout


def test_both_ways_to_ask_for_help_say_the_same(call, lake_command) -> None:  # type: ignore[no-untyped-def]
    quick = lake_command("--help")
    assert (quick.returncode, quick.stderr) == (0, "")
    assert quick.stdout == help_text() == call("--home", "x", "--help").out


def test_help_lists_exactly_the_commands_that_exist(call) -> None:  # type: ignore[no-untyped-def]
    listed = re.findall(r"^  (\w+)  +\S", help_text().split("Options:")[0], re.MULTILINE)
    assert all(f"{theme}:" in help_text() for theme in COMMANDS)
    assert listed == NAMES
    for name in NAMES:
        assert call(name, "--help").code == 0, name


@pytest.mark.parametrize("command", SUBCOMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(call, command: list[str]) -> None:  # type: ignore[no-untyped-def]
    told = call(*command, "--help")
    assert (told.code, told.err) == (0, "")
    assert told.out.startswith("Usage: lake " + " ".join(command))
    example = told.out.split("Example:\n", 1)[1]
    assert f"lake {command[0]}" in example
    assert len(told.out.split("\n\n")[1].strip()) > 10


def test_the_version_is_printed(lake_command) -> None:  # type: ignore[no-untyped-def]
    assert lake_command("--version").stdout == f"lakehouse {__version__}\n"


def test_the_commands_of_the_design_that_are_there_are_documented_once() -> None:
    assert len(NAMES) == len(set(NAMES))
    modules = {module for commands in COMMANDS.values() for module, _ in commands.values()}
    folder = Path(__file__).parents[2] / "src" / "lakehouse" / "cli"
    assert {module for module in modules if not (folder / f"{module}.py").is_file()} == set()


@pytest.mark.parametrize(("typed", "meant"), [("histroy", "history"), ("sqll", "sql"), ("table", "tables")])
def test_an_unknown_command_suggests_the_nearest(call, typed: str, meant: str) -> None:  # type: ignore[no-untyped-def]
    told = call(typed)
    assert (told.code, told.out) == (2, "")
    assert f"There is no command {typed!r}. Did you mean {meant}" in told.err


def test_an_unknown_command_that_is_like_nothing_points_to_the_help(call) -> None:  # type: ignore[no-untyped-def]
    assert "lake --help" in call("qqqqqq").err


def test_a_group_without_a_command_shows_its_help(call) -> None:  # type: ignore[no-untyped-def]
    told = call("config")
    assert not (told.out + told.err).startswith("Error:")
    assert "lake config show" in told.out + told.err
