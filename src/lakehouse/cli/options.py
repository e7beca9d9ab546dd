"""Arguments and options that several commands share, with their shell completion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from lakehouse.cli.context import complete_branch as complete_branch
from lakehouse.cli.context import completion
from lakehouse.core.names import MAIN

complete_table = completion(lambda lake: lake.table_names())
complete_dropped = completion(lambda lake: lake.dropped())
complete_tag = completion(lambda lake: [ref.name for ref in lake.refs.branches.tags()])
complete_ref = completion(lambda lake: [MAIN, *lake.branches(), *(ref.name for ref in lake.refs.branches.tags())])
complete_run = completion(lambda lake: [run.id for run in lake.runs()])
complete_pipeline = completion(lambda lake: lake.pipelines())

table_argument = click.argument("table", shell_complete=complete_table)
optional_table_argument = click.argument("table", default="", shell_complete=complete_table)
message_option = click.option(
    "-m", "--message", default="", metavar="TEXT", help="Commit message, shown by `lake log` (default: none)."
)
from_option = click.option(
    "--from",
    "from_ref",
    default=MAIN,
    metavar="REF",
    shell_complete=complete_ref,
    help="Branch or tag to start from (default: main).",
)
at_table_option = click.option(
    "--table",
    default="",
    shell_complete=complete_table,
    help="A table that is to be as it was at --at (default: none).",
)
at_option = click.option(
    "--at", default="", metavar="WHEN", help="Snapshot of --table: an id, a tag or a time (default: none)."
)
all_option = click.option(
    "--all", "show_all", is_flag=True, help="Also list those of runs and of other work of the lake itself."
)


def limit_option(rows: str, default: int, minimum: int = 0) -> Callable[[Any], Any]:
    """Return the option --limit; `rows` names what it limits, e.g. "runs to list"."""
    return click.option(
        "-n",
        "--limit",
        type=click.IntRange(min=minimum),
        default=default,
        metavar="N",
        help=f"Maximum number of {rows} (default: {default}).",
    )
