"""Help: quick, complete, with an example for every command."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from lakehouse import __version__
from lakehouse.cli.app import lake
from lakehouse.cli.commands import COMMANDS, help_text

NAMES = [name for commands in COMMANDS.values() for name in commands]
GROUPS = {
    "branch": ["list", "create", "drop", "merge", "diff"],
    "tag": ["list", "create", "drop"],
    "runs": ["list", "show", "log"],
    "new": ["pipeline"],
    "stack": ["list", "fetch", "render", "rotate-token", "serve"],
    "config": ["show"],
    "keys": ["list", "create", "revoke", "rotate"],
    "semantics": ["draft", "check"],
}
SUBCOMMANDS = [*([name] for name in NAMES), *([group, name] for group, names in GROUPS.items() for name in names)]
HEAVY = {"pyspark", "duckdb", "pyiceberg", "pyarrow", "pandas", "sqlglot", "rich", "click", "fastapi", "prompt_toolkit"}

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
        pytest.param(["shell", "--help"], {"click"}, id="help-of-shell"),
    ],
)
def test_help_loads_nothing_heavy(arguments: list[str], allowed: set[str]) -> None:
    done = subprocess.run([sys.executable, "-c", LOADED, *arguments], capture_output=True, text=True, check=True)
    assert set(done.stderr.split()) & HEAVY <= allowed
    assert done.stdout


def test_help_with_and_without_click_is_the_same(call, lake_command) -> None:  # type: ignore[no-untyped-def]
    quick = lake_command("--help")
    assert (quick.returncode, quick.stderr) == (0, "")
    assert quick.stdout == help_text() == call("--home", "x", "--help").out


def test_help_lists_exactly_the_commands_that_exist(call) -> None:  # type: ignore[no-untyped-def]
    listed = re.findall(r"^  (\w[\w-]*)  +\S", help_text().split("Options:")[0], re.MULTILINE)
    assert all(f"{topic}:" in help_text() for topic in COMMANDS)
    assert listed == NAMES
    for name in NAMES:
        assert call(name, "--help").code == 0, name


@pytest.mark.parametrize("command", SUBCOMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(call, command: list[str]) -> None:  # type: ignore[no-untyped-def]
    done = call(*command, "--help")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Usage: lake " + " ".join(command))
    example = done.out.split("Example:\n", 1)[1]
    assert f"lake {command[0]}" in example
    assert len(done.out.split("\n\n")[1].strip()) > 10


def test_the_version_is_printed(lake_command) -> None:  # type: ignore[no-untyped-def]
    assert lake_command("--version").stdout == f"lakehouse {__version__}\n"


def test_every_command_is_listed_once_and_has_its_module() -> None:
    assert len(NAMES) == len(set(NAMES))
    modules = {module for commands in COMMANDS.values() for module, _ in commands.values()}
    folder = Path(__file__).parents[2] / "src" / "lakehouse" / "cli"
    stems = {file.stem for file in folder.glob("*.py")} | {file.parent.name for file in folder.glob("*/__init__.py")}
    assert modules <= stems


@pytest.mark.parametrize(("typed", "meant"), [("histroy", "history"), ("sqll", "sql"), ("table", "tables")])
def test_an_unknown_command_suggests_the_nearest(call, typed: str, meant: str) -> None:  # type: ignore[no-untyped-def]
    done = call(typed)
    assert (done.code, done.out) == (2, "")
    assert f"There is no command {typed!r}. Did you mean {meant}" in done.err


def test_an_unknown_command_without_a_similar_name_points_to_the_help(call) -> None:  # type: ignore[no-untyped-def]
    assert "lake --help" in call("qqqqqq").err


@pytest.mark.parametrize("name", GROUPS)
def test_a_group_lists_its_commands_in_its_help(call, name: str) -> None:  # type: ignore[no-untyped-def]
    listed = call(name, "--help").out.partition("Commands:\n")[2].partition("\n\n")[0]
    assert re.findall(r"^  ([\w-]+)  +[A-Z]", listed, re.MULTILINE) == GROUPS[name]
    assert "..." not in listed, "a line of help is cut"


@pytest.mark.parametrize("name", ["config", "stack"])
def test_a_group_without_a_list_shows_its_help_without_a_command(call, name: str) -> None:  # type: ignore[no-untyped-def]
    done = call(name)
    assert (done.code, done.err) == (2, "")
    assert done.out == call(name, "--help").out


@pytest.mark.parametrize(
    ("short", "full"),
    [
        pytest.param(["branch"], ["branch", "list"], id="branch"),
        pytest.param(["tag", "-o", "json"], ["tag", "list", "-o", "json"], id="tag"),
        pytest.param(["-o", "csv", "runs"], ["runs", "list", "-o", "csv"], id="option-before"),
        pytest.param(["runs", "--limit", "5"], ["runs", "list", "-n", "5"], id="option-of-list"),
        pytest.param(["branch", "-o", "json", "list"], ["branch", "list", "-o", "json"], id="option-between"),
    ],
)
def test_a_group_lists_without_a_command(call, short: list[str], full: list[str]) -> None:  # type: ignore[no-untyped-def]
    assert call(*short) == call(*full)
    assert call(*short).code == 0


def test_an_unknown_command_of_a_group_suggests_the_nearest(call) -> None:  # type: ignore[no-untyped-def]
    done = call("branch", "merg", "exp")
    assert (done.code, done.out) == (2, "")
    assert "There is no command 'merg'. Did you mean merge?" in done.err


def _options() -> list[tuple[str, click.Option]]:
    """Every option of every command, but the common ones once."""
    options = {}
    for path in SUBCOMMANDS:
        command = lake.get_command(click.Context(lake), path[0])
        if len(path) > 1:
            assert isinstance(command, click.Group)
            command = command.commands[path[1]]
        assert command is not None
        for option in command.params:
            if isinstance(option, click.Option):
                options.setdefault((option.opts[-1], option.help), (" ".join([*path, option.opts[-1]]), option))
    return list(options.values())


@pytest.mark.parametrize(("name", "option"), _options(), ids=lambda value: value if isinstance(value, str) else "")
def test_every_option_states_its_effect_and_its_default(name: str, option: click.Option) -> None:
    text = option.help or ""
    assert text[:1].isupper() and text.endswith("."), text
    if not option.is_flag and not option.required:
        assert "(default: " in text
    if isinstance(option.default, int | str) and option.default and not option.is_flag:
        assert f"(default: {option.default})" in text
