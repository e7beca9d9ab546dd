"""The connection to DuckDB: opened in the background with its extensions, which come as wheels and load offline."""

from __future__ import annotations

import threading
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse.core.errors import EngineError, NotInstalledError
from lakehouse.core.quoting import text as _text

if TYPE_CHECKING:
    import duckdb

#: In the order of loading: iceberg needs avro.
_EXTENSIONS = ("avro", "iceberg")


class PendingConnection:
    """A connection that opens in a background thread: 0.2 s, most of it without the interpreter lock."""

    def __init__(self) -> None:
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._open)
        self._thread.start()

    def result(self) -> duckdb.DuckDBPyConnection:
        """Wait for the connection; raises the error that opening it raised."""
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        assert self._connection is not None
        return self._connection

    def _open(self) -> None:
        try:
            self._connection = _connect()
        except Exception as exc:  # noqa: BLE001 - raised by `result` in the caller's thread
            self._failure = exc


_preloaded: list[PendingConnection] = []


def preload() -> None:
    """Open a connection before there is a lake: the command line does so while it parses its arguments."""
    if not _preloaded:
        _preloaded.append(PendingConnection())


def pending_connection() -> PendingConnection:
    """The preloaded connection, or a new one."""
    return _preloaded.pop() if _preloaded else PendingConnection()


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


def _connect() -> duckdb.DuckDBPyConnection:
    try:
        import duckdb
    except ImportError as exc:
        raise NotInstalledError("duckdb", "duckdb") from exc
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"})
    for name in _EXTENSIONS:
        load_extension(connection, name)
    # Spark sorts NULLs first in ascending and last in descending order.
    connection.execute("SET TimeZone = 'UTC'; SET default_null_order = 'NULLS_FIRST_ON_ASC_LAST_ON_DESC'")
    return connection
