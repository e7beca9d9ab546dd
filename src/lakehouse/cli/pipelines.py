"""`lake run`, `runs`, `pipelines`, `report`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lakehouse.cli.app import Context, command, table_argument
from lakehouse.cli.show import note, relative_paths, show_rows
from lakehouse.core.errors import LakeError

if TYPE_CHECKING:
    from lakehouse.pipelines import Pipeline
    from lakehouse.runs.model import RunRecord


def _complete_pipeline(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    try:
        names = list((ctx.find_object(Context) or Context()).lake.pipelines())
    except LakeError:
        return []
    return [name for name in names if name.startswith(incomplete)]


@command("""lake run market --from 2026-01-14 --to 2026-01-16
lake run taxi --partition 2026-01
lake run files
lake run --resume 20260114_0915""")
@click.argument("pipeline", default="", shell_complete=_complete_pipeline)
@click.option(
    "--partition", "partitions", multiple=True, metavar="P", help="Make this day or month anew; may be repeated."
)
@click.option("--from", "first", default="", metavar="P", help="The first of a range of partitions.")
@click.option("--to", "last", default="", metavar="P", help="The last of the range.")
@click.option("--table", "tables", multiple=True, metavar="T", help="Only this table of the pipeline; may be repeated.")
@click.option("--no-publish", is_flag=True, help="Leave the result on the run's branch.")
@click.option("--light", is_flag=True, help="Without Spark, for small tables: only those that can be made so.")
@click.option("--resume", default="", metavar="RUN", help="Go on with a run that failed or was killed.")
@click.option("-m", "--message", default="", metavar="TEXT", help="What it is for; `lake log` shows it.")
def run(context: Context, pipeline: str, tables: tuple[str, ...], no_publish: bool, **chosen: Any) -> None:
    """Run PIPELINE as one transaction: on a branch of its own, checked, published to all tables at once or not at all.

    Without partitions it takes what is new or has changed at the source.
    """
    from lakehouse.orchestrate.in_process import Wanted, run_in_process
    from lakehouse.pipelines.registry import by_name

    if context.branch:
        raise click.UsageError("A run has a branch of its own and publishes to main; --no-publish leaves it there.")
    if chosen["resume"]:
        with _progress() as say:
            _tell(context.lake.resume(chosen["resume"], say), context.output)
        return
    if not pipeline:
        raise click.UsageError("Name the pipeline to run. All of them: lake pipelines")
    declared = by_name(context.lake.pipelines(), pipeline)
    partitions = (*chosen["partitions"], *_range(declared, chosen["first"], chosen["last"]))
    with _progress() as say:
        record = run_in_process(
            context.lake,
            Wanted(declared, partitions, tables, not no_publish, chosen["light"], message=chosen["message"]),
            say,
        )
    _tell(record, context.output)


def _range(pipeline: Pipeline, first: str, last: str) -> list[str]:
    if not first and not last:
        return []
    if pipeline.partitions is None:
        raise click.UsageError(f"{pipeline.name} has no partitions to choose from.")
    return pipeline.partitions.between(first or last, last or first)


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """What goes on and for how long, on a terminal; lines elsewhere."""
    if not sys.stderr.isatty():
        yield lambda text: note(relative_paths(text))
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(finished_text="[green]✓[/]"), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        running: list[TaskID] = []

        def say(text: str) -> None:
            if running:
                bar.update(running[-1], total=1, completed=1)
            running.append(bar.add_task(relative_paths(text), total=None))

        yield say
        if running:
            bar.update(running[-1], total=1, completed=1)


def _tell(record: RunRecord, output: str) -> None:
    if output == "json":
        show_rows(list(asdict(record)), [tuple(asdict(record).values())], output)
        return
    names = ["table", "partitions", "rows", "rejected", "snapshot", "seconds", "note"]
    rows = [
        (each.table, _short(each.partitions), each.rows, each.rejected, each.snapshot, each.seconds, each.note)
        for each in record.tables
    ]
    show_rows(names, rows, output)
    broken = [outcome for outcome in record.outcomes if not outcome.passed]
    for outcome in broken:
        note(f"{outcome.severity}: {outcome.table} {outcome.name}: {outcome.told or f'{outcome.broken} rows'}")
    said = {
        "published": f"Published to all tables at once: run {record.id}.",
        "nothing": "There was nothing new.",
        "kept": f"Kept on the branch {record.branch}; main is as it was. Publish it: lake branch merge {record.branch}",
    }
    note(said.get(record.state, f"Run {record.id}: {record.state}."))


def _short(partitions: tuple[str, ...]) -> str:
    if len(partitions) > 3:
        return f"{partitions[0]} … {partitions[-1]} ({len(partitions)})"
    return ", ".join(partitions)


@command("lake runs\nlake runs show 20260114_0915")
@click.argument("action", default="list", type=click.Choice(["list", "show"]))
@click.argument("run_id", default="")
@click.option("--limit", default=20, show_default=True, help="The most runs to list.")
def runs(context: Context, action: str, run_id: str, limit: int) -> None:
    """List the runs, the newest first; `show ID` tells all of one: tables, rules with their counts, what failed."""
    if action == "show":
        _show(context, context.lake.run_record(run_id))
        return
    names = ["run", "pipeline", "state", "started_at", "partitions", "rows", "rejected", "broken_rules"]
    found = [
        (
            each.id,
            each.pipeline,
            each.state,
            each.started_at,
            _short(each.partitions),
            each.rows,
            each.rejected,
            sum(not outcome.passed for outcome in each.outcomes),
        )
        for each in context.lake.runs()[:limit]
    ]
    show_rows(names, found, context.output)
    if not found:
        note("No runs yet. Try: lake run market")


def _show(context: Context, record: RunRecord) -> None:
    _tell(record, context.output)
    if context.output == "json":
        return
    names = ["table", "rule", "severity", "passed", "broken", "told"]
    rows = [(o.table, o.name, o.severity, o.passed, o.broken, o.told) for o in record.outcomes]
    if rows:
        show_rows(names, rows, context.output)
    if failed := [(o.table, o.name, row) for o in record.outcomes if not o.passed for row in o.rows]:
        show_rows(["table", "rule", "row"], failed, context.output)
    if record.error:
        note(f"{record.error.get('message', '')} {record.error.get('hint', '')}")
    if record.state in ("blocked", "failed", "killed"):
        note(f"What it had done is on the branch {record.branch}. Go on: lake run --resume {record.id}")


@command("lake pipelines\nlake pipelines -o json")
def pipelines(context: Context) -> None:
    """List the pipelines: their tables, what each is made from, and the settings they know."""
    rows = [
        (
            pipeline.name,
            table.name,
            ", ".join(each if isinstance(each, str) else each.name for each in getattr(table, "inputs", ())),
            ", ".join(getattr(table, "key", ())),
            getattr(table, "partition_by", ""),
            table.description.splitlines()[0] if table.description else "",
        )
        for pipeline in context.lake.pipelines().values()
        for table in pipeline.tables
    ]
    show_rows(["pipeline", "table", "made_from", "key", "partitioned_by", "what"], rows, context.output)
    for pipeline in context.lake.pipelines().values():
        for name, help_text in pipeline.known_settings.items():
            note(f"sources.{pipeline.name}.{name}: {help_text}")


@command("lake report bronze.yellow_trips\nlake report bronze.yellow_trips --from yesterday --html report.html")
@table_argument
@click.option("--from", "start", default="", metavar="WHEN", help="The earlier of two moments to compare; the first.")
@click.option("--to", "end", default="", metavar="WHEN", help="The later one; now.")
@click.option(
    "--html", "file", type=click.Path(path_type=Path, dir_okay=False), help="Also write one page with charts."
)
def report(context: Context, table: str, start: str, end: str, file: Path | None) -> None:
    """Show how a table grew, snapshot by snapshot, and what it was at two moments."""
    from lakehouse.query.report import report_page

    found = context.lake.report(table, start, end)
    names = ["at", "snapshot", "operation", "added", "removed", "rows", "files", "bytes", "source"]
    source = relative_paths if context.output == "table" else str
    rows = [
        (s.at, s.id, s.operation, s.rows_added, s.rows_removed, s.rows_total, s.files_total, s.bytes_total)
        + (source(s.source),)
        for s in found.snapshots
    ]
    show_rows(names, rows, context.output)
    if context.output == "table" and found.earlier and found.later:
        then, now = found.earlier, found.later
        pairs = [("rows", then.rows, now.rows)]
        show_rows(["", f"as of {then.snapshot}", f"as of {now.snapshot}"], pairs, context.output)
    if file is not None:
        try:
            file.write_text(report_page([found]))
        except OSError as exc:
            raise LakeError(f"{file} cannot be written: {exc.strerror}.", "Choose another place.") from exc
        note(f"Written to {file}.")
