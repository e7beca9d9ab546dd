"""`lake connect`: the lake for other engines, as code to paste."""

from __future__ import annotations

import sys

import click

from lakehouse.cli.app import Context, command
from lakehouse.core.errors import LakeError


@command(
    "lake connect pyiceberg\nlake connect spark > session.py\nlake connect duckdb\nlake connect spark-connect > client.py\nlake --profile sql connect trino > etc/catalog/lake.properties"
)
@click.argument(
    "engine", type=click.Choice(["spark", "spark-connect", "pyiceberg", "duckdb", "trino", "dbt", "superset"])
)
def connect(context: Context, engine: str) -> None:
    """Print what an engine of your own needs to read and write the same tables as lake does: Python, or its own file.

    In a profile with servers it holds their passwords. DuckDB can only read this way: it writes Iceberg through a REST
    catalog (lake up rest). spark-connect is for clients without Java (lake up connect).
    """
    from lakehouse.connect import snippet

    try:
        sys.stdout.write(snippet(engine, context.settings()))
    except OSError as exc:
        raise LakeError(f"Cannot print: {exc}") from exc
