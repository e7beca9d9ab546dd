"""`lake branch`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lakehouse.cli.app import Context, command, group
from lakehouse.cli.options import (
    all_option,
    at_option,
    at_table_option,
    complete_branch,
    from_option,
    limit_option,
    message_option,
    optional_table_argument,
)
from lakehouse.cli.show import note, printed_rows, show_rows
from lakehouse.core.names import TableName
from lakehouse.core.refs import InternalBranch

if TYPE_CHECKING:
    from lakehouse.versioning.diff import TableChange

_name_argument = click.argument("name", shell_complete=complete_branch)


@group(
    """lake branch create exp
lake --branch exp sql "delete from crm.leads where id = 7"
lake branch diff exp
lake branch merge exp -m "remove test leads" """,
    bare_lists=True,
)
def branch() -> None:
    """List, create, compare, merge and drop branches. Without a command: list.

    A branch holds all tables and copies no data. `lake --branch NAME …` reads and writes there; main does not change
    until the branch is merged.
    """


@command("lake branch list\nlake branch -o json", branch)
@all_option
def list_(context: Context, show_all: bool) -> None:
    """List the branches beside main."""
    names = ["branch", "from", "made_at", "author", "message", "pipeline", "state"]
    listed = context.lake.refs.branches.list()
    shown = [(ref, run) for ref, run in listed if show_all or not InternalBranch.parse(ref.name)]
    rows = [
        (
            ref.name,
            ref.created_from,
            ref.created_at,
            ref.author,
            ref.message,
            run.pipeline if run else "",
            run.state if run else "",
        )
        for ref, run in shown
    ]
    show_rows(names, rows, context.output)
    if hidden := len(listed) - len(shown):
        note(f"{hidden} of runs and other work of the lake itself: lake branch list --all")
    elif not rows:
        note("There is only main. Create a branch: lake branch create NAME")


@command('lake branch create exp -m "try new prices"\nlake branch create audit --from close_2026_01', branch)
@click.argument("name")
@from_option
@message_option
@at_table_option
@at_option
def create(context: Context, name: str, from_ref: str, message: str, table: str, at: str) -> None:
    """Create a branch from main, another branch or a tag. No data is copied.

    With --table and --at, one table is as it was at that moment, rows and columns; the others are as in REF.
    """
    created = context.lake.refs.branches.create(name, from_ref, message, table, at)
    note(f"Created the branch {created}. Use it: lake --branch {name.lower()} sql …")


@command("lake branch drop exp\nlake branch drop exp tried run_20260114_091500_ab12cd", branch)
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_branch)
def drop(context: Context, names: tuple[str, ...]) -> None:
    """Drop branches and their changes. main does not change.

    If one of them does not exist, none is dropped.
    """
    known = set(context.lake.branches())
    # An unknown one first: its error comes before anything is dropped.
    for name in sorted(dict.fromkeys(names), key=lambda name: name.lower() in known):
        context.lake.refs.branches.drop(name)
        note(f"Dropped the branch {name}; main is unchanged.")


@command('lake branch merge exp\nlake branch merge exp -m "remove test leads"', branch)
@_name_argument
@message_option
def merge(context: Context, name: str, message: str) -> None:
    """Publish a branch to main: all of its tables at once or none.

    If main has changed one of these tables since, rows are combined by the table's key; rows that both changed are a conflict.
    """
    done = context.lake.refs.branches.merge(name, message)
    note(f"Published to all tables at once: commit {done.entry}." if done.entry else "There was nothing to publish.")


@command("lake branch diff exp\nlake branch diff exp crm.leads --limit 20", branch)
@_name_argument
@optional_table_argument
@limit_option("changed rows to show", 100)
def diff(context: Context, name: str, table: str, limit: int) -> None:
    """Show the tables that a branch changes.

    With TABLE: the changed rows of that table.
    """
    branches = context.lake.refs.branches
    if table:
        rows = branches.diff_rows(name, TableName.parse(table), limit)
        show_rows(rows.names, printed_rows(rows), context.output)
    else:
        _show_changes(context, list(branches.diff(name)))


def _show_changes(context: Context, changes: list[TableChange]) -> None:
    names = ["table", "change", "rows_added", "rows_removed", "rows_changed", "rows_before", "rows_after"]
    rows = [
        (
            *(getattr(change, name) for name in names),
            [f"+ {column.name} {column.type}" for column in change.columns_added]
            + [f"- {column.name} {column.type}" for column in change.columns_removed]
            + [f"{old.name} {old.type} -> {new.type}" for old, new in change.columns_changed],
            change.conflict,
        )
        for change in changes
    ]
    if context.output == "table":
        rows = [(*row[:-2], ", ".join(row[-2]), row[-1]) for row in rows]
    show_rows([*names, "columns", "conflict"], rows, context.output)
    if not changes:
        note("The branch has changed nothing.")
    if conflicts := [change.table for change in changes if change.conflict]:
        note(f"main has changed {', '.join(conflicts)}, too: the branch cannot be merged.")
