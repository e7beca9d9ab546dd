"""Arguments and options that several commands share, with their shell completion."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from lakehouse.cli.app import Context
from lakehouse.core.errors import LakeError
from lakehouse.core.names import MAIN

if TYPE_CHECKING:
    from lakehouse.client import RemoteLake
    from lakehouse.lake import Lake

Completion = Callable[[click.Context, click.Parameter, str], list[str]]


def completion(names_of: Callable[[Lake | RemoteLake], Iterable[str]]) -> Completion:
    """Complete an argument by names that the lake knows; without a lake to open, by none."""

    def complete(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        context = ctx.find_object(Context) or Context()
        try:
            return [name for name in names_of(context.lake) if name.startswith(incomplete)]
        except LakeError:
            return []

    return complete


complete_table = completion(lambda lake: [str(info.name) for info in lake.tables()])
complete_branch = completion(lambda lake: lake.branches())
complete_pipeline = completion(lambda lake: lake.pipelines())

table_argument = click.argument("table", shell_complete=complete_table)
optional_table_argument = click.argument("table", default="", shell_complete=complete_table)
message_option = click.option(
    "-m", "--message", default="", metavar="TEXT", help="Commit message, shown by `lake log` (default: none)."
)
from_option = click.option(
    "--from", "from_ref", default=MAIN, metavar="REF", help="Branch or tag to start from (default: main)."
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
