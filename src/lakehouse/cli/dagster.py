"""`lake dagster` and `lake dbt`."""

from __future__ import annotations

import os
import signal
import sys
from importlib.util import find_spec

import click

from lakehouse.cli.app import Context, command
from lakehouse.cli.show import note
from lakehouse.core.errors import NotInstalledError
from lakehouse.core.requests import RunRequest
from lakehouse.orchestrate import dagster_home, note_dagster
from lakehouse.process.daemons import module_command


@command("lake dagster\nlake dagster --port 3001")
@click.option("--port", default=3000, metavar="PORT", help="Port of the web pages (default: 3000).")
@click.option(
    "--host",
    default="127.0.0.1",
    metavar="ADDRESS",
    help="Address to listen on (default: 127.0.0.1). Dagster has no login, so other addresses let anyone in.",
)
def dagster(context: Context, port: int, host: str) -> None:
    """Open the pipelines in Dagster: one lineage from source to gold, with partitions, backfills, checks and schedules."""
    if find_spec("dagster_webserver") is None:
        raise NotInstalledError("Dagster", "orchestrate")
    home = dagster_home(context.local_lake.folder)
    settings = home / "dagster.yaml"
    if not settings.exists():
        # Nothing leaves the machine; `nux` is a window that asks for an e-mail address.
        settings.write_text("telemetry:\n  enabled: false\nnux:\n  enabled: false\n")
    # Dagster's processes read the settings themselves, and know nothing of this command's flags.
    flags = {"LAKE_HOME": str(context.local_lake.folder), "LAKE_PROFILE": context.settings().profile}
    url = f"http://{host}:{port}"
    note_dagster(context.local_lake.folder, url)
    note(f"Dagster on {url} (Ctrl-C stops it)")
    # As `-P` does for the first of its processes: no file of this folder takes the place of a library.
    environment = {**os.environ, "DAGSTER_HOME": str(home), "PYTHONSAFEPATH": "1", **flags}
    sys.stderr.flush()
    module = "lakehouse.orchestrate.definitions"
    arguments = module_command("dagster", "dev", "-m", module, "-h", host, "-p", str(port))
    # What a script starts in the background ignores SIGINT, and Dagster then ignores SIGTERM as well: nothing would end it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Dagster replaces this process, so that it receives Ctrl-C and other signals.
    os.execve(sys.executable, arguments, environment)


@command(
    "lake dbt build\nlake dbt build -- --vars '{\"months\": [\"2026-01\"]}'\nlake dbt test\nlake dbt show -- --inline 'select 1'\nlake --profile sql dbt --engine trino build"
)
@click.argument("arguments", nargs=-1, required=True, metavar="DBT_ARGUMENTS...", type=click.UNPROCESSED)
@click.option("--no-publish", is_flag=True, help="Leave the result on the run's branch (default: publish to main).")
@click.option(
    "--engine",
    type=click.Choice(["spark", "trino"]),
    default="spark",
    help="Engine that builds the models (default: spark). Trino publishes each model as soon as it is built.",
)
def dbt(context: Context, arguments: tuple[str, ...], no_publish: bool, engine: str) -> None:
    """Run `dbt DBT_ARGUMENTS` as one transaction: build and test the models on a branch, publish it if all tests pass.

    Commands that change no table (ls, show, compile, debug, docs generate, source freshness, …) read main, and dbt prints their answer.

    The setting `dbt` names the folder of the dbt project (default: dbt/ beside lake.toml, else the taxi models of this
    package). Write -- before options of dbt.
    """
    settings = context.settings()
    if not context.may_hand_over:
        _run_dbt(context, arguments, no_publish, engine)
        return
    from lakehouse.cli.loaded import keep_loaded, run_loaded

    code = run_loaded(settings)
    if code is not None:
        raise click.exceptions.Exit(code)
    try:
        _run_dbt(context, arguments, no_publish, engine)
    finally:
        keep_loaded(settings)


def _run_dbt(context: Context, arguments: tuple[str, ...], no_publish: bool, engine: str) -> None:
    from lakehouse.cli.show import show_rows, show_status
    from lakehouse.config.profiles import resolve_profile
    from lakehouse.orchestrate.dbt import find_project, is_read, read_with_dbt, run_dbt, run_dbt_on_trino

    settings = resolve_profile(context.settings())
    if engine == "spark" and is_read(arguments):
        read_with_dbt(context.local_lake, find_project(settings), arguments)
        return
    if engine == "trino" and no_publish:
        raise click.UsageError("--no-publish needs a branch, and Trino reads and writes main only. Use --engine spark.")
    result = ""
    with show_status("Running dbt"):
        if engine == "trino":
            results = run_dbt_on_trino(context.local_lake, find_project(settings), arguments, settings.trino)
        else:
            request = RunRequest(publish=not no_publish)
            record, results = run_dbt(context.local_lake, find_project(settings), arguments, note, request)
            result = f"Run {record.id}: {record.state}."
    names = ["kind", "name", "status", "seconds"]
    rows = [(str(r.node.resource_type), r.node.name, str(r.status), round(r.execution_time, 2)) for r in results or ()]
    show_rows(names, rows, context.output)
    if result:
        note(result)
