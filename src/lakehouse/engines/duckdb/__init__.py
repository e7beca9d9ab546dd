"""DuckDB in this process: reads Iceberg from the exact metadata file and Hudi from its Parquet files. No JVM."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import finalize

from lakehouse.core.errors import EngineError, NotInstalledError
from lakehouse.core.names import TableName
from lakehouse.core.quoting import name as _name
from lakehouse.core.quoting import text as _text
from lakehouse.core.result import Explain, Result, Row
from lakehouse.core.tables import Column, Scan
from lakehouse.engines.duckdb.errors import translate, with_place
from lakehouse.engines.duckdb.types import duckdb_type, spark_type

if TYPE_CHECKING:
    import duckdb
    import pyarrow

#: avro first: iceberg's extension needs it to be there.
_EXTENSIONS = ("avro", "iceberg")

#: Names of DuckDB's own catalogs and schemas. A namespace of that name cannot be reached by it.
OWN_NAMESPACES = {"temp", "memory", "system", "main", "information_schema", "pg_catalog"}

__all__ = ["OWN_NAMESPACES", "DuckDB", "DuckDBRows", "PendingConnection", "duckdb_type", "preload"]


class PendingConnection:
    """DuckDB with its extensions, loading in the background: 0.2 s, most of it without the interpreter."""

    def __init__(self) -> None:
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._load)
        self._thread.start()

    def finish(self) -> duckdb.DuckDBPyConnection:
        """Wait for it; raises what went wrong."""
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        assert self._connection is not None
        return self._connection

    def _load(self) -> None:
        try:
            self._connection = _connect()
        except Exception as exc:  # noqa: BLE001 - carried over to the thread that asks, where it is raised
            self._failure = exc


_started: list[PendingConnection] = []


def preload() -> None:
    """Begin before there is a lake: the command line calls this first and parses its arguments meanwhile."""
    if not _started:
        _started.append(PendingConnection())


class DuckDB:
    """One DuckDB per lake, a connection of its own for each statement."""

    def __init__(self, memory_limit: int, spill: Path, remote: str = "") -> None:
        """
        Args:
            remote: the statement that gives access to an object store, if tables lie in one.
        """
        self.memory_limit, self._spill, self._remote = memory_limit, spill, remote
        self._loading: PendingConnection | None = None
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._numbers = count()

    def begin(self) -> None:
        """Start loading, unless that has been done."""
        if self._loading is None:
            self._loading = _started.pop() if _started else PendingConnection()

    def run(
        self,
        sql: str,
        views: Mapping[TableName | str, Scan],
        reason: str,
        limit: int | None = None,
        explain: bool = False,
    ) -> Result:
        """Run a query over views of tables.

        Args:
            sql: in DuckDB's dialect.
            views: what each table name in it stands for; a plain string is a view without a namespace, as tables
                in one of `OWN_NAMESPACES` need it.
            limit: the most rows to give; None for all.
        """
        cursor = self._cursor()
        import duckdb  # after the cursor, which says so if DuckDB is not installed

        try:
            for name, scan in views.items():
                _create_view(cursor, name, scan)
            told = Explain("duckdb", reason)
            if explain:
                told = self._explained(cursor, sql, views, reason)
            relation = _with_sparks_integers(cursor.sql(sql))
        except duckdb.Error as exc:
            raise translate(with_place(cursor, sql, exc), sql) from exc
        if relation is None:
            return Result((), DuckDBRows(None, limit, sql, cursor), told)
        columns = tuple(
            Column(_spark_name(name), spark_type(kind))
            for name, kind in zip(relation.columns, relation.types, strict=True)
        )
        return Result(columns, DuckDBRows(relation, limit, sql, cursor), told)

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        self.begin()
        assert self._loading is not None
        if self._connection is None:
            self._connection = self._loading.finish()
            self._connection.execute(f"SET temp_directory = {_text(str(self._spill))}")
            self._connection.execute(f"SET memory_limit = '{self.memory_limit}B'")
            if self._remote:
                _load(self._connection, "httpfs")
                self._connection.execute(self._remote)
        # An empty catalog per statement: results are read late, so one statement's views must outlive the next one.
        cursor = self._connection.cursor()
        # With a space in its name, which no namespace of the lake can have.
        name = f'"statement {next(self._numbers)}"'
        cursor.execute(f"ATTACH ':memory:' AS {name}; USE {name}")
        # Forgotten with the last result that reads from it, so that a long-lived process does not collect them.
        finalize(cursor, _detach, self._connection, name)
        return cursor

    def _explained(
        self, cursor: duckdb.DuckDBPyConnection, sql: str, views: Mapping[TableName | str, Scan], reason: str
    ) -> Explain:
        """Run the query once under DuckDB's profiler, and count what its scans opened."""
        cursor.execute("SET enable_external_file_cache = false")  # what is in memory already would not count as read
        profile = json.loads(cursor.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + sql).fetchall()[0][1])
        plan = cursor.execute("EXPLAIN " + sql).fetchall()[0][1]
        cursor.execute("SET enable_external_file_cache = true")
        scans = views.values()
        return Explain(
            engine="duckdb",
            reason=reason,
            files_read=_files_read(profile),
            files_total=sum(scan.total_files or 0 for scan in scans),
            bytes_read=profile.get("total_bytes_read"),
            bytes_total=sum(scan.total_bytes or 0 for scan in scans),
            plan=plan,
        )


