"""DuckDB in this process: queries over Iceberg and Hudi tables, without a JVM."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import field
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from weakref import finalize

from lakehouse.core.cancel import interruptible
from lakehouse.core.dataclass import dataclass
from lakehouse.core.engine import EngineCapabilities, Query
from lakehouse.core.errors import EngineError, LakeError, NeedsSparkError, QueryRejectedError, StatementCanceledError
from lakehouse.core.names import TableName
from lakehouse.core.progress import followed
from lakehouse.core.quoting import name as _name
from lakehouse.core.quoting import text as _text
from lakehouse.core.result import Explain, Result, Row
from lakehouse.core.statement import Translation
from lakehouse.core.tables import Column, Scan
from lakehouse.engines.duckdb.connection import (
    load_extension,
    open_in_background,
    preload,
    take_preloaded,
)
from lakehouse.engines.duckdb.errors import ONLY_SPARK_HINT, only_spark_answers, translate, with_position
from lakehouse.engines.duckdb.explain import explain_query
from lakehouse.engines.duckdb.files import select_files, select_with_nulls
from lakehouse.engines.duckdb.types import SPARK_TYPES, TIMES, duckdb_type

if TYPE_CHECKING:
    import duckdb
    import pyarrow

#: Names of DuckDB's own catalogs and schemas: a namespace of such a name must be addressed differently.
OWN_NAMESPACES = {"temp", "memory", "system", "main", "information_schema", "pg_catalog"}

__all__ = ["OWN_NAMESPACES", "DuckDB", "DuckDBEngine", "DuckDBRows", "create_view", "duckdb_type", "preload"]

#: What each view reads. A scan never changes: its metadata file or its data files are immutable.
Views: TypeAlias = "tuple[tuple[TableName | str, Scan], ...]"

#: Catalogs that are kept for later statements, and statements whose columns are kept for each.
_MAX_CATALOGS, _MAX_STATEMENTS = 64, 256
#: Makes the view of a table in the current catalog.
CreateView = Callable[["duckdb.DuckDBPyConnection", TableName | str, Scan], None]
#: Turns an error of DuckDB, while it ran some SQL, into one of the lake.
ToError = Callable[[Exception, str], LakeError]


class Prepared(NamedTuple):
    """What DuckDB runs for a query, and its columns."""

    sql: str
    columns: tuple[Column, ...]


@dataclass(eq=False)
class ViewCatalog:
    """An attached in-memory database with the views of some tables. Detached when nothing refers to it any more."""

    name: str
    prepared: dict[str, Prepared] = field(default_factory=dict)
    """By statement. To prepare one takes as long as a small query."""

    def prepare(self, cursor: duckdb.DuckDBPyConnection, sql: str) -> Prepared:
        prepared = self.prepared.get(sql)
        if prepared is None:
            if len(self.prepared) >= _MAX_STATEMENTS:
                self.prepared.clear()
            prepared = self.prepared[sql] = _prepare(cursor, sql, None)
        return prepared


class ViewCatalogs:
    """The view catalogs of a connection. The last used ones are kept, for statements over the same snapshots."""

    #: Of all, since two may share a connection.
    _numbers = count()

    def __init__(self, create: CreateView | None = None) -> None:
        """
        Args:
            create: makes what the name of a table refers to (default: `create_view`).
        """
        self._create = create or create_view
        self._kept: dict[Views, ViewCatalog] = {}
        self._lock = threading.Lock()

    def use(self, cursor: duckdb.DuckDBPyConnection, views: Views, current: ViewCatalog | None = None) -> ViewCatalog:
        """Use a catalog with these views in a cursor.

        Args:
            current: what the cursor uses already, if it was used before.
        """
        with self._lock:
            catalog = self._kept.pop(views, None)
            if catalog is not None:
                self._kept[views] = catalog  # the last used one is the last
        if catalog is None:
            # With a space in its name, which no namespace of the lake can have.
            catalog = ViewCatalog(f'"statement {next(self._numbers)}"')
            cursor.execute(f"ATTACH ':memory:' AS {catalog.name}; USE {catalog.name}")
            finalize(catalog, _detach, cursor.cursor(), catalog.name)
            for name, scan in views:
                self._create(cursor, name, scan)
            with self._lock:
                self._kept[views] = catalog
                if len(self._kept) > _MAX_CATALOGS:
                    self._kept.pop(next(iter(self._kept)))  # results that still read from it keep it
        if catalog is not current:
            cursor.execute(f"USE {catalog.name}")
        return catalog


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
        self._catalogs, self._lock = ViewCatalogs(), threading.Lock()

    def begin(self) -> None:
        """Start to open the connection in the background, once."""
        with self._lock:
            if self._pending is None:
                self._pending = open_in_background()

    def query(  # noqa: PLR0913 - the parts of one query
        self,
        sql: str,
        views: Mapping[TableName | str, Scan],
        reason: str,
        limit: int | None = None,
        explain: bool = False,
        parameters: Mapping[str, Any] | None = None,
        to_error: ToError = translate,
    ) -> Result:
        """Describe a query over views of tables; it runs when its rows are fetched, and each time that they are.

        A statement with an effect is refused: describing it would already execute it. `execute` runs those.

        Args:
            sql: in DuckDB's dialect.
            views: the table that each name refers to; a plain string is a view without a namespace.
            limit: the maximum number of rows (default: all).
            parameters: values of `$name` in the statement.
        """
        cursor = self._connected().cursor()
        import duckdb  # after the cursor, which raises a clear error if DuckDB is not installed

        try:
            catalog = self._catalogs.use(cursor, tuple(views.items()))
            report = Explain("duckdb", reason)
            if explain:
                report = interruptible(
                    cursor.interrupt, lambda: explain_query(cursor, sql, views.values(), reason, parameters)
                )
            prepared = _prepare(cursor, sql, parameters) if parameters else catalog.prepare(cursor, sql)
        except duckdb.Error as exc:
            # Whoever wrote the SQL gets the place of a mistake in it; translated SQL has no author.
            raise to_error(with_position(cursor, sql, exc) if to_error is translate else exc, sql) from exc
        rows = DuckDBRows(prepared.sql, limit, cursor, catalog, parameters, to_error)
        return Result(prepared.columns, rows, report)

    def answer(self, translation: Translation, reason: str, limit: int | None = None, explain: bool = False) -> Result:
        """Answer a translated query as Spark does.

        Raises:
            NeedsSparkError: DuckDB cannot; also while the rows are fetched.
        """
        views: dict[TableName | str, Scan] = {}
        views.update(translation.views)
        result = self.query(
            translation.sql, views, reason, limit, explain, translation.parameters or None, only_spark_answers
        )
        check_types(translation.columns, result.columns)
        result.columns = translation.columns
        return result

    def execute(
        self, sql: str, views: Mapping[TableName | str, Scan] = MappingProxyType({}), size: int = 0
    ) -> list[Row]:
        """Run statements with an effect, such as COPY, exactly once; returns the rows of the last one.

        Args:
            sql: in DuckDB's dialect.
            views: the table that each name refers to.
            size: the number of rows that they write, to report how many are written.
        """
        cursor = self._connected().cursor()
        import duckdb

        try:
            # The catalog is referenced until the end: it holds the views that the statement reads.
            catalog = self._catalogs.use(cursor, tuple(views.items()))
            if size:
                cursor.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
            with followed(lambda: cursor.query_progress() / 100, 0, size, size, "rows"):
                rows: list[Row] = interruptible(cursor.interrupt, lambda: cursor.execute(sql).fetchall())
            del catalog
        except duckdb.Error as exc:
            raise translate(exc, sql) from exc
        return rows

    def _connected(self) -> duckdb.DuckDBPyConnection:
        self.begin()
        assert self._pending is not None
        connection = self._pending.result()
        with self._lock:
            if self._connection is None:
                connection.execute(f"SET temp_directory = {_text(str(self._spill))}")
                connection.execute(f"SET memory_limit = '{self.memory_limit}B'")
                if self._remote:
                    load_extension(connection, "httpfs")
                    connection.execute(self._remote)
                self._connection = connection
        return connection


class DuckDBEngine:
    """DuckDB as an engine: it runs reads in this process, and each table is a view over its scan."""

    name = "duckdb"
    capabilities = EngineCapabilities(scans=True, translated=True)

    def __init__(self, duckdb: DuckDB) -> None:
        self._duckdb = duckdb

    def prepare(self) -> None:
        self._duckdb.begin()

    def run(self, query: Query) -> Result:
        request = query.request
        if query.translation is not None:
            return self._duckdb.answer(query.translation, query.reason, request.limit, request.explain)
        views: dict[TableName | str, Scan] = {use.name: scan for use, scan in query.scans.items()}
        sql = query.statement.text
        return self._duckdb.query(sql, views, query.reason, request.limit, request.explain, request.parameters)


@dataclass
class DuckDBRows:
    """The rows of a query, which runs when they are fetched."""

    to_run: str
    limit: int | None
    cursor: Any
    catalog: ViewCatalog
    """Referenced because it holds the views that the query reads."""
    parameters: Mapping[str, Any] | None = None
    to_error: ToError = translate

    def fetch(self) -> list[Row]:
        """All rows as tuples."""
        rows: list[Row] = self._read("fetchall")
        kinds = [kind for _, kind, *_ in self.cursor.description or ()]
        times = {place: kind for place, kind in enumerate(kinds) if any(name in str(kind) for name in TIMES)}
        if not times:
            return rows
        from lakehouse.engines.duckdb.values import with_far_times

        return with_far_times(rows, times)

    def arrow(self) -> pyarrow.Table:
        """All rows as an Arrow table."""
        return self._read("to_arrow_table")

    def reader(self, batch_rows: int) -> pyarrow.RecordBatchReader:
        """The rows as Arrow batches while they are computed; `read_batches` reads them."""
        return self._read("to_arrow_reader", batch_rows)

    def _read(self, method: str, *arguments: Any) -> Any:
        import duckdb

        limited = self.to_run if self.limit is None else f"FROM ({self.to_run}\n) LIMIT {self.limit}"

        def read() -> Any:
            return getattr(self.cursor.execute(limited, self.parameters and dict(self.parameters)), method)(*arguments)

        try:
            return interruptible(self.cursor.interrupt, read)
        except duckdb.Error as exc:
            raise self.to_error(exc, self.to_run) from exc


def read_batches(reader: pyarrow.RecordBatchReader) -> Iterator[pyarrow.RecordBatch]:
    """The batches of a reader, with DuckDB's errors, which Arrow hands over as text."""
    import pyarrow

    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        except (OSError, pyarrow.ArrowException) as exc:
            message = str(exc).splitlines()[0]
            if "INTERRUPT" in message.upper():
                raise StatementCanceledError("The statement was canceled.") from exc
            raise EngineError(f"DuckDB failed: {message}", "lake sql --engine spark may work.") from exc
        yield batch


