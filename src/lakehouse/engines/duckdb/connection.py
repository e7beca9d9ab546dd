"""The connection to DuckDB: opened in the background with its extensions, which come as wheels and load offline."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse.core.errors import EngineError, NotInstalledError
from lakehouse.core.quoting import text as _text

if TYPE_CHECKING:
    import duckdb

#: In the order of loading: iceberg needs avro.
_EXTENSIONS = ("avro", "iceberg")


_preloaded: list[Future[duckdb.DuckDBPyConnection]] = []


def preload() -> None:
    """Open a connection before there is a lake: the command line does so while it parses its arguments."""
    if not _preloaded:
        _preloaded.append(open_in_background())


def take_preloaded() -> Future[duckdb.DuckDBPyConnection] | None:
    """The preloaded connection, for the first that takes it."""
    return _preloaded.pop() if _preloaded else None


def open_in_background() -> Future[duckdb.DuckDBPyConnection]:
    """Open a connection in a background thread: 0.2 s, most of it without the interpreter lock."""
    pending: Future[duckdb.DuckDBPyConnection] = Future()

    def work() -> None:
        try:
            pending.set_result(connect())
        except Exception as exc:  # noqa: BLE001 - raised where the connection is used
            pending.set_exception(exc)

    threading.Thread(target=work).start()
    return pending


def load_extension(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Load an extension from its wheel."""
    import duckdb

    spec = find_spec(f"duckdb_extension_{name}")
    if spec is None or not spec.submodule_search_locations:
        raise NotInstalledError(f"duckdb-extension-{name}", "duckdb")
    version = duckdb.__version__
    file = Path(spec.submodule_search_locations[0]) / "extensions" / f"v{version}" / f"{name}.duckdb_extension"
    if not file.is_file():
        raise EngineError(
            f"duckdb-extension-{name} is not the one for DuckDB {version}.",
            f"pip install 'duckdb-extension-{name}=={version}'",
        )
    connection.execute(f"LOAD {_text(str(file))}")


def connect(**config: str) -> duckdb.DuckDBPyConnection:
    """Open DuckDB with its extensions, and with Spark's time zone and order of NULLs."""
    try:
        import duckdb
    except ImportError as exc:
        raise NotInstalledError("duckdb", "duckdb") from exc
    connection = duckdb.connect(
        config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false", **config}
    )
    for name in _EXTENSIONS:
        load_extension(connection, name)
    # Spark sorts NULLs first in ascending and last in descending order.
    connection.execute("SET TimeZone = 'UTC'; SET default_null_order = 'NULLS_FIRST_ON_ASC_LAST_ON_DESC'")
    return connection
