"""A statement on Trino: in Trino's own SQL, with the lake's words for moments in time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from lakehouse.core.engine import EngineCapabilities, Query
from lakehouse.core.errors import NotSupportedError, QueryRejectedError
from lakehouse.core.names import CATALOG, MAIN, TableName
from lakehouse.core.requests import QueryRequest
from lakehouse.core.result import Result
from lakehouse.engines.trino import Progress, Trino
from lakehouse.query.tables import Tables

Waiting = Callable[[str], AbstractContextManager[Progress | None]]


class TrinoEngine:
    """Runs statements in Trino, where the lake's tables stand beside other catalogs' (`oltp.public.users`)."""

    name = "trino"
    capabilities = EngineCapabilities(writes=True, dialect="trino")

    def __init__(self, tables: Tables, trino: Trino, waiting: Waiting) -> None:
        """
        Args:
            waiting: opened while a statement runs; gives what its progress is told to, or None.
        """
        self._tables, self._trino, self._waiting = tables, trino, waiting

    def prepare(self) -> None:
        """Trino is a server: nothing to load here."""

    def run(self, query: Query) -> Result:
        request, trino = query.request, self._trino
        if request.branch not in ("", MAIN):
            if request.branch not in trino.branches:
                raise NotSupportedError(
                    f"Trino does not see the branch {request.branch}.",
                    "Leave --engine away, or name it in trino.branches and start Trino anew: lake up trino",
                )
            trino = trino.on(request.branch)
        sql = self._at(request) if request.as_of else request.sql
        sql = sql.strip().rstrip(";")
        if request.explain:
            sql = f"EXPLAIN {sql}"
        with self._waiting("Running on Trino") as progress:
            return trino.run(sql, query.reason, request.limit, progress)

    def _at(self, request: QueryRequest) -> str:
        """The statement with every table of the lake as it was at a WHEN."""
        import sqlglot
        from sqlglot import exp

        try:
            tree: Any = sqlglot.parse_one(request.sql, read="trino")
        except sqlglot.errors.ParseError as exc:
            raise QueryRejectedError(str(exc).splitlines()[0], sql=request.sql) from exc
        tables = self._tables.on(request.branch)
        named = {each.alias for each in tree.find_all(exp.CTE)}
        for table in tree.find_all(exp.Table):
            if table.catalog.lower() in ("", CATALOG) and table.db and table.name not in named:
                snapshot = tables.snapshot_at(TableName(table.db.lower(), table.name.lower()), request.as_of)
                moment = exp.Literal.number(snapshot)
                table.set("version", exp.Version(this="VERSION", kind="AS OF", expression=moment))
        return str(tree.sql(dialect="trino"))
