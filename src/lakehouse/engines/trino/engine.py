"""Trino as an engine: statements in Trino's SQL, with the lake's WHENs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from lakehouse.core.engine import EngineCapabilities, EngineContext, Query
from lakehouse.core.errors import NotSupportedError
from lakehouse.core.names import CATALOG, MAIN, TableName
from lakehouse.core.requests import QueryRequest
from lakehouse.core.result import Result
from lakehouse.core.statement import Statement
from lakehouse.engines.trino import Progress, Trino

StatusReporter = Callable[[str], AbstractContextManager[Progress | None]]


class TrinoEngine:
    """Runs statements in Trino, which joins the lake's tables with other catalogs (`oltp.public.users`)."""

    name = "trino"
    capabilities = EngineCapabilities(writes=True, dialect="trino")

    def __init__(self, context: EngineContext, trino: Trino, status: StatusReporter) -> None:
        """
        Args:
            status: entered while a statement runs; yields a function that shows progress, or None.
        """
        self._context, self._trino, self._status = context, trino, status

    def prepare(self) -> None:
        """Trino is a server: nothing to load here."""

    def run(self, query: Query) -> Result:
        request, trino = query.request, self._trino
        if request.parameters:
            raise NotSupportedError("Parameters are not bound on Trino.", "Use the engine duckdb or spark.")
        if request.branch not in ("", MAIN):
            if request.branch not in trino.branches:
                raise NotSupportedError(
                    f"Trino does not see the branch {request.branch}.",
                    "Omit --engine, or add the branch to trino.branches and restart Trino: lake up trino",
                )
            trino = trino.on(request.branch)
        # The statement's text has no comments: Trino sees exactly what the guard checked.
        sql = self._at(query.statement, request) if request.as_of else query.statement.text
        if request.explain:
            sql = f"EXPLAIN {sql}"
        with self._status("Running on Trino") as progress, self._context.log(query.statement, request):
            run = trino.stream if request.stream and query.statement.kind == "read" else trino.run
            return run(sql, query.reason, request.limit, progress)

    def _at(self, statement: Statement, request: QueryRequest) -> str:
        """Rewrite the statement to read every table of the lake as of a WHEN."""
        from sqlglot import exp

        tree = statement.tree.copy()
        tables = self._context.tables.on(request.branch)
        ctes = {cte.alias for cte in tree.find_all(exp.CTE)}
        for table in tree.find_all(exp.Table):
            if table.catalog.lower() in ("", CATALOG) and table.db and table.name not in ctes:
                snapshot = tables.snapshot_at(TableName(table.db.lower(), table.name.lower()), request.as_of)
                version = exp.Literal.number(snapshot)
                table.set("version", exp.Version(this="VERSION", kind="AS OF", expression=version))
        return str(tree.sql(dialect="trino"))
