"""`lake shell`: LakeShell, a terminal for SQL, short commands, branches and time travel."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from lakehouse.cli.app import Context, command
from lakehouse.core.errors import NotInstalledError
from lakehouse.core.names import MAIN

if TYPE_CHECKING:
    from lakehouse.cli.shell.session import Session
    from lakehouse.client import RemoteLake
    from lakehouse.lake import Lake


@command("""lake shell
lake shell -c "tables crm.*"
lake shell -f nightly.sql --continue
echo "tables" | lake shell -o json""")
@click.option(
    "-c",
    "--command",
    "commands",
    multiple=True,
    metavar="TEXT",
    help="Run TEXT, SQL or a command; may be repeated (default: ask).",
)
@click.option("-f", "--file", "script", default="", metavar="FILE", help="Run the statements of FILE (default: ask).")
@click.option("--continue", "keep_going", is_flag=True, help="In a script, go on after an error.")
@click.option(
    "--engine",
    default="",
    metavar="NAME",
    help="Engine: auto, duckdb, spark, trino, or one that a package registers (default: query.engine, else auto).",
)
def shell(context: Context, commands: tuple[str, ...], script: str, keep_going: bool, engine: str) -> None:
    """Open LakeShell: SQL that ends with ; and short commands such as history, travel, branch and insert.

    Without a terminal, or with -c or -f, it runs a script. The exit code is that of the first error: 1 failed, 2 usage error.
    """
    if commands and script:
        raise click.UsageError("Give -c or -f, not both.")
    is_script = bool(script or commands) or not sys.stdin.isatty()
    if not is_script:
        _require_prompt_toolkit()
    from lakehouse.cli.shell.run import read_script, run_to_exit_code

    # Before the lake is opened: a missing file is reported at once.
    text = "\n;\n".join(commands) or (read_script(script) if script else sys.stdin.read() if is_script else "")
    session = open_session(context, engine, interactive=not is_script)
    try:
        if is_script:
            code = run_to_exit_code(session, text, keep_going)
            if code:
                raise click.exceptions.Exit(code)
            return
        from lakehouse.cli.shell.loop import run_interactively

        run_interactively(session, context.all_settings().shell.history.expanduser())
    finally:
        session.display.close()
        session.root.close()


def open_session(context: Context, engine: str, interactive: bool) -> Session:
    """A session on the lake that the common options name, on the branch of --branch."""
    from lakehouse.cli.shell.display import Display
    from lakehouse.cli.shell.running import report_status
    from lakehouse.cli.shell.session import Session

    branch, context.branch = context.branch, ""
    context.status = report_status
    lake, label = open_target(context)
    session = Session(lake, label, Display(context.output, interactive), engine=engine, timing=interactive)
    session.queries_file = context.all_settings().shell.history.expanduser().with_name("shell_queries.json")
    if branch and branch != MAIN:
        session.switch(branch)
    return session


def open_target(context: Context) -> tuple[Lake | RemoteLake, str]:
    """The lake that the shell works on, on main, and its name in the prompt."""
    from urllib.parse import urlsplit

    from lakehouse.client import RemoteLake

    lake = context.lake
    if isinstance(lake, RemoteLake):
        return lake, urlsplit(lake.url).netloc
    folder = lake.folder
    return lake, folder.parent.name if folder.name.startswith(".") else folder.name


def _require_prompt_toolkit() -> None:
    try:
        import prompt_toolkit  # noqa: F401 - asked whether it is there
    except ImportError as exc:
        raise NotInstalledError("prompt-toolkit", "shell") from exc
