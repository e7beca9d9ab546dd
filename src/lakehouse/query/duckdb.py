"""DuckDB as an engine: each table becomes a view over its scan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from lakehouse.core.engine import EngineCapabilities, Query
from lakehouse.core.errors import QueryRejectedError
from lakehouse.core.names import TableName
from lakehouse.core.result import Result
from lakehouse.core.statement import Statement, TableUse
from lakehouse.core.tables import Scan
from lakehouse.engines.duckdb import OWN_NAMESPACES, DuckDB
from lakehouse.query.sql.render import for_duckdb, map_error_position

#: Resolves the scans of a statement that was parsed again.
Rescan = Callable[[Query, Statement], Mapping[TableUse, Scan]]


class DuckDBEngine:
    """Runs reads in this process, without a JVM."""

    name = "duckdb"
    capabilities = EngineCapabilities(scans=True)

    def __init__(self, duckdb: DuckDB, rescan: Rescan) -> None:
        self._duckdb, self._rescan = duckdb, rescan

    def prepare(self) -> None:
        self._duckdb.begin()

    def run(self, query: Query) -> Result:
        views, names = _views(query.scans)
        sql = for_duckdb(query.statement, names)
        try:
            return self._duckdb.run(sql, views, query.reason, query.request.limit, query.request.explain)
        except QueryRejectedError as exc:
            # A plain statement may use a name that is a keyword only in DuckDB; sqlglot's translation quotes names.
            translated = _parse_with_sqlglot(query.statement)
            if translated is None:
                raise map_error_position(exc, query.statement) from exc
        return self.run(replace(query, statement=translated, scans=self._rescan(query, translated)))


def _views(scans: Mapping[TableUse, Scan]) -> tuple[dict[TableName | str, Scan], dict[int, str]]:
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


def _parse_with_sqlglot(statement: Statement) -> Statement | None:
    """A plain statement parsed with sqlglot; None if it was already, or if sqlglot rejects it too."""
    if statement.tree is not None:
        return None
    from lakehouse.query.sql.parsed import parse_with_sqlglot

    try:
        return parse_with_sqlglot(statement.text)
    except QueryRejectedError:
        return None