def _prepare(cursor: duckdb.DuckDBPyConnection, sql: str, parameters: Mapping[str, Any] | None) -> Prepared:
    import duckdb

    # `cursor.sql` executes whatever is not a query at once, and fetching its rows executes it again.
    if [statement.type for statement in cursor.extract_statements(sql)] != [duckdb.StatementType.SELECT]:
        raise QueryRejectedError("DuckDB runs single queries here, and this is none.", sql=sql)
    relation = cursor.sql(sql, params=dict(parameters)) if parameters else cursor.sql(sql)
    described = zip(relation.columns, relation.types, strict=True)
    columns = tuple(Column(name, spark_type(kind)) for name, kind in described)
    return Prepared(sql.rstrip().rstrip(";"), columns)


def check_types(expected: Sequence[Column], described: Sequence[Column]) -> None:
    """Check that DuckDB's result has the types that the translation promises."""
    for column, own in zip(expected, described, strict=True):
        # Values of the type void are all NULL, and have no type of their own in DuckDB.
        if own.type != re.sub(r"\bvoid(?=[,>]|$)", "int", column.type) and column.type != "void":
            raise NeedsSparkError(
                f"DuckDB is not shown to answer {column.name} as Spark does: it is {own.type} instead of {column.type}.",
                ONLY_SPARK_HINT,
            )


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


