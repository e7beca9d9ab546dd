"""The table operations of a lake: list, describe, time travel, compare, roll back, drop."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from lakehouse.core.engine import Engine
from lakehouse.core.format import spark_tables
from lakehouse.core.names import MAIN, TableName
from lakehouse.core.refs import Commit
from lakehouse.core.requests import DiffRequest, QueryRequest
from lakehouse.core.result import Result
from lakehouse.core.tables import Snapshot, TableInfo
from lakehouse.lake.components import Components
from lakehouse.lake.table import History, Table, describe_or_problem
from lakehouse.tables.directory import Tables

if TYPE_CHECKING:
    from lakehouse.query.route import StatementFacts
    from lakehouse.tables.diff import Diff
    from lakehouse.tables.report import TableReport

#: Statements with one of these names may be calls of maintenance procedures.
_MAINTENANCE = re.compile(r"\b(?:rewrite_data_files|rewrite_manifests|expire_snapshots)\b", re.IGNORECASE)


class TableMethods:
    """What a lake can do with tables, on its branch. `Lake` adds files, pipelines and branches."""

    def __init__(self, components: Components, branch: str = MAIN) -> None:
        self._components = components
        self._branch = branch

    def _tables(self, branch: str = "") -> Tables:
        return self._components.tables.on_existing(branch or self._branch)

    # ---- SQL ----------------------------------------------------------------------------------------------------

    def sql(  # noqa: PLR0913 - one keyword per field of QueryRequest
        self,
        query: str,
        *,
        engine: str | None = None,
        as_of: str = "",
        limit: int | None = None,
        explain: bool = False,
        branch: str = "",
        parameters: Mapping[str, str | int | float | bool | None] | None = None,
    ) -> Result:
        """Run one statement of Spark SQL.

        Args:
            query: the statement. Reads run on DuckDB in this process where that is faster, everything else on Spark.
            engine: `auto`, `duckdb`, `spark`, `trino` or an installed engine (default: the setting query.engine).
            as_of: read every table as of this WHEN, unless the statement has its own AS OF.
            limit: maximum number of rows (default: all).
            explain: also report how the statement ran, in `result.explain`.
            branch: the branch to use (default: this lake's).
            parameters: values of the markers `:name` in the statement; they are bound, never written into its text.
        """
        request = QueryRequest(query, as_of, limit, explain, self._components.arrow, branch, parameters or {})
        return self.query(request, engine)

    def query(self, request: QueryRequest, engine: str | None = None) -> Result:
        """Run a typed request; `sql` builds one. A call of a maintenance procedure on main does what `maintain` does."""
        branch = self._tables(request.branch).branch
        if branch == MAIN and _MAINTENANCE.search(request.sql):
            done = self._maintenance_result(request.sql)
            if done is not None:
                return done
        request = replace(request, branch="" if branch == MAIN else branch)
        return self._components.queries.run(request, engine or self._components.default_engine)

    def inspect(self, request: QueryRequest, engine: str | None = None) -> StatementFacts:
        """What a statement does and which tables it names, without running it; raises what the guard refuses."""
        branch = self._tables(request.branch).branch
        request = replace(request, branch="" if branch == MAIN else branch)
        return self._components.queries.inspect(request, engine or self._components.default_engine)

    def reading_with(self, engine: Engine) -> Self:
        """The same lake, with another engine in the place of DuckDB."""
        components = replace(self._components, queries=self._components.queries.reading_with(engine))
        return type(self)(components, self._branch)

    def _maintenance_result(self, sql: str) -> Result | None:
        """Run a call of a maintenance procedure; None if the statement is another one."""
        return None

    # ---- tables -------------------------------------------------------------------------------------------------

    def tables(self, names: Sequence[str] | None = None) -> list[TableInfo]:
        """Every table, or those with these names; one that cannot be read has the reason in `problem`."""
        wanted = None if names is None else set(names)
        found = [(name, each) for name, each in self._tables().all() if wanted is None or str(name) in wanted]
        return [describe_or_problem(name, table_format) for name, table_format in found]

    def table_names(self) -> list[str]:
        """The names of all tables, sorted, without reading any of them."""
        return list(self.table_formats())

    def table_formats(self) -> dict[str, str]:
        """The format of every table by its name, sorted, without reading any of them."""
        return {str(name): table_format.name for name, table_format in self._tables().all()}

    def table(self, name: str) -> Table:
        """A handle on one table; NoSuchTableError suggests similar names."""
        parsed = TableName.parse(name)
        self._tables().format_of(parsed)
        return Table(self, parsed)

    def describe(self, name: str) -> TableInfo:
        """Schema, partitioning, key and current snapshot of a table."""
        return self._tables().describe(TableName.parse(name))

    # ---- time ---------------------------------------------------------------------------------------------------

    def history(self, name: str) -> History:
        """Every snapshot of a table, oldest first."""
        parsed = TableName.parse(name)
        return History(self._tables().format_of(parsed).history(parsed))

    def travel(self, name: str, when: str, limit: int | None = None) -> Result:
        """The rows of a table as of a WHEN."""
        parsed = TableName.parse(name)
        return self.sql(f"SELECT * FROM {parsed}", as_of=when, limit=limit)

    def diff(self, name: str, start: str, end: str = "", key: Sequence[str] = (), limit: int = 1000) -> Diff:
        """The rows and columns that changed between two WHENs (`end` defaults to now)."""
        return self.compare(DiffRequest(TableName.parse(name), start, end, key, limit))

    def compare(self, request: DiffRequest) -> Diff:
        """Run a typed request; `diff` builds one."""
        from lakehouse.tables.diff import diff_table

        return diff_table(self._tables(), self._components.duckdb, request)

    def report(self, name: str, start: str = "", end: str = "") -> TableReport:
        """How a table grew, snapshot by snapshot; `start` and `end` default to its first and last snapshot."""
        from lakehouse.tables.report import report_table

        return report_table(self._tables(), self._components.duckdb, TableName.parse(name), start, end)

    def rollback(self, name: str, when: str) -> Snapshot:
        """Restore a table to a WHEN. Its history stays, so a rollback can be rolled back."""
        parsed = TableName.parse(name)
        table_format = self._tables().format_of(parsed)
        snapshot = self._tables().snapshot_at(parsed, when)
        statement = spark_tables(table_format).rollback_sql(parsed, snapshot)
        catalog = self._components.refs().branches.catalog.on(self._branch)
        before = catalog.pointer(parsed)
        self.sql(statement, engine="spark")
        if statement.startswith("CALL"):  # an INSERT is logged by its engine
            catalog.record_statement(parsed, before, Commit("rollback", message=f"{name} to snapshot {snapshot}"))
        return next(each for each in table_format.history(parsed) if each.is_current)

    def drop(self, name: str) -> None:
        """Drop a table softly: its files stay until maintenance, so `undrop` can restore it."""
        self._tables().drop(TableName.parse(name))

    def undrop(self, name: str) -> TableInfo:
        """Restore the table that was dropped last under a name."""
        parsed = TableName.parse(name)
        return self._tables().undrop(parsed).describe(parsed)

    def dropped(self) -> list[str]:
        """The tables that `undrop` can restore."""
        return [str(name) for name in self._tables().dropped()]