def _connect() -> duckdb.DuckDBPyConnection:
    try:
        import duckdb
    except ImportError as exc:
        raise NotInstalledError("duckdb", "duckdb") from exc
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"})
    for name in _EXTENSIONS:
        _load(connection, name)
    # Spark sorts NULLs first going up and last going down.
    connection.execute("SET TimeZone = 'UTC'; SET default_null_order = 'NULLS_FIRST_ON_ASC_LAST_ON_DESC'")
    return connection


def _load(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    import duckdb

    connection.execute(f"LOAD {_text(str(_extension(name, duckdb.__version__)))}")


def _detach(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    import duckdb

    with suppress(duckdb.Error):
        connection.cursor().execute(f"DETACH {name}")


@dataclass
class DuckDBRows:
    """The rows of a relation, fetched when somebody looks."""

    relation: Any
    limit: int | None
    sql: str
    cursor: Any
    """Kept, because what the relation reads from goes with it."""

    def fetch(self) -> list[Row]:
        import duckdb

        if self.relation is None:
            return []
        try:
            rows: list[Row] = self._limited().fetchall()
            return rows
        except duckdb.Error as exc:
            raise translate(exc, self.sql) from exc

    def arrow(self) -> pyarrow.Table:
        import duckdb
        import pyarrow

        if self.relation is None:
            return pyarrow.table({})
        try:
            return self._limited().to_arrow_table()
        except duckdb.Error as exc:
            raise translate(exc, self.sql) from exc

    def _limited(self) -> Any:
        return self.relation if self.limit is None else self.relation.limit(self.limit)


def _spark_name(column: str) -> str:
    """What Spark would have called a column that the query gave no name."""
    return column.replace("count_star()", "count(1)").replace('"', "")


def _with_sparks_integers(relation: Any) -> Any:
    """DuckDB sums whole numbers to HUGEINT, which Spark and Arrow do not have: to Spark such a sum is a BIGINT."""
    if relation is None or not any(kind.id == "hugeint" for kind in relation.types):
        return relation
    columns = enumerate(zip(relation.columns, relation.types, strict=True), start=1)
    return relation.project(
        ", ".join(
            (f"CAST(#{place} AS BIGINT)" if kind.id == "hugeint" else f"#{place}") + f" AS {_name(name)}"
            for place, (name, kind) in columns
        )
    )


def _create_view(cursor: duckdb.DuckDBPyConnection, name: TableName | str, scan: Scan) -> None:
    import duckdb

    view = _name(name) if isinstance(name, str) else f"{_name(name.namespace)}.{_name(name.table)}"
    if isinstance(name, TableName):
        cursor.execute(f"CREATE SCHEMA IF NOT EXISTS {_name(name.namespace)}")
    try:
        cursor.execute(f"CREATE VIEW {view} AS {_select(scan)}")
    except duckdb.BinderException:
        if not scan.files:
            raise
        # The table has a column that none of its files has yet.
        cursor.execute(f"CREATE VIEW {view} AS {_select_with_nulls(scan)}")


def _select(scan: Scan) -> str:
    """The table as a query that DuckDB can push columns and filters into."""
    if scan.metadata:
        at = f", snapshot_from_id = {int(scan.snapshot_id)}" if scan.snapshot_id else ""
        return f"SELECT * FROM iceberg_scan({_text(scan.metadata)}{at})"
    return f"SELECT {_names(scan)} FROM {_parquet(scan)}" if scan.files else _no_rows(scan)


def _select_with_nulls(scan: Scan) -> str:
    """The same with nulls for whatever the files lack: still pushed into, but counts no longer come from footers."""
    return f"SELECT {_names(scan)} FROM (SELECT * FROM {_parquet(scan)} UNION ALL BY NAME {_no_rows(scan)})"


def _names(scan: Scan) -> str:
    return ", ".join(_name(column.name) for column in scan.columns)


def _parquet(scan: Scan) -> str:
    listed = ", ".join(_text(file) for file in scan.files)
    # Older files lack newer columns: by name, what is missing is null.
    return f"read_parquet([{listed}], union_by_name = true, hive_partitioning = false)"


def _no_rows(scan: Scan) -> str:
    nothing = ", ".join(f"CAST(NULL AS {duckdb_type(column.type)}) AS {_name(column.name)}" for column in scan.columns)
    return f"SELECT {nothing or '1'} WHERE false"


def _files_read(profile: Any) -> int:
    """The files that all scans of a profiled plan opened."""
    own = str((profile.get("extra_info") or {}).get("Total Files Read", "0"))
    number = int(own) if own.isdigit() else 0
    return number + sum(_files_read(child) for child in profile.get("children", []))


def _extension(name: str, version: str) -> Path:
    spec = find_spec(f"duckdb_extension_{name}")
    if spec is None or not spec.submodule_search_locations:
        raise NotInstalledError(f"duckdb-extension-{name}", "duckdb")
    file = Path(spec.submodule_search_locations[0]) / "extensions" / f"v{version}" / f"{name}.duckdb_extension"
    if not file.is_file():
        raise EngineError(
            f"duckdb-extension-{name} is not the one for DuckDB {version}.",
            f"pip install 'duckdb-extension-{name}=={version}'",
        )
    return file
