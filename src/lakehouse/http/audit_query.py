"""Statements on the audit log: the same guard and query processes, with one table."""

from __future__ import annotations

from pathlib import Path

from lakehouse.core.engine import Query
from lakehouse.core.errors import NoSuchTableError, NotSupportedError
from lakehouse.core.requests import QueryRequest
from lakehouse.core.result import Result
from lakehouse.engines.duckdb.workers.statement import WorkerEngine, WorkerStatement
from lakehouse.http.audit import AuditLog
from lakehouse.http.execution import Caller, Execution
from lakehouse.http.queries import AUDIT, QueryService
from lakehouse.lake import Lake
from lakehouse.query.route import StatementFacts
from lakehouse.query.sql.parser import parse
from lakehouse.query.sql.render import for_duckdb

_TABLES = ("default.audit",)


class AuditExecution(Execution):
    """Runs one statement on the audit log."""

    def __init__(self, queries: QueryService, call: Caller, sql: str, format: str, log: AuditLog) -> None:
        super().__init__(queries, call, QueryRequest(sql), "duckdb", format)
        self._log = log

    def _inspect(self, lake: Lake, request: QueryRequest, engine: str | None) -> StatementFacts:
        statement = parse(request.sql)
        if statement.kind != "read":
            raise NotSupportedError("The audit log can only be read.", "select … from audit")
        for use in statement.uses:
            if str(use.name) not in _TABLES:
                raise NoSuchTableError(str(use.name), ["audit"], 1)
        return StatementFacts("read", ())

    def _run(self, lake: Lake, request: QueryRequest, engine: str | None) -> Result:
        statement = parse(request.sql)
        scan = self._log.scan(Path(lake.folder) / "run" / AUDIT)
        self._statement = WorkerStatement(self._queries.pool, self.format, self._timeout_s, self._limit)
        self._scope.add(self._statement.cancel)
        scans = dict.fromkeys(statement.uses, scan)
        return WorkerEngine(self._statement, for_duckdb).run(Query(request, "the audit log", statement, scans))
