"""Run a statement: parse it once, which is where the guard decides on it, choose an engine, run."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace

from lakehouse.core.dataclass import dataclass
from lakehouse.core.engine import Engine, Query
from lakehouse.core.errors import NotSupportedError, UnknownChoiceError
from lakehouse.core.names import MAIN, TableName
from lakehouse.core.requests import QueryRequest
from lakehouse.core.result import Result
from lakehouse.core.statement import Statement, TableUse, Translation
from lakehouse.core.tables import Scan
from lakehouse.query.affected import effects_of, with_changes
from lakehouse.query.catalog_answers import answer_of_catalog
from lakehouse.query.conflicts import ConflictRetries
from lakehouse.query.fallback import with_fallback
from lakehouse.query.hudi_calls import maintenance_call
from lakehouse.query.sql.parser import parse
from lakehouse.query.translate.statement import translate
from lakehouse.query.translate.types import NotTranslatedError
from lakehouse.tables.directory import Tables

AUTO = "auto"
_REQUESTED = "requested"
_DUCKDB, _SPARK = "duckdb", "spark"


class QueryRouter:
    """Routes statements to engines."""

    def __init__(
        self,
        tables: Tables,
        duckdb: Engine,
        open_engine: Callable[[str], Engine],
        largest_scan: int,
        retries: ConflictRetries,
    ) -> None:
        """
        Args:
            open_engine: opens any other engine; UnknownChoiceError if none has the name.
            largest_scan: bytes of tables above which `auto` chooses Spark instead of DuckDB.
            retries: repeats statements that lost a race.
        """
        self._retries = retries
        self._tables, self._open, self._largest_scan, self._duckdb = tables, open_engine, largest_scan, duckdb
        self._engines: dict[str, Engine] = {}

    def reading_with(self, duckdb: Engine) -> QueryRouter:
        """The same router, with another engine in the place of DuckDB; the other engines are shared."""
        router = copy(self)
        router._duckdb = duckdb
        return router

    def engine(self, name: str) -> Engine:
        """An engine by name, opened on first use."""
        if name == _DUCKDB:
            return self._duckdb
        if name not in self._engines:
            self._engines[name] = self._open(name)
        return self._engines[name]

    def run(self, request: QueryRequest, engine: str = AUTO, reason: str = _REQUESTED) -> Result:
        """Check one statement and run it on the named engine, or on the one that suits it."""
        if engine in (AUTO, _DUCKDB):
            self._duckdb.prepare()  # it loads while the statement is parsed
        return self.run_checked(self.check(request, engine), reason)

    def check(self, request: QueryRequest, engine: str = AUTO) -> CheckedStatement:
        """Parse a statement, the only time that it is parsed; raises what the guard refuses."""
        if request.maintains:
            return CheckedStatement(request, engine, maintenance_call(request))
        chosen = self.engine(_DUCKDB if engine == AUTO else engine).capabilities
        dialect = _own_dialect(request, engine) or chosen.dialect
        statement = parse(request.sql, request.files, dialect, by_ingest=bool(request.ingest_into))
        tables = self._tables.on(request.branch)
        names = sorted({use.name for use in statement.uses})
        views = tuple(name for name in names if tables.is_view(name) and tables.find(name) is None)
        return CheckedStatement(request, engine, statement, views, chosen.scans or chosen.lake_only)

    def run_checked(self, checked: CheckedStatement, reason: str = _REQUESTED) -> Result:
        """Run a statement as it was checked."""
        request, statement = checked.request, checked.statement
        tables = self._tables.on(request.branch)
        if not request.maintains:  # on main even if it is protected: maintenance changes no row
            check_branch(checked, tables)
        if statement.kind != "read" and (answer := answer_of_catalog(statement, tables, checked.engine)) is not None:
            return answer
        _check_written_tables(checked, tables)
        if request.dialect == _DUCKDB:
            return self._run_own_sql(checked, tables)
        if checked.engine != AUTO:
            return self._run_on(self.engine(checked.engine), checked, tables, reason)
        name, reason, translation = self.choose(checked, tables)
        if translation is None:
            return self._run_on(self.engine(name), checked, tables, reason)
        query = Query(request, reason, statement, translation=translation)
        return with_fallback(self.engine(_DUCKDB), query, lambda why: self._run_on_spark(checked, tables, why))

    def _run_own_sql(self, checked: CheckedStatement, tables: Tables) -> Result:
        """Run DuckDB's own SQL, whose answers are DuckDB's."""
        if only_spark := _needs_spark(checked):
            raise NotSupportedError(f"duckdb cannot run this statement: {only_spark}.", "Omit --dialect.")
        scans = resolve_scans(checked.statement, tables, checked.request.as_of)
        return self._duckdb.run(Query(checked.request, "DuckDB's own SQL", checked.statement, scans))

    def _run_on_spark(self, checked: CheckedStatement, tables: Tables, why: str) -> Result:
        return self._run_on(self.engine(_SPARK), checked, tables, why)

    def _run_on(self, engine: Engine, checked: CheckedStatement, tables: Tables, reason: str) -> Result:
        """Run a statement on one engine, which refuses it rather than answer differently from Spark."""
        request = checked.request
        if engine.capabilities.scans and (only_spark := _needs_spark(checked)):
            raise NotSupportedError(
                f"{engine.name} cannot run this statement: {only_spark}.", "Use --engine auto or --engine spark."
            )
        if engine.capabilities.translated:
            scans = resolve_scans(checked.statement, tables, request.as_of)
            try:
                translation = translate(checked.statement, scans, request.parameters)
            except NotTranslatedError as exc:
                raise _not_shown(engine.name, str(exc)) from exc
            return engine.run(Query(request, reason, checked.statement, translation=translation))
        scans = resolve_scans(checked.statement, tables, request.as_of) if engine.capabilities.scans else {}
        query = Query(request, reason, checked.statement, scans, views=checked.views)
        return self._retries.run(checked.statement, request, lambda: self._run_once(engine, query, tables))

    def _run_once(self, engine: Engine, query: Query, tables: Tables) -> Result:
        """Run a statement, and count the rows that it changes; an ingest counts its own."""
        request = query.request
        if query.statement.kind != "write" or request.ingest_into or request.maintains:
            return engine.run(query)

        def count(sql: str) -> int:
            counting = self.check(replace(request, sql=sql, limit=None, explain=False, stream=False), engine.name)
            return int(self._run_on(engine, counting, tables, "counts changed rows").rows()[0][0])

        def run(mark: str) -> Result:
            return engine.run(replace(query, request=replace(request, mark=mark)))

        return with_changes(query.statement, tables, engine.capabilities.marks_commits, run, count)

    def choose(self, checked: CheckedStatement, tables: Tables) -> tuple[str, str, Translation | None]:
        """The engine for a statement, the reason, and the translation if it is DuckDB."""
        if needs_spark := _needs_spark(checked):
            return _SPARK, needs_spark, None
        try:
            scans = resolve_scans(checked.statement, tables, checked.request.as_of)
        except NotSupportedError as exc:
            return _SPARK, exc.message, None
        size = sum(scan.total_bytes or 0 for scan in scans.values())
        if size > self._largest_scan:
            return _SPARK, f"the tables are {_mb(size)}, more than query.largest_scan allows DuckDB", None
        try:
            translation = translate(checked.statement, scans, checked.request.parameters)
        except NotTranslatedError as exc:
            return _SPARK, f"DuckDB is not shown to answer {exc} as Spark does", None
        return _DUCKDB, f"a read of {_mb(size)}, which fits in memory", translation


@dataclass(frozen=True)
class CheckedStatement:
    """A statement that was parsed and allowed. Rights are checked on it, and it is what runs."""

    request: QueryRequest
    engine: str
    """The requested engine, or `auto`."""
    statement: Statement
    views: tuple[TableName, ...] = ()
    """The names in it that are views, which read other tables."""
    lake_only: bool = True
    """The engine reads no tables outside the lake."""

    @property
    def kind(self) -> str:
        """`read`, `write`, `drop`, `session` or `other` (describes something)."""
        return self.statement.kind

    @property
    def tables(self) -> tuple[TableName, ...]:
        """The tables and views that it names. Statements that only Spark parses, such as CALL, name none."""
        return tuple(sorted({use.name for use in self.statement.uses}))


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


def _own_dialect(request: QueryRequest, engine: str) -> str:
    """The dialect that a request asks for, if it is not that of the engine."""
    if request.dialect in ("", "spark"):
        return ""
    if request.dialect != _DUCKDB:
        raise UnknownChoiceError("dialect", request.dialect, ("spark", _DUCKDB))
    if engine not in (AUTO, _DUCKDB):
        raise NotSupportedError(f"{engine} does not run DuckDB's SQL.", "Omit --engine or --dialect.")
    return _DUCKDB


def _not_shown(engine: str, what: str) -> NotSupportedError:
    return NotSupportedError(
        f"{engine} is not shown to answer {what} as Spark does.",
        "Use --engine auto or --engine spark; --dialect duckdb takes DuckDB's own SQL.",
    )


def _check_written_tables(checked: CheckedStatement, tables: Tables) -> None:
    """Raise if a change of rows is one of a view, or names a table that there is not, as a read does."""
    statement = checked.statement
    if statement.kind != "write" or not (effects_of(statement.tree) or statement.truncates):
        return
    for use in statement.uses:
        if use.is_target and use.name in checked.views:  # Spark would delete the rows of the table below it
            raise NotSupportedError(f"{use.name} is a view.", "Change the rows of the table that it reads.")
    for name in {use.name for use in statement.uses} - set(checked.views):
        tables.format_of(name)


def _needs_spark(checked: CheckedStatement) -> str:
    """Why only Spark can run a statement, or an empty string."""
    if checked.kind == "write":
        return "it writes"
    if checked.kind in {"session", "other"}:
        return "it is a statement of Spark's own"
    if checked.views:
        return "it reads a view"
    if any(use.metadata_table for use in checked.statement.uses):
        return "it reads a metadata table"
    return ""


def _mb(size: int) -> str:
    return f"{size / 1024 / 1024:.1f} MB"


def check_branch(checked: CheckedStatement, tables: Tables) -> None:
    """Raise if a statement is not possible on the branch; the hint names the alternative."""
    if tables.branch != MAIN:
        _reject_views_on_branch(checked, tables.branch)
    # The rows of a read may be written somewhere.
    if checked.request.write is not None or checked.kind in ("write", "drop"):
        tables.check_writable()


def _reject_views_on_branch(checked: CheckedStatement, branch: str) -> None:
    """A view stores the catalog name of its tables, so it reads main from every branch."""
    tree = checked.statement.tree
    creates = checked.kind == "write" and str(getattr(tree, "args", {}).get("kind")).upper() == "VIEW"
    if creates or checked.views:
        what = str(checked.views[0]) if checked.views else "A view"
        raise NotSupportedError(
            f"{what} would read main's tables instead of those of {branch}.",
            "On a branch, write out the view's query; create the view on main after the merge.",
        )
