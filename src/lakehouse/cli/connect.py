"""`lake connect`."""

from __future__ import annotations

import sys

import click

from lakehouse.cli.app import Context, command
from lakehouse.core.errors import LakeError


@command(
    "lake connect pyiceberg\nlake connect spark > session.py\nlake connect duckdb\nlake connect spark-connect > client.py\nlake --profile sql connect trino --show-secrets > etc/catalog/lake.properties"
)
@click.argument(
    "engine",
    metavar="ENGINE",
    type=click.Choice(["spark", "spark-connect", "pyiceberg", "duckdb", "trino", "dbt", "superset"]),
)
@click.option("--show-secrets", is_flag=True, help="Print passwords and keys (default: where they come from).")
def connect(context: Context, engine: str, show_secrets: bool) -> None:
    """Print the configuration with which ENGINE reads and writes the tables of this lake.

    ENGINE is spark, spark-connect, pyiceberg, duckdb, trino, dbt or superset. The output is Python code, or a
    configuration file of the engine. Without --show-secrets, passwords and keys are left out, and the first lines say where they come from. DuckDB only reads this way, unless
    the REST catalog serves the lake (lake up rest). spark-connect is for clients without Java (lake up connect).
    """
    from lakehouse.engine_config import redacted_snippet, snippet

    try:
        settings = context.settings()
        sys.stdout.write(snippet(engine, settings) if show_secrets else redacted_snippet(engine, settings))
    except OSError as exc:
        raise LakeError(f"The output cannot be written: {exc}") from exc
