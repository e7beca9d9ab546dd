"""`lake ask` and `lake semantics`."""

from __future__ import annotations

import json
import sys

import click

from lakehouse.cli.app import Context, command, group
from lakehouse.cli.show import note, show_rows

_REFUSED = 3


@command("""lake ask "revenue by payment type in January 2026"
lake ask "top 5 tickers by volume" --sql
lake ask "and by month?" --after "revenue by payment type" -o json
lake ask "delete the leads in London" --write""")
@click.argument("question")
@click.option(
    "--after",
    multiple=True,
    metavar="QUESTION",
    help="A question before it, to which it refers; may be repeated (default: none).",
)
@click.option("--sql", "only_sql", is_flag=True, help="Print the statement, and do not run it.")
@click.option("--explain", is_flag=True, help="Also show the statement and the snapshots that were read.")
@click.option("--write", is_flag=True, help="QUESTION asks for a change: make it on a new branch, and show its diff.")
def ask(  # noqa: PLR0913 - one argument per option
    context: Context, question: str, after: tuple[str, ...], only_sql: bool, explain: bool, write: bool
) -> None:
    """Answer a question in plain words, or say why it cannot be answered.

    QUESTION is about the names in the semantic layer (`lake semantics`), in English. Every word must be understood; what has
    several meanings brings back the choices. Exit code 3 means refused. Without --write nothing is ever changed; with it, only a
    new branch, which you merge or drop.
    """
    from lakehouse.agent.answer import bar_lines, refusal_lines

    answer = context.lake.ask(question, after, run=not only_sql, write=write)
    if context.output == "json":
        sys.stdout.write(json.dumps(answer.as_dict(), ensure_ascii=False) + "\n")
    elif not answer.answered:
        note("\n".join(refusal_lines(answer)))
    elif only_sql:
        sys.stdout.write(answer.sql + "\n")
    else:
        note(answer.reading)
        show_rows(list(answer.columns), answer.rows, context.output)
        if explain:
            note("\n".join([answer.sql, *(f"{table}: snapshot {pin}" for table, pin in answer.snapshots.items())]))
        if context.output == "table" and (lines := bar_lines(answer)):
            note("\n".join(lines))
        if answer.choices:
            note("\n".join(answer.choices))
    if not answer.answered:
        raise click.exceptions.Exit(_REFUSED)


@group("lake semantics draft\nlake semantics check")
def semantics() -> None:
    """Draft and check the semantic layer: which words in questions stand for which tables, columns and aggregates."""


@command("lake semantics draft\nlake semantics draft --write", semantics)
@click.option("--write", is_flag=True, help="Write the file instead of printing it; an existing one stays.")
def draft(context: Context, write: bool) -> None:
    """Print a semantic layer of all tables as TOML.

    It is made of the layers of the pipelines, the schemas, comments and keys of the tables, and dbt's schema.yml.
    """
    from lakehouse.lake.questions import draft_layer, write_draft

    lake = context.local_lake
    if write:
        note(f"Wrote {write_draft(lake)}. Edit it, then run: lake semantics check")
    else:
        sys.stdout.write(draft_layer(lake))


@command("lake semantics check", semantics)
def check(context: Context) -> None:
    """Check the semantic layer against the tables.

    Every column and expression is tried. Exit code 1 means that something does not exist.
    """
    from lakehouse.lake.questions import check_layer

    findings = check_layer(context.local_lake)
    show_rows(["entity", "name", "problem"], findings, context.output)
    if findings:
        raise click.exceptions.Exit(1)
    note("Every table, column, expression and join of the layer exists.")
