"""`lake`: the command line. This module holds only the list of commands, so that help costs next to nothing."""

from __future__ import annotations

import sys

#: Commands by theme: name -> (module in this folder, one line of help). `lake --help` prints it without loading more.
COMMANDS: dict[str, dict[str, tuple[str, str]]] = {
    "Start here": {
        "demo": ("demo", "a narrated tour: two formats, changes, time travel, files, pipelines"),
        "init": ("setup", "write a commented lake.toml, .env.example, a script and a sample pipeline"),
        "setup": ("setup", "fetch what Spark needs and make its start fast"),
        "doctor": ("doctor", "check this machine and this lake, and say what to do"),
    },
    "Files": {
        "ingest": ("files", "bring files into a table: one atomic commit, each file once"),
        "export": ("files", "write a table to a file"),
    },
    "Pipelines": {
        "run": ("run", "run a pipeline: checked on a branch, published all at once or not at all"),
        "runs": ("runs", "list the runs, or show all of one"),
        "pipelines": ("pipelines", "list the pipelines and their tables"),
        "report": ("pipelines", "show how a table grew, in the terminal or as a page with charts"),
        "dbt": ("dagster", "run dbt as one transaction: published if all its tests pass"),
        "dagster": ("dagster", "open the pipelines in Dagster: lineage, partitions, schedules"),
    },
    "Ask": {
        "sql": ("sql", "run one SQL statement"),
        "tables": ("tables", "list the tables"),
        "describe": ("tables", "show a table's columns, layout and newest snapshot"),
    },
    "Time": {
        "history": ("time", "list a table's snapshots"),
        "travel": ("time", "show a table as it was"),
        "diff": ("time", "show what changed between two moments"),
        "rollback": ("time", "make a table what it was"),
        "drop": ("tables", "take a table out of the lake (undrop brings it back)"),
        "undrop": ("tables", "bring back a dropped table"),
    },
    "Branches": {
        "branch": ("branch", "list, create, compare, merge and drop branches of all tables"),
        "tag": ("tag", "give a name to what all tables are now"),
        "log": ("log", "list who changed what and when, over all tables or one"),
        "revert": ("log", "undo a commit in all its tables at once"),
    },
    "Run": {
        "up": ("process", "start the background Spark, or servers of the stack: lake up all"),
        "down": ("process", "stop them; data stays unless --wipe"),
        "status": ("process", "show what runs"),
        "logs": ("process", "show what the servers wrote"),
        "stack": ("stack", "fetch the servers beforehand, render them for Docker, run one in the foreground"),
        "connect": ("connect", "print ready configuration for another engine"),
        "config": ("setup", "show every setting and where it came from"),
        "completion": ("setup", "print shell completion for bash, zsh or fish"),
    },
}

_TAIL = """\
Options:
  --home DIR      the lake's folder (LAKE_HOME; default .lake)
  --profile NAME  the set of parts to use (LAKE_PROFILE; default embedded)
  --branch NAME   read and write the tables of a branch; main is not touched
  --version       print the version
  --help          print this; `lake COMMAND --help` tells more and shows an example

First steps:
  lake demo
  lake sql "create table shop.orders (id int, item string)"
  lake sql "insert into shop.orders values (1, 'tea')"
  lake sql "select * from shop.orders"
"""


def main() -> None:
    """The entry point of `lake`."""
    arguments = sys.argv[1:]
    quick = None if _completing() else _quick_answer(arguments)
    if quick is not None:
        _write(quick)
        return
    if arguments[:1] == ["sql"] and not {"--help", "spark"} & set(arguments):
        # The longest wait of a cold query goes on while the command line is read.
        from lakehouse.engines.duckdb import preload

        preload()
    from lakehouse.cli.app import run

    sys.exit(run(arguments))


def _quick_answer(arguments: list[str]) -> str | None:
    if arguments in ([], ["--help"], ["-h"]):
        return help_text()
    if arguments == ["--version"]:
        from lakehouse import __version__

        return f"lakehouse {__version__}\n"
    return None


def _write(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        import os

        # Whoever reads has heard enough; without this Python would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def help_text() -> str:
    """What `lake --help` prints."""
    width = max(len(name) for commands in COMMANDS.values() for name in commands) + 2
    lines = ["Usage: lake [OPTIONS] COMMAND ...", "", "A data lakehouse in one command.", ""]
    for theme, commands in COMMANDS.items():
        lines += [f"{theme}:", *(f"  {name:<{width}}{text}" for name, (_, text) in commands.items()), ""]
    return "\n".join(lines) + "\n" + _TAIL


def _completing() -> bool:
    import os

    return "_LAKE_COMPLETE" in os.environ
