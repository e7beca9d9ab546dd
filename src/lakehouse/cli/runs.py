"""`lake runs`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from lakehouse.cli.app import Context, command, group
from lakehouse.cli.options import complete_run, limit_option
from lakehouse.cli.show import note, show_rows
from lakehouse.core.errors import NoSuchRunError

if TYPE_CHECKING:
    from lakehouse.runs.model import RunRecord


@group("lake runs\nlake runs --limit 5\nlake runs show\nlake runs show 20260114_0915", bare_lists=True)
def runs() -> None:
    """List the runs of pipelines, or show one in full. Without a command: list."""


@command("lake runs list\nlake runs -n 5 -o json", runs)
@limit_option("runs to list", 20)
def list_(context: Context, limit: int) -> None:
    """List the runs, newest first."""
    names = ["run", "pipeline", "state", "started_at", "partitions", "rows", "rejected", "broken_rules"]
    rows = [
        (
            run.id,
            run.pipeline,
            run.state,
            run.started_at,
            _shorten(run.partitions),
            run.rows,
            run.rejected,
            sum(not outcome.passed for outcome in run.outcomes),
        )
        for run in context.lake.runs()[:limit]
    ]
    show_rows(names, rows, context.output)
    if not rows:
        note("There are no runs yet. Try: lake run market")


@command("lake runs show\nlake runs show 20260114_0915\nlake runs show 20260114_0915 -o json", runs)
@click.argument("run", default="", shell_complete=complete_run)
def show(context: Context, run: str) -> None:
    """Show a run in full.

    The output has its tables, the outcome of each rule and check, rows that broke a rule, and its error. RUN is the id
    of a run, or the beginning of the id (default: the newest run).
    """
    record = context.lake.run_record(run or _newest(context))
    show_record(record, context.output)
    if context.output != "json":
        _show_outcomes(record, context.output)


@command("lake runs log\nlake runs log 20260114_0915\nlake runs log 20260114_0915 -o json", runs)
@click.argument("run", default="", shell_complete=complete_run)
def log(context: Context, run: str) -> None:
    """Show the steps of a run and what Spark logged meanwhile.

    RUN is as for `show`. Spark's lines are those from the start of the run to its end.
    """
    lines = context.lake.run_log(run or _newest(context))
    show_rows(
        ["at", "source", "level", "text"],
        [(line.at, line.source, line.level, line.text) for line in lines],
        context.output,
    )


def _newest(context: Context) -> str:
    for record in context.lake.runs():
        return record.id
    raise NoSuchRunError("There are no runs yet.", "Start one: lake run market")


def show_record(record: RunRecord, output: str) -> None:
    """Print what a run did to each table, and its result."""
    if output == "json":
        show_rows(list(asdict(record)), [tuple(asdict(record).values())], output)
        return
    names = ["table", "partitions", "rows", "rejected", "snapshot", "seconds", "note"]
    rows = [
        (table.table, _shorten(table.partitions), table.rows, table.rejected, table.snapshot, table.seconds, table.note)
        for table in record.tables
    ]
    show_rows(names, rows, output)
    for outcome in record.outcomes:
        if not outcome.passed:
            detail = outcome.detail or f"{outcome.broken} rows"
            note(f"{outcome.severity}: {outcome.table} {outcome.name}: {detail}")
    results = {
        "published": f"Published to all tables at once: run {record.id}.",
        "nothing": "There was nothing new.",
        "kept": f"The result is on the branch {record.branch}; main is unchanged."
        f" Publish it: lake branch merge {record.branch}",
    }
    note(results.get(record.state, f"Run {record.id}: {record.state}."))


def _show_outcomes(record: RunRecord, output: str) -> None:
    names = ["table", "rule", "severity", "passed", "broken", "detail"]
    rows = [
        (outcome.table, outcome.name, outcome.severity, outcome.passed, outcome.broken, outcome.detail)
        for outcome in record.outcomes
    ]
    if rows:
        show_rows(names, rows, output)
    if broken := [
        (outcome.table, outcome.name, row) for outcome in record.outcomes if not outcome.passed for row in outcome.rows
    ]:
        show_rows(["table", "rule", "row"], broken, output)
    if record.error:
        note(f"{record.error.get('message', '')} {record.error.get('hint', '')}")
    if record.state in ("blocked", "failed", "killed"):
        note(f"What the run has built is on the branch {record.branch}. Continue it: lake run --resume {record.id}")


def _shorten(partitions: tuple[str, ...]) -> str:
    if len(partitions) > 3:
        return f"{partitions[0]} … {partitions[-1]} ({len(partitions)})"
    return ", ".join(partitions)
