"""`lake branch`, `tag`, `log`, `revert`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from lakehouse.cli.app import Context, command, complete_table
from lakehouse.cli.show import note, show_rows
from lakehouse.core.names import MAIN, TableName

if TYPE_CHECKING:
    from lakehouse.runs.branches import RunBranches
    from lakehouse.versioning.diff import TableChange

_MESSAGE = click.option("-m", "--message", default="", metavar="TEXT", help="What it is for; `lake log` shows it.")
_FROM = click.option(
    "--from", "from_ref", default=MAIN, show_default=True, metavar="REF", help="main, a branch or a tag."
)


@command("""lake branch list
lake branch create exp && lake --branch exp sql "delete from crm.leads where id = 7"
lake branch diff exp
lake branch merge exp -m "leads that were tests" """)
@click.argument("action", default="list", type=click.Choice(["list", "create", "drop", "merge", "diff"]))
@click.argument("name", default="")
@click.argument("table", default="", shell_complete=complete_table)
@_FROM
@_MESSAGE
@click.option("--limit", type=click.IntRange(min=0), default=100, show_default=True, help="Show at most N rows.")
def branch(context: Context, action: str, name: str, message: str, **chosen: Any) -> None:
    """List the branches, create one, show what it changes (diff), publish it to main (merge), or drop it.

    A branch has all tables and copies no data. Read and write there with `lake --branch NAME`; main is not touched.
    `diff NAME TABLE` shows the rows. A merge publishes all tables at once, or none if main has changed one of them.
    """
    branches = context.lake.refs.branches
    if action == "list":
        _list(context, branches)
        return
    _need(name, f"Name the branch to {action}.")
    if action == "create":
        note(
            f"Made the branch {branches.create(name, chosen['from_ref'], message)}. Use it: lake --branch {name.lower()} sql …"
        )
    elif action == "drop":
        branches.drop(name)
        note(f"Dropped the branch {name}; main is as it was.")
    elif action == "merge":
        done = branches.merge(name, message)
        note(
            f"Published to all tables at once: commit {done.entry}." if done.entry else "There was nothing to publish."
        )
    elif chosen["table"]:
        rows = branches.diff_rows(name, TableName.parse(chosen["table"]), chosen["limit"])
        show_rows(rows.names, rows.rows(), context.output)
    else:
        _diff(context, list(branches.diff(name)))


def _list(context: Context, branches: RunBranches) -> None:
    names = ["branch", "from", "made_at", "author", "message", "pipeline", "state"]
    rows = [
        (
            ref.name,
            ref.made_from,
            ref.made_at,
            ref.author,
            ref.message,
            run.pipeline if run else "",
            run.state if run else "",
        )
        for ref, run in branches.list()
    ]
    show_rows(names, rows, context.output)
    if not rows:
        note("There is only main. Make one: lake branch create NAME")


def _diff(context: Context, changes: list[TableChange]) -> None:
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
    if moved := [change.table for change in changes if change.conflict]:
        note(f"main has changed {', '.join(moved)} too: the branch cannot be merged as it is.")


@command("""lake tag create close_2026_01 -m "the books of January"
lake sql "select sum(amount) from fin.invoices" --as-of close_2026_01
lake tag list""")
@click.argument("action", default="list", type=click.Choice(["list", "create", "drop"]))
@click.argument("name", default="")
@_FROM
@_MESSAGE
def tag(context: Context, action: str, name: str, from_ref: str, message: str) -> None:
    """List the tags, create one, or drop it. A tag is all tables as they are now, and a WHEN for every command."""
    branches = context.lake.refs.branches
    if action == "list":
        rows = [(ref.name, ref.made_from, ref.made_at, ref.author, ref.message) for ref in branches.tags()]
        show_rows(["tag", "from", "made_at", "author", "message"], rows, context.output)
        return
    _need(name, f"Name the tag to {action}.")
    if action == "create":
        note(f"Tagged all tables as {branches.create_tag(name, from_ref, message)}.")
    else:
        branches.drop_tag(name)
        note(f"Dropped the tag {name}; the tables are as they were.")


@command("lake log\nlake log silver.trips --limit 5\nlake log -o json")
@click.argument("table", default="", shell_complete=complete_table)
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="The most commits to list.")
def log(context: Context, table: str, limit: int) -> None:
    """List who changed what and when, the newest first: runs, ingests, merges, and statements of any engine."""
    asked = TableName.parse(table) if table else None
    if asked is not None:
        context.lake.table(table)  # which names the nearest if there is none
    lines = context.lake.refs.log.lines(asked, limit, context.branch or MAIN)
    names = ["commit", "at", "what", "author", "run", "pipeline", "source", "message", "tables"]
    rows = [tuple(getattr(line, name) for name in names) for line in lines]
    if context.output == "json":
        rows = [(*row[:-1], list(row[-1])) for row in rows]
    show_rows(names, rows, context.output)
    if not rows:
        note("Nothing has happened yet.")


@command("lake revert 12\nlake revert run_20260114_091500_ab12cd -m 'the source was wrong'")
@click.argument("commit")
@_MESSAGE
def revert(context: Context, commit: str, message: str) -> None:
    """Undo a commit of `lake log`, named by its number or its run, in all its tables at once.

    Refused if one of them has changed since. A revert is a commit itself, and can be reverted.
    """
    done = context.lake.refs.log.revert(commit, message)
    note(f"Reverted {commit} in all its tables at once: commit {done.entry}.")


def _need(name: str, told: str) -> None:
    if not name:
        raise click.UsageError(told)
