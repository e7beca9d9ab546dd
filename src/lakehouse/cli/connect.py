"""`lake connect`."""

from __future__ import annotations

import sys

import click

from lakehouse.cli.app import Context, command
from lakehouse.core.errors import LakeError


@command(
    "lake connect pyiceberg\nlake connect spark > session.py\nlake connect duckdb\nlake connect spark-connect > client.py\nlake --profile sql connect trino > etc/catalog/lake.properties"
)
@click.argument(
    "engine",
    metavar="ENGINE",
    type=click.Choice(["spark", "spark-connect", "pyiceberg", "duckdb", "trino", "dbt", "superset"]),
)
def connect(context: Context, engine: str) -> None:
    """Print the configuration with which ENGINE reads and writes the tables of this lake.

    ENGINE is spark, spark-connect, pyiceberg, duckdb, trino, dbt or superset. The output is Python code, or a
    configuration file of the engine. In a profile with servers, the output contains their passwords. DuckDB can only read this way; it writes Iceberg
    through a REST catalog (lake up rest). spark-connect is for clients without Java (lake up connect).
    """
    from lakehouse.connect import snippet

    try:
        sys.stdout.write(snippet(engine, context.settings()))
    except OSError as exc:
        raise LakeError(f"The output cannot be written: {exc}") from exc
