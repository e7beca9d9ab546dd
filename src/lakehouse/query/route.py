"""`lake sql`: pick the engine, give each table its scan, run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lakehouse.core.engine import QueryRequest, SparkEngine
from lakehouse.core.errors import BadSettingError, NotSupportedError, QueryRejectedError, UnknownChoiceError
from lakehouse.core.names import TableName
from lakehouse.core.result import Result
from lakehouse.core.tables import Scan
from lakehouse.engines.duckdb import OWN_NAMESPACES, DuckDB
from lakehouse.query.drop import drop_softly
from lakehouse.query.sql import Statement, TableUse, parse
from lakehouse.query.sql.render import for_duckdb, pointed_back
from lakehouse.query.tables import Tables

ENGINES = ("auto", "duckdb", "spark", "trino")


@dataclass(frozen=True)
class Choice:
    """Which engine, and the reason for those who ask."""

    engine: str
    reason: str


class QueryRouter:
    """Statements in, results out."""

    def __init__(
        self,
        tables: Tables,
        duckdb: DuckDB,
        spark: SparkEngine,
        largest_scan: int,
        trino: Callable[[QueryRequest], Result] | None = None,
    ) -> None:
        """
        Args:
            trino: runs a statement there; None where the settings name no Trino.
        """
        self._tables, self._duckdb, self._spark, self._largest_scan = tables, duckdb, spark, largest_scan
        self._trino = trino

    def run(self, request: QueryRequest, engine: str = "auto") -> Result:
        """Run one statement on the engine asked for, or on the one that suits it."""
        if engine not in ENGINES:
            raise UnknownChoiceError("engine", engine, ENGINES)
        if engine == "spark":
            return self._spark.query(request, "asked for")
        if engine == "trino":
            return self._on_trino(request)
        self._duckdb.begin()
        statement = parse(request.sql)
        tables = self._tables.on(request.branch)
        if statement.kind == "drop":
            return drop_softly(statement, tables)
        choice, scans = self._choose(statement, tables, request, engine)
        if choice.engine == "spark":
            return self._spark.query(request, choice.reason)
        return self._on_duckdb(statement, scans, request, choice.reason)

    def _on_trino(self, request: QueryRequest) -> Result:
        if self._trino is None:
            raise BadSettingError(
                "trino.url is not set, so there is no Trino to ask.",
                "Set it (LAKE_TRINO__URL=http://127.0.0.1:8085), or use a profile that has one: lake --profile sql up",
            )
        return self._trino(request)

    def _choose(
        self, statement: Statement, tables: Tables, request: QueryRequest, engine: str
    ) -> tuple[Choice, dict[TableUse, Scan]]:
        needs_spark = _needs_spark(statement, tables)
        if needs_spark and engine == "duckdb":
            raise NotSupportedError(f"DuckDB cannot run this: {needs_spark}.", "Leave --engine away, or say spark.")
        if needs_spark:
            return Choice("spark", needs_spark), {}
        try:
            scans = _scans(statement, tables, request.as_of)
        except NotSupportedError as exc:
            if engine == "duckdb":
                raise
            return Choice("spark", exc.message), {}
        if engine == "duckdb":
            return Choice("duckdb", "asked for"), scans
        size = sum(scan.total_bytes or 0 for scan in scans.values())
        if size > self._largest_scan:
            return Choice("spark", f"the tables are {_mb(size)}, more than query.largest_scan allows DuckDB"), {}
        return Choice("duckdb", f"a read of {_mb(size)}, which fits in memory"), scans

    def _on_duckdb(
        self, statement: Statement, scans: dict[TableUse, Scan], request: QueryRequest, reason: str
    ) -> Result:
        views: dict[TableName | str, Scan] = {}
        names: dict[int, str] = {}
        for number, (use, scan) in enumerate(scans.items()):
            # The same table may be used now and at two other times; each time gets a view of its own,
            # under a name that nobody can write, as do tables whose names DuckDB would take for its own.
            if use.as_of or use.name.namespace in OWN_NAMESPACES:
                names[use.start] = f"{use.name.table} {number}"
                views[names[use.start]] = scan
            else:
                views[use.name] = scan
        sql = for_duckdb(statement, names)
        try:
            return self._duckdb.run(sql, views, reason, request.limit, request.explain)
        except QueryRejectedError as exc:
            # A plain statement may hold a name that is a keyword to DuckDB alone; translated, names are quoted.
            careful = _read_carefully(statement)
            if careful is None:
                raise pointed_back(exc, statement) from exc
        scans = _scans(careful, self._tables.on(request.branch), request.as_of)
        return self._on_duckdb(careful, scans, request, reason)


def _scans(statement: Statement, tables: Tables, as_of: str) -> dict[TableUse, Scan]:
    """How each use of a table is read: all as they are at one moment, as a publish changes them all in one."""
    tables = tables.frozen(list({use.name for use in statement.uses}))
    return {
        use: tables.format_of(use.name).scan(use.name, tables.snapshot_at(use.name, use.as_of or as_of))
        for use in statement.uses
    }


def _read_carefully(statement: Statement) -> Statement | None:
    """A plain statement read with sqlglot after all; None if it has been, or if that cannot read it either."""
    if statement.tree is not None:
        return None
    from lakehouse.query.sql.parsed import parse_with_sqlglot

    try:
        return parse_with_sqlglot(statement.text)
    except QueryRejectedError:
        return None


def _needs_spark(statement: Statement, tables: Tables) -> str:
    """Why only Spark can run a statement, or nothing."""
    if statement.kind == "write":
        return "it writes"
    if statement.kind in {"session", "other"}:
        return "it is a statement of Spark's own"
    if any(tables.is_view(use.name) and not tables.find(use.name) for use in statement.uses):
        return "it reads a view"
    if any(use.metadata_table for use in statement.uses):
        return "it reads a metadata table"
    return ""


def _mb(size: int) -> str:
    return f"{size / 1024 / 1024:.1f} MB"
