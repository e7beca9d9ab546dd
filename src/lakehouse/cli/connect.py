"""`lake connect`: the lake for other engines, as code to paste."""

from __future__ import annotations

import sys

import click

from lakehouse.cli.app import Context, command
from lakehouse.core.errors import LakeError


@command("lake connect pyiceberg\nlake connect spark > session.py\nlake connect duckdb")
@click.argument("engine", type=click.Choice(["spark", "duckdb", "pyiceberg"]))
def connect(context: Context, engine: str) -> None:
    """Print ready Python for an engine of your own, reading and writing the same tables as lake does.

    DuckDB can only read: it writes Iceberg through a REST catalog, which an embedded lake does not have.
    """
    from lakehouse.connect import snippet

    try:
        sys.stdout.write(snippet(engine, context.settings()))
    except OSError as exc:
        raise LakeError(f"Cannot print: {exc}") from exc
