"""`lake tag`."""

from __future__ import annotations

import click

from lakehouse.cli.app import Context, command, group
from lakehouse.cli.options import all_option, at_option, at_table_option, complete_tag, from_option, message_option
from lakehouse.cli.show import note, show_rows
from lakehouse.core.refs import InternalBranch


@group(
    """lake tag create close_2026_01 -m "the books of January"
lake sql "select sum(amount) from fin.invoices" --as-of close_2026_01""",
    bare_lists=True,
)
def tag() -> None:
    """List, create and drop tags. Without a command: list.

    A tag names a state of all tables. It can be used wherever a command takes WHEN.
    """


@command("lake tag list\nlake tag -o json", tag)
@all_option
def list_(context: Context, show_all: bool) -> None:
    """List the tags."""
    tags = context.lake.refs.branches.tags()
    rows = [
        (ref.name, ref.created_from, ref.created_at, ref.author, ref.message)
        for ref in tags
        if show_all or not InternalBranch.parse(ref.name)
    ]
    show_rows(["tag", "from", "made_at", "author", "message"], rows, context.output)
    if hidden := len(tags) - len(rows):
        note(f"{hidden} of runs: lake tag list --all")
    elif not rows:
        note("There are no tags. Create one: lake tag create NAME")


@command('lake tag create close_2026_01 -m "the books of January"\nlake tag create tried --from exp', tag)
@click.argument("name")
@from_option
@message_option
@at_table_option
@at_option
def create(context: Context, name: str, from_ref: str, message: str, table: str, at: str) -> None:
    """Create a tag for the current state of all tables.

    With --table and --at, one of them is tagged as it was at that moment.
    """
    note(f"Tagged all tables as {context.lake.refs.branches.create_tag(name, from_ref, message, table, at)}.")


@command("lake tag drop close_2026_01", tag)
@click.argument("name", shell_complete=complete_tag)
def drop(context: Context, name: str) -> None:
    """Drop a tag. The tables do not change."""
    context.lake.refs.branches.drop_tag(name)
    note(f"Dropped the tag {name}; the tables are unchanged.")
