"""Run a statement: parse it once, guard it once, choose an engine, run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lakehouse.core.engine import Engine, Query
from lakehouse.core.errors import NotSupportedError, UnknownChoiceError
from lakehouse.core.registry import installed, load
from lakehouse.core.requests import QueryRequest
from lakehouse.core.result import Result
from lakehouse.core.statement import Statement, TableUse
from lakehouse.core.tables import Scan
from lakehouse.query.drop import drop_softly
from lakehouse.query.guard import check_allowed
from lakehouse.query.sql import parse
from lakehouse.query.tables import Tables

#: The entry point group in which other packages register engines.
ENGINES = "lakehouse.engines"
AUTO = "auto"
_REQUESTED = "requested"


class QueryRouter:
    """Routes statements to engines."""

    def __init__(self, tables: Tables, engines: Mapping[str, Callable[[], Engine]], largest_scan: int) -> None:
        """
        Args:
            engines: how to open each built-in engine.
            largest_scan: bytes of tables above which `auto` chooses Spark instead of DuckDB.
        """
        self._tables, self._open, self._largest_scan = tables, engines, largest_scan
        self._engines: dict[str, Engine] = {}

    def engine(self, name: str) -> Engine:
        """An engine by name, opened on first use."""
        if name not in self._engines:
            opener = self._open.get(name) or load(ENGINES, name)
            if opener is None:
                raise UnknownChoiceError("engine", name, [AUTO, *self._open, *installed(ENGINES)])
            self._engines[name] = opener()
        return self._engines[name]

    def run(self, request: QueryRequest, engine: str = AUTO, reason: str = _REQUESTED) -> Result:
        """Run one statement on the named engine, or on the one that suits it."""
        chosen = None if engine == AUTO else self.engine(engine)
        if chosen is not None and chosen.capabilities.remote:
            return chosen.run(Query(request, reason, Statement(request.sql, "remote")))
        (chosen or self.engine("duckdb")).prepare()
        dialect = chosen.capabilities.dialect if chosen else "spark"
        statement = parse(request.sql, local=request.files, dialect=dialect)
        tables = self._tables.on(request.branch)
        check_allowed(statement, tables, writes=request.write is not None)
        if statement.kind == "drop":
            return drop_softly(statement, tables)
        if chosen is None:
            return self._choose(statement, tables, request)
        scans = self._scans_for(chosen, statement, tables, request)
        return chosen.run(Query(request, reason, statement, scans))

    def _choose(self, statement: Statement, tables: Tables, request: QueryRequest) -> Result:
        name, reason, scans = self.choose(statement, tables, request)
        return self.engine(name).run(Query(request, reason, statement, scans))

    def choose(
        self, statement: Statement, tables: Tables, request: QueryRequest
    ) -> tuple[str, str, Mapping[TableUse, Scan]]:
        """The engine for a statement, the reason, and the scans if it is DuckDB."""
        if needs_spark := _needs_spark(statement, tables):
            return "spark", needs_spark, {}
        try:
            scans = resolve_scans(statement, tables, request.as_of)
        except NotSupportedError as exc:
            return "spark", exc.message, {}
        size = sum(scan.total_bytes or 0 for scan in scans.values())
        if size > self._largest_scan:
            return "spark", f"the tables are {_mb(size)}, more than query.largest_scan allows DuckDB", {}
        return "duckdb", f"a read of {_mb(size)}, which fits in memory", scans

    def _scans_for(
        self, engine: Engine, statement: Statement, tables: Tables, request: QueryRequest
    ) -> Mapping[TableUse, Scan]:
        if not engine.capabilities.scans:
            return {}
        if needs_spark := _needs_spark(statement, tables):
            raise NotSupportedError(
                f"{engine.name} cannot run this statement: {needs_spark}.", "Use --engine auto or --engine spark."
            )
        return resolve_scans(statement, tables, request.as_of)


@dataclass(frozen=True)
class EngineRunner:
    """Runs requests on one engine of a router."""

    router: QueryRouter
    engine: str

    def run(self, request: QueryRequest, reason: str) -> Result:
        return self.router.run(request, self.engine, reason)

    def prepare(self) -> None:
        self.router.engine(self.engine).prepare()


def resolve_scans(statement: Statement, tables: Tables, as_of: str) -> dict[TableUse, Scan]:
    """How to read each table of a statement; all at one moment, because a publish changes several at once."""
    tables = tables.pinned(list({use.name for use in statement.uses}))
    return {
        use: tables.format_of(use.name).scan(use.name, tables.snapshot_at(use.name, use.as_of or as_of))
        for use in statement.uses
    }


def _needs_spark(statement: Statement, tables: Tables) -> str:
    """Why only Spark can run a statement, or an empty string."""
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
