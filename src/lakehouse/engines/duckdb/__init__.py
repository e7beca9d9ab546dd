"""DuckDB in this process: queries over Iceberg and Hudi tables, without a JVM."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import finalize

from lakehouse.core.engine import EngineCapabilities, Query
from lakehouse.core.names import TableName
from lakehouse.core.quoting import name as _name
from lakehouse.core.quoting import text as _text
from lakehouse.core.result import Explain, Result, Row
from lakehouse.core.statement import Statement, TableUse
from lakehouse.core.tables import Column, Scan
from lakehouse.engines.duckdb.connection import load_extension, open_in_background, preload, take_preloaded
from lakehouse.engines.duckdb.errors import translate, with_position
from lakehouse.engines.duckdb.explain import explain_query
from lakehouse.engines.duckdb.types import SPARK_TYPES, duckdb_type

if TYPE_CHECKING:
    import duckdb
    import pyarrow

#: Names of DuckDB's own catalogs and schemas: a namespace of such a name must be addressed differently.
OWN_NAMESPACES = {"temp", "memory", "system", "main", "information_schema", "pg_catalog"}

__all__ = [
    "OWN_NAMESPACES",
    "DuckDB",
    "DuckDBEngine",
    "DuckDBRows",
    "create_view",
    "duckdb_type",
    "preload",
    "spark_name",
    "spark_type",
    "views_of",
]

#: Translates a statement to DuckDB's dialect, with new names for the tables at some positions.
Translate = Callable[[Statement, Mapping[int, str]], str]


class DuckDB:
    """One DuckDB per lake, with a cursor of its own for each statement."""

    def __init__(self, memory_limit: int, spill: Path, remote: str = "") -> None:
        """
        Args:
            memory_limit: bytes that DuckDB may use before it spills.
            spill: the folder for temporary files.
            remote: the statement that gives access to an object store, if tables are in one.
        """
        self.memory_limit, self._spill, self._remote = memory_limit, spill, remote
        self._pending: Future[duckdb.DuckDBPyConnection] | None = take_preloaded()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._numbers = count()

    def begin(self) -> None:
        """Start to open the connection in the background, once."""
        if self._pending is None:
            self._pending = open_in_background()

    def run(  # noqa: PLR0913 - the parts of one query
        self,
        sql: str,
        views: Mapping[TableName | str, Scan],
        reason: str,
        limit: int | None = None,
        explain: bool = False,
        parameters: Mapping[str, Any] | None = None,
    ) -> Result:
        """Run a query over views of tables.

        Args:
            sql: in DuckDB's dialect.
            views: the table that each name refers to; a plain string is a view without a namespace, for tables in one
                of `OWN_NAMESPACES`.
            limit: the maximum number of rows (default: all).
            parameters: values of `$name` in the statement.
        """
        cursor = self._cursor()
        import duckdb  # after the cursor, which raises a clear error if DuckDB is not installed

        try:
            for name, scan in views.items():
                create_view(cursor, name, scan)
            report = (
                explain_query(cursor, sql, views.values(), reason, parameters) if explain else Explain("duckdb", reason)
            )
            relation = _with_bigint_sums(cursor.sql(sql, params=dict(parameters)) if parameters else cursor.sql(sql))
        except duckdb.Error as exc:
            raise translate(with_position(cursor, sql, exc), sql) from exc
        if relation is None:
            return Result((), DuckDBRows(None, limit, sql, cursor), report)
        columns = tuple(
            Column(spark_name(name), spark_type(kind))
            for name, kind in zip(relation.columns, relation.types, strict=True)
        )
        return Result(columns, DuckDBRows(relation, limit, sql, cursor), report)

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        self.begin()
        assert self._pending is not None
        if self._connection is None:
            self._connection = self._pending.result()
            self._connection.execute(f"SET temp_directory = {_text(str(self._spill))}")
            self._connection.execute(f"SET memory_limit = '{self.memory_limit}B'")
            if self._remote:
                load_extension(self._connection, "httpfs")
                self._connection.execute(self._remote)
        # An empty catalog per statement: results are read late, so the views of a statement must outlive the next one.
        cursor = self._connection.cursor()
        # With a space in its name, which no namespace of the lake can have.
        name = f'"statement {next(self._numbers)}"'
        cursor.execute(f"ATTACH ':memory:' AS {name}; USE {name}")
        # Detached with the last result that reads from it, so that a long-lived process does not accumulate catalogs.
        finalize(cursor, _detach, self._connection, name)
        return cursor


class DuckDBEngine:
    """DuckDB as an engine: it runs reads in this process, and each table is a view over its scan."""

    name = "duckdb"
    capabilities = EngineCapabilities(scans=True)

    def __init__(self, duckdb: DuckDB, translate: Translate) -> None:
        self._duckdb, self._translate = duckdb, translate

    def prepare(self) -> None:
        self._duckdb.begin()

    def run(self, query: Query) -> Result:
        views, names = views_of(query.scans)
        statement, request = query.statement, query.request
        # A plain statement, which has no tree, means the same in DuckDB as it is written.
        sql = statement.text if statement.tree is None else self._translate(statement, names)
        return self._duckdb.run(sql, views, query.reason, request.limit, request.explain, request.parameters)


def views_of(scans: Mapping[TableUse, Scan]) -> tuple[dict[TableName | str, Scan], dict[int, str]]:
    """A view for each scan, and the new names of table references by their position in the text.

    One statement may use a table at several times, and DuckDB keeps some schema names to itself: those references get
    a view of their own, under a name that no user can write.
    """
    views: dict[TableName | str, Scan] = {}
    names: dict[int, str] = {}
    for number, (use, scan) in enumerate(scans.items()):
        if use.as_of or use.name.namespace in OWN_NAMESPACES:
            names[use.start] = f"{use.name.table} {number}"
            views[names[use.start]] = scan
        else:
            views[use.name] = scan
    return views, names


def _detach(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    import duckdb

    with suppress(duckdb.Error):
        connection.cursor().execute(f"DETACH {name}")


@dataclass
class DuckDBRows:
    """The rows of a relation, fetched on demand."""

    relation: Any
    limit: int | None
    sql: str
    cursor: Any
    """Referenced because its catalog holds the views that the relation reads."""

    def fetch(self) -> list[Row]:
        """All rows as tuples."""
        rows: list[Row] = [] if self.relation is None else self._read("fetchall")
        return rows

    def arrow(self) -> pyarrow.Table:
        """All rows as an Arrow table."""
        import pyarrow

        return pyarrow.table({}) if self.relation is None else self._read("to_arrow_table")

    def _read(self, method: str) -> Any:
        import duckdb

        relation = self.relation if self.limit is None else self.relation.limit(self.limit)
        try:
            return getattr(relation, method)()
        except duckdb.Error as exc:
            raise translate(exc, self.sql) from exc


def spark_name(column: str) -> str:
    """The name that Spark gives to a column without one."""
    return column.replace("count_star()", "count(1)").replace('"', "")


def spark_type(kind: Any) -> str:
    """The Spark type of a `DuckDBPyType`, whose stubs do not describe its children."""
    match kind.id:
        case "decimal":
            (_, precision), (_, scale) = kind.children
            return f"decimal({precision},{scale})"
        case "list" | "array":
            return f"array<{spark_type(kind.children[0][1])}>"
        case "map":
            return f"map<{','.join(spark_type(part) for _, part in kind.children)}>"
        case "struct":
            return f"struct<{','.join(f'{name}:{spark_type(part)}' for name, part in kind.children)}>"
    return SPARK_TYPES.get(kind.id, str(kind.id))


def _with_bigint_sums(relation: Any) -> Any:
    """DuckDB sums integers to HUGEINT, which Spark and Arrow do not have: in Spark such a sum is a BIGINT."""
    if relation is None or not any(kind.id == "hugeint" for kind in relation.types):
        return relation
    columns = enumerate(zip(relation.columns, relation.types, strict=True), start=1)
    return relation.project(
        ", ".join(
            (f"CAST(#{position} AS BIGINT)" if kind.id == "hugeint" else f"#{position}") + f" AS {_name(name)}"
            for position, (name, kind) in columns
        )
    )


def create_view(cursor: duckdb.DuckDBPyConnection, name: TableName | str, scan: Scan) -> None:
    """Create the view that a table name in a query refers to."""
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
    """A query over the table into which DuckDB pushes columns and filters."""
    if scan.metadata:
        at = f", snapshot_from_id = {int(scan.snapshot_id)}" if scan.snapshot_id else ""
        return f"SELECT * FROM iceberg_scan({_text(scan.metadata)}{at})"
    return f"SELECT {_names(scan)} FROM {_parquet(scan)}" if scan.files else _no_rows(scan)


def _select_with_nulls(scan: Scan) -> str:
    """The same with nulls for missing columns: filters are still pushed down, but counts do not come from footers."""
    return f"SELECT {_names(scan)} FROM (SELECT * FROM {_parquet(scan)} UNION ALL BY NAME {_no_rows(scan)})"


def _names(scan: Scan) -> str:
    return ", ".join(_name(column.name) for column in scan.columns)


def _parquet(scan: Scan) -> str:
    files = ", ".join(_text(file) for file in scan.files)
    # Older files lack newer columns; by name, a missing column is null.
    return f"read_parquet([{files}], union_by_name = true, hive_partitioning = false)"


def _no_rows(scan: Scan) -> str:
    nulls = ", ".join(f"CAST(NULL AS {duckdb_type(column.type)}) AS {_name(column.name)}" for column in scan.columns)
    return f"SELECT {nulls or '1'} WHERE false"
