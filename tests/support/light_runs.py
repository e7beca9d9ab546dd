"""Runs that need no Spark, and strangers who write beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyiceberg.catalog.sql import SqlCatalog as PyIceberg

from lakehouse.config.load import load_settings
from lakehouse.lake import Lake
from lakehouse.lake.assemble import assemble
from tests.support.transaction_pipelines import writing

ONE, TWO = "shop.one", "shop.two"


def run(lake: Lake, name: str, *tables: str, **options: Any) -> Any:
    """A run that adds a row with its own name to some tables."""
    return lake.run(writing(name, name, list(tables)), id=name, light=True, **options)


def names_in(lake: Lake, table: str, **options: str) -> list[str]:
    return [row[0] for row in lake.sql(f"select run from {table} order by run", **options).rows()]


def with_settings(home: Path, **flags: Any) -> Lake:
    options = {
        "home": home,
        "spark.master": "local[1]",
        **{key.replace("__", "."): value for key, value in flags.items()},
    }
    return assemble(load_settings(options, environ={}))


def pyiceberg(lake: Lake, branch: str = "main") -> PyIceberg:
    catalog = lake.refs.branches.catalog.on(branch)
    return PyIceberg(catalog.name, **catalog.pyiceberg_properties())  # type: ignore[attr-defined]


def stranger_adds(lake: Lake, table: str, name: str, branch: str = "main") -> None:
    """A commit that does not pass through us."""
    import pyarrow

    theirs = pyiceberg(lake, branch)
    held = theirs.load_table(table)
    held.append(pyarrow.table({"run": [name], "n": [1]}, schema=held.schema().as_arrow()))
    theirs.close()
