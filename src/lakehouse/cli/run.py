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
from lakehouse.cli.options import complete_pipeline, message_option
from lakehouse.cli.runs import show_record
from lakehouse.cli.show import note, relative_paths
from lakehouse.core.errors import LakeError, PipelineError, Retryable
from lakehouse.core.requests import RunRequest

if TYPE_CHECKING:
    from lakehouse.client import RemoteLake
    from lakehouse.client.pipelines import RemotePipeline
    from lakehouse.lake import Lake
    from lakehouse.pipelines import Pipeline
    from lakehouse.runs.model import RunRecord

#: A run is retried after errors that may pass: a server that does not answer, a table that others change.
_RETRIES, _RETRY_AFTER_S = 2, 5


@command("""lake run market --from 2026-01-14 --to 2026-01-16
lake run taxi --partition 2026-01
lake run files
lake run --resume 20260114_0915""")
@click.argument("pipeline", default="", shell_complete=complete_pipeline)
@click.option(
    "--partition",
    "partitions",
    multiple=True,
    metavar="P",
    help="Rebuild this day or month, e.g. 2026-01-14 or 2026-01; may be repeated (default: what is new or changed).",
)
@click.option(
    "--from",
    "first",
    default="",
    metavar="P",
    help="First partition of a range to rebuild (default: the same as --to).",
)
@click.option(
    "--to", "last", default="", metavar="P", help="Last partition of the range (default: the same as --from)."
)
@click.option(
    "--table", "tables", multiple=True, metavar="TABLE", help="Build only this table; may be repeated (default: all)."
)
@click.option("--no-publish", is_flag=True, help="Leave the result on the run's branch (default: publish to main).")
@click.option("--isolated", is_flag=True, help="Start a Spark of its own (default: use the warm one, if it stands by).")
@click.option("--light", is_flag=True, help="Run without Spark; tables that need Spark are skipped.")
@click.option(
    "--resume",
    default="",
    metavar="RUN",
    help="Continue a run that failed or was killed, from its branch (default: start a new run).",
)
@message_option
def run(context: Context, pipeline: str, tables: tuple[str, ...], no_publish: bool, **options: Any) -> None:
    """Run PIPELINE as one transaction: build and check its tables on a branch, then publish all of them or none.

    Without --partition, --from and --to, a run takes what is new or has changed at the source. `lake pipelines` lists
    the pipelines.
    """
    if context.branch:
        raise click.UsageError(
            "A run creates its own branch and publishes to main; use --no-publish to keep the branch."
        )
    if options["resume"]:
        pipeline = context.lake.run_record(options["resume"]).pipeline
        with _show_progress() as progress, user_code_errors(pipeline, options["resume"]):
            record = context.lake.resume(options["resume"], progress)
        show_record(record, context.output)
        return
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
    )
    with _show_progress() as progress:
        record = run_pipeline(context.lake, pipeline, request, progress)
    show_record(record, context.output)


def run_pipeline(
    lake: Lake | RemoteLake,
    pipeline: str | Pipeline,
    request: RunRequest,
    progress: Callable[[str], None] = lambda text: None,
) -> RunRecord:
    """Run the pipeline, retry errors that may pass, and raise an error of user code as a LakeError."""
    from lakehouse.runs.model import new_run_id

    # One id for all attempts: a run that was published is not repeated.
    request = replace(request, id=request.id or new_run_id())
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


@contextmanager
def user_code_errors(pipeline: str, run_id: str) -> Iterator[None]:
    """Raise an error of a transformation, source or check as a PipelineError."""
    try:
        yield
    except LakeError:
        raise
    except Exception as exc:
        from lakehouse.runs.model import reason

        hint = f"lake runs{f' show {run_id}' if run_id else ''}; LAKE_DEBUG=1 shows the whole trace."
        raise PipelineError(f"The run of {pipeline} failed: {reason(exc)}", hint) from exc


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
def _show_progress() -> Iterator[Callable[[str], None]]:
    """Print each step on stderr: with a spinner and its time on a terminal, as plain lines elsewhere."""
    if not sys.stderr.isatty():
        yield lambda text: note(relative_paths(text))
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(finished_text="[green]✓[/]"), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        running: list[TaskID] = []

        def start_step(text: str) -> None:
            if running:
                bar.update(running[-1], total=1, completed=1)
            running.append(bar.add_task(relative_paths(text), total=None))

        yield start_step
        if running:
            bar.update(running[-1], total=1, completed=1)
