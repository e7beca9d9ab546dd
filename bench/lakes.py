"""Lakes to measure, made without Spark: PyIceberg writes through the same catalog that `lake` reads."""

from __future__ import annotations

import sqlite3
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb

from lakehouse.config.load import load_settings
from lakehouse.engine_config import snippet
from lakehouse.lake import Lake
from lakehouse.lake.assemble import assemble

__all__ = ["bare_duckdb", "catalog_of", "metadata_location", "open_lake", "snippet"]


def open_lake(home: Path) -> Lake:
    """An embedded lake in a folder, whatever the environment says."""
    return assemble(load_settings({"home": home}))


def catalog_of(home: Path) -> Any:
    """PyIceberg's catalog of a lake, as `lake connect pyiceberg` prints it."""
    with open_lake(home):  # makes the folder and the catalog's tables
        names: dict[str, Any] = {}
        exec(snippet("pyiceberg", load_settings({"home": home})), names)  # noqa: S102 - what users are told to run
    return names["catalog"]


def metadata_location(home: Path, table: str, catalog: str = "lake") -> str:
    """The current metadata file of a table."""
    namespace, name = table.split(".")
    with sqlite3.connect(home / "catalog.db") as database:
        (location,) = database.execute(
            "select metadata_location from iceberg_tables"
            " where catalog_name = ? and table_namespace = ? and table_name = ?",
            (catalog, namespace, name),
        ).fetchone()
    database.close()
    return str(location)


def bare_duckdb(*extensions: str) -> duckdb.DuckDBPyConnection:
    """DuckDB alone, with extensions from their wheels."""
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"})
    for name in extensions:
        spec = find_spec(f"duckdb_extension_{name}")
        if spec is None or not spec.submodule_search_locations:
            raise SystemExit(f"duckdb-extension-{name} is not installed: pip install duckdb-extension-{name}")
        folder = spec.submodule_search_locations[0]
        connection.execute(f"LOAD '{folder}/extensions/v{duckdb.__version__}/{name}.duckdb_extension'")
    return connection
