"""`lake pipelines` and `lake report`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lakehouse.cli.app import Context, command
from lakehouse.cli.options import table_argument
from lakehouse.cli.show import note, relative_paths, show_rows
from lakehouse.core.errors import LakeError

if TYPE_CHECKING:
    from lakehouse.tables.report import TableReport


@command("lake pipelines\nlake pipelines -o json")
def pipelines(context: Context) -> None:
    """List the pipelines: their tables, the inputs of each table, and the settings of their sources."""
    rows = [
        (
            pipeline.name,
            table.name,
            ", ".join(source if isinstance(source, str) else source.name for source in getattr(table, "inputs", ())),
            ", ".join(getattr(table, "key", ())),
            getattr(table, "partition_by", ""),
            table.description.splitlines()[0] if table.description else "",
        )
        for pipeline in context.lake.pipelines().values()
        for table in pipeline.tables
    ]
    show_rows(["pipeline", "table", "made_from", "key", "partitioned_by", "what"], rows, context.output)
    for problem in getattr(context.lake.pipelines(), "problems", {}).values():
        note(f"{problem.message} {problem.hint}")
    for pipeline in context.lake.pipelines().values():
        for name, help_text in pipeline.known_settings.items():
            note(f"sources.{pipeline.name}.{name}: {help_text}")


@command("lake report bronze.yellow_trips\nlake report bronze.yellow_trips --from yesterday --html report.html")
@table_argument
@click.option(
    "--from", "start", default="", metavar="WHEN", help="Earlier state to compare (default: the first snapshot)."
)
@click.option("--to", "end", default="", metavar="WHEN", help="Later state to compare (default: now).")
@click.option(
    "--html",
    "file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write a page with charts to FILE (default: no page).",
)
def report(context: Context, table: str, start: str, end: str, file: Path | None) -> None:
    """Show how TABLE grew, and what its rules and checks found, run by run; compare its state at two moments.

    WHEN is a snapshot id, a tag, an ISO time, or words such as yesterday and '2 hours ago'. Times are UTC.
    """
    from lakehouse.tables.report import report_page

    report = context.lake.report(table, start, end)
    names = [
        "at",
        "snapshot",
        "operation",
        "added",
        "removed",
        "rows",
        "files",
        "bytes",
        "source",
        "rejected",
        "failed",
    ]
    source = relative_paths if context.output == "table" else str
    rows = [
        (s.at, s.id, s.operation, s.rows_added, s.rows_removed, s.rows_total, s.files_total, s.bytes_total)
        + (source(s.source), run.rejected if run else None, run.failed if run else "")
        for s in report.snapshots
        for run in [report.run_of(s)]
    ]
    show_rows(names, rows, context.output)
    if context.output == "table" and report.earlier and report.later:
        then, now = report.earlier, report.later
        pairs = [("rows", then.rows, now.rows)]
        show_rows(["", f"as of {then.snapshot}", f"as of {now.snapshot}"], pairs, context.output)
    if context.output == "table":
        _show_quality(report)
    if file is not None:
        try:
            file.write_text(report_page([report]))
        except OSError as exc:
            raise LakeError(f"{file} cannot be written: {exc.strerror}.", "Choose another file.") from exc
        note(f"Written to {file}.")


def _show_quality(report: TableReport) -> None:
    """Show the outcomes of rules and checks, and the rejected rows, oldest first."""
    outcomes = [
        (run.at, run.run, run.state, outcome.name, outcome.severity, outcome.passed, outcome.broken, outcome.detail)
        for run in report.quality
        for outcome in run.outcomes
    ]
    if outcomes:
        show_rows(["at", "run", "state", "rule_or_check", "severity", "passed", "broken", "detail"], outcomes, "table")
    if report.rejected:
        rejected = [
            (snapshot.at, snapshot.rows_added, snapshot.rows_total, snapshot.notes.get("run", "") or snapshot.source)
            for snapshot in report.rejected
        ]
        show_rows(["at", "rejected", "rejected_total", "by"], rejected, "table")
