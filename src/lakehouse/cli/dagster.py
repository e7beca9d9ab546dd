"""`lake dagster` and `lake dbt`."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

import click

from lakehouse.cli.app import Context, command
from lakehouse.cli.show import note
from lakehouse.core.errors import NotInstalledError


@command("lake dagster\nlake dagster --port 3001")
@click.option("--port", default=3000, show_default=True, help="Where the pages are served, on this machine only.")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Another address lets others in: there is no login."
)
def dagster(context: Context, port: int, host: str) -> None:
    """Open the pipelines in Dagster: one lineage from source to gold, partitions, backfills, checks, schedules."""
    if find_spec("dagster_webserver") is None:
        raise NotInstalledError("Dagster", "orchestrate")
    home = context.lake.folder / "dagster"
    home.mkdir(exist_ok=True)
    settings = home / "dagster.yaml"
    if not settings.exists():
        settings.write_text("telemetry:\n  enabled: false\n")
    environment = {**os.environ, "DAGSTER_HOME": str(home), "LAKE_HOME": str(context.lake.folder)}
    note(f"Dagster on http://{host}:{port} (Ctrl-C ends it)")
    sys.stderr.flush()
    module = "lakehouse.orchestrate.definitions"
    arguments = [sys.executable, "-m", "dagster", "dev", "-m", module, "-h", host, "-p", str(port)]
    # In this process's place, so that Ctrl-C and signals reach Dagster and nobody else.
    os.execve(sys.executable, arguments, environment)


@command(
    'lake dbt build\nlake dbt build --vars \'{"months": ["2026-01"]}\'\nlake dbt test\nlake --profile sql dbt --engine trino build'
)
@click.argument("arguments", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--no-publish", is_flag=True, help="Leave the result on the run's branch.")
@click.option(
    "--engine",
    type=click.Choice(["spark", "trino"]),
    default="spark",
    show_default=True,
    help="Which engine runs the models; Trino publishes them one by one.",
)
def dbt(context: Context, arguments: tuple[str, ...], no_publish: bool, engine: str) -> None:
    """Run a command of dbt as one transaction: models and tests on a branch, published if all of them pass.

    The project is the folder that the setting `dbt` names; put -- before options that are meant for dbt.
    """
    from lakehouse.cli.show import show_rows, waiting
    from lakehouse.config.profiles import resolve_profile
    from lakehouse.orchestrate.dbt import run_dbt, run_dbt_on_trino

    settings = resolve_profile(context.settings())
    if engine == "trino" and no_publish:
        raise click.UsageError("Trino sees main alone, so there is no branch to leave anything on.")
    told = ""
    with waiting("dbt"):
        if engine == "trino":
            results = run_dbt_on_trino(context.lake, settings.dbt, arguments, settings.trino)
        else:
            record, results = run_dbt(context.lake, settings.dbt, arguments, note, publish=not no_publish)
            told = f"Run {record.id}: {record.state}."
    names = ["kind", "name", "status", "seconds"]
    rows = [(str(r.node.resource_type), r.node.name, str(r.status), round(r.execution_time, 2)) for r in results or ()]
    show_rows(names, rows, context.output)
    if told:
        note(told)
