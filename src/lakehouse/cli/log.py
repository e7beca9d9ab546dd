"""`lake log` and `lake revert`."""

from __future__ import annotations

import click

from lakehouse.cli.app import Context, command
from lakehouse.cli.options import limit_option, message_option, optional_table_argument
from lakehouse.cli.show import note, show_rows
from lakehouse.core.names import MAIN, TableName


@command("lake log\nlake log silver.trips --limit 5\nlake log -o json")
@optional_table_argument
@limit_option("commits to list", 20, minimum=1)
def log(context: Context, table: str, limit: int) -> None:
    """List the commits of all tables, or of one TABLE, newest first: runs, ingests, merges, and statements of any engine."""
    name = TableName.parse(table) if table else None
    if name is not None:
        context.lake.table(table)  # raises NoSuchTableError with the nearest names
    lines = context.lake.refs.log.lines(name, limit, context.branch or MAIN)
    names = ["commit", "at", "what", "author", "run", "pipeline", "source", "message", "tables"]
    rows = [tuple(getattr(line, name) for name in names) for line in lines]
    if context.output == "json":
        rows = [(*row[:-1], list(row[-1])) for row in rows]
    show_rows(names, rows, context.output)
    if not rows:
        note("There are no commits yet.")


@command("lake revert 12\nlake revert run_20260114_091500_ab12cd -m 'the source was wrong'")
@click.argument("commit")
@message_option
def revert(context: Context, commit: str, message: str) -> None:
    """Undo COMMIT in all of its tables at once. COMMIT is a number of `lake log`, or a run.

    A revert is refused if one of the tables has changed since. It is a commit itself and can be reverted.
    """
    done = context.lake.refs.log.revert(commit, message)
    note(f"Reverted {commit} in all of its tables at once: commit {done.entry}.")
