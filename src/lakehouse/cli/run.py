"""`lake run`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from lakehouse.cli.app import Context, command
from lakehouse.cli.options import complete_pipeline, complete_run, complete_table, message_option
from lakehouse.cli.progress import AFTER_S, Estimate, amount_text
from lakehouse.cli.runs import show_record
from lakehouse.cli.show import note, relative_paths, show_rows
from lakehouse.core.errors import LakeError, Retryable
from lakehouse.core.progress import Amount, listening
from lakehouse.core.requests import RunRequest

if TYPE_CHECKING:
    from lakehouse.client import RemoteLake
    from lakehouse.client.pipelines import RemotePipeline
    from lakehouse.lake import Lake
    from lakehouse.pipelines import Pipeline
    from lakehouse.runs.model import RunRecord

#: A run is retried after errors that may pass: a server that does not answer, a table that others change.
_RETRIES, _RETRY_AFTER_S = 2, 5
#: More partitions than this are shown by their first and last in a terminal.
_SHOWN_KEYS = 5


def what_to_build(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that `lake run` and `lake plan` share."""
    options = [
        click.option(
            "--partition",
            "partitions",
            multiple=True,
            metavar="P",
            help="Rebuild this partition, e.g. 2026-01-14 or 2026-01; may be repeated (default: what is new or changed).",
        ),
        click.option(
            "--from",
            "first",
            default="",
            metavar="P",
            help="First partition of a range to rebuild (default: the same as --to).",
        ),
        click.option(
            "--to", "last", default="", metavar="P", help="Last partition of the range (default: the same as --from)."
        ),
        click.option(
            "--table",
            "tables",
            multiple=True,
            metavar="TABLE",
            shell_complete=complete_table,
            help="Build only this table; may be repeated (default: all).",
        ),
        click.option(
            "--accept-code",
            is_flag=True,
            help="Changed code of tables needs no rebuild (default: rebuild what was built with other code).",
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


@command("lake plan shop\nlake plan shop --partition 2026-01-14 --table gold.sales_by_day\nlake plan shop -o json")
@click.argument("pipeline", shell_complete=complete_pipeline)
@what_to_build
def plan(context: Context, pipeline: str, tables: tuple[str, ...], accept_code: bool, **options: Any) -> None:
    """Show what `lake run PIPELINE` with the same options would rebuild, and why; nothing is changed."""
    partitions = (*options["partitions"], *_range(context.local_lake, pipeline, options["first"], options["last"]))
    plans = context.local_lake.plan(pipeline, RunRequest(partitions, tables, accept_code=accept_code))
    rows: list[tuple[object, ...]] = []
    for planned in plans:
        for reason in dict.fromkeys(planned.partitions.values()):
            keys = [key for key, why in planned.partitions.items() if why == reason]
            rows.append((planned.table, reason, len(keys), _keys_shown(keys, context.output)))
        if planned.reason:
            rows.append((planned.table, planned.reason, None, None))
        if planned.accepts_code:
            rows.append((planned.table, "changed code is accepted without a rebuild", 0, None))
    show_rows(["table", "reason", "partitions", "keys"], rows, context.output)
    if not rows:
        note("There is nothing to rebuild.")


def _keys_shown(keys: list[str], output: str) -> object:
    if output == "json":
        return keys
    return ", ".join(keys) if len(keys) <= _SHOWN_KEYS else f"{keys[0]} … {keys[-1]}"


@command("""lake run market --from 2026-01-14 --to 2026-01-16
lake run taxi --partition 2026-01
lake run files
lake run shop --partition 2026-01-14 --table gold.sales_by_day
lake run --resume 20260114_0915""")
@click.argument("pipeline", default="", shell_complete=complete_pipeline)
@what_to_build
@click.option("--no-publish", is_flag=True, help="Leave the result on the run's branch (default: publish to main).")
@click.option("--isolated", is_flag=True, help="Start a Spark of its own (default: use the warm one, if it stands by).")
@click.option("--light", is_flag=True, help="Run without Spark; tables that need Spark are skipped.")
@click.option(
    "--resume",
    default="",
    metavar="RUN",
    shell_complete=complete_run,
    help="Continue a run that failed or was killed, from its branch; it reads tables as of its start (default: start a new run).",
)
@click.option(
    "--latest",
    is_flag=True,
    help="With --resume: start the run over, on the tables as they are now (default: as of its start).",
)
@message_option
def run(context: Context, pipeline: str, tables: tuple[str, ...], no_publish: bool, **options: Any) -> None:
    """Run PIPELINE as one transaction: build and check its tables on a branch, then publish all of them or none.

    Without --partition, --from and --to, a run takes what is new or has changed: at the source, in input tables, or in
    the code of a table. `lake plan` shows it beforehand. `lake pipelines` lists the pipelines.
    """
    if context.branch:
        raise click.UsageError(
            "A run creates its own branch and publishes to main; use --no-publish to keep the branch."
        )
    if options["resume"]:
        show_record(_resume(context, options["resume"], options["latest"]), context.output)
        return
    if options["latest"]:
        raise click.UsageError("--latest needs --resume RUN.")
    if not pipeline:
        raise click.UsageError("Name the pipeline to run. List them: lake pipelines")
    partitions = (*options["partitions"], *_range(context.lake, pipeline, options["first"], options["last"]))
    request = RunRequest(
        partitions,
        tables,
        not no_publish,
        options["light"],
        message=options["message"],
        isolated=options["isolated"],
        accept_code=options["accept_code"],
    )
    with show_steps() as progress:
        record = run_pipeline(context.lake, pipeline, request, progress)
    show_record(record, context.output)


def _resume(context: Context, run_id: str, latest: bool) -> RunRecord:
    """Continue a run on its branch, or start it over on the latest state of all tables."""
    from lakehouse.runs.failure import user_code_errors
    from lakehouse.runs.recovery import resume_request

    record = context.lake.run_record(run_id)
    with show_steps() as progress, user_code_errors(record.pipeline, record.id):
        if not latest:
            return context.lake.resume(run_id, progress)
        request = replace(resume_request(record), resume=False)
        return context.lake.run_pipeline(record.pipeline, request, progress)


def run_pipeline(
    lake: Lake | RemoteLake,
    pipeline: str | Pipeline,
    request: RunRequest,
    progress: Callable[[str], None] = lambda text: None,
) -> RunRecord:
    """Run the pipeline, retry errors that may pass, and raise an error of user code as a LakeError."""
    from lakehouse.core.when import new_id
    from lakehouse.runs.failure import user_code_errors

    # One id for all attempts: a run that was published is not repeated.
    request = replace(request, id=request.id or new_id())
    name = pipeline if isinstance(pipeline, str) else pipeline.name
    for attempt in range(_RETRIES + 1):
        try:
            with user_code_errors(name, request.id):
                return lake.run_pipeline(pipeline, request, progress)
        except LakeError as exc:
            if not isinstance(exc, Retryable) or attempt == _RETRIES:
                raise
            progress(f"{exc.message} Retrying in {_RETRY_AFTER_S} s")
            time.sleep(_RETRY_AFTER_S)
    raise AssertionError("the last attempt returns or raises")


def _range(lake: Lake | RemoteLake, name: str, first: str, last: str) -> list[str]:
    from lakehouse.pipelines.registry import by_name

    if not first and not last:
        return []
    known: Mapping[str, Pipeline | RemotePipeline] = lake.pipelines()
    pipeline = by_name(known, name)
    if pipeline.partitions is None:
        raise click.UsageError(f"{pipeline.name} has no partitions to choose from.")
    return pipeline.partitions.between(first or last, last or first)


@contextmanager
def show_steps() -> Iterator[Callable[[str], None]]:
    """Print each step on stderr: with a spinner and its time on a terminal, as plain lines elsewhere."""
    if not sys.stderr.isatty():
        yield lambda text: note(relative_paths(text))
        return
    from time import monotonic

    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(finished_text="[green]✓[/]"), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        running: list[TaskID] = []
        begin, estimate = monotonic(), Estimate()
        overall = bar.add_task("", total=None, visible=False)

        def show(amount: Amount) -> None:
            parts = filter(None, (amount_text(amount), estimate.left(amount)))
            bar.update(overall, description=", ".join(parts), visible=monotonic() - begin > AFTER_S)

        def start_step(text: str) -> None:
            if running:
                bar.update(running[-1], total=1, completed=1)
            running.append(bar.add_task(relative_paths(text), total=None))

        with listening(show):
            yield start_step
        bar.remove_task(overall)
        if running:
            bar.update(running[-1], total=1, completed=1)