def _detach(cursor: duckdb.DuckDBPyConnection, name: str) -> None:
    import duckdb

    with suppress(duckdb.Error):
        cursor.execute(f"DETACH {name}")


def create_view(cursor: duckdb.DuckDBPyConnection, name: TableName | str, scan: Scan) -> None:
    """Create the view that a table name in a query refers to."""
    import duckdb

    view = _view_name(cursor, name)
    try:
        cursor.execute(f"CREATE VIEW {view} AS {_select(scan)}")
    except duckdb.BinderException:
        if not scan.files:
            raise
        # The table has a column that none of its files has yet.
        cursor.execute(f"CREATE VIEW {view} AS {select_with_nulls(scan)}")


def create_copy(cursor: duckdb.DuckDBPyConnection, name: TableName | str, scan: Scan) -> None:
    """Create a table in memory with the rows of a scan, to which a table name in a query refers."""
    cursor.execute(f"CREATE TABLE {_view_name(cursor, name)} AS {_select(scan)}")


def _view_name(cursor: duckdb.DuckDBPyConnection, name: TableName | str) -> str:
    """The quoted name of the view of a table, in a schema that there is."""
    if isinstance(name, str):
        return _name(name)
    cursor.execute(f"CREATE SCHEMA IF NOT EXISTS {_name(name.namespace)}")
    return f"{_name(name.namespace)}.{_name(name.table)}"


def _select(scan: Scan) -> str:
    """A query over the table into which DuckDB pushes columns and filters."""
    if scan.metadata:
        at = f", snapshot_from_id = {int(scan.snapshot_id)}" if scan.snapshot_id else ""
        # Spark reads a UUID as text: DuckDB's own type compares, converts and arrives in Python as something else.
        as_text = ", ".join(
            f"CAST({_name(column.name)} AS {duckdb_type(column.type)}) AS {_name(column.name)}"
            for column in scan.columns
            if column.name in scan.holding_uuids
        )
        selected = f"* REPLACE ({as_text})" if as_text else "*"
        return f"SELECT {selected} FROM iceberg_scan({_text(scan.metadata)}{at})"
    return select_files(scan)
