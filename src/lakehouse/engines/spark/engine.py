"""Spark as an engine: table names become Spark's own, and Hudi tables are registered first."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from lakehouse.core.dataclass import dataclass
from lakehouse.core.engine import EngineCapabilities, EngineContext, Query
from lakehouse.core.errors import NotSupportedError, QueryRejectedError, TableExistsError, UnknownChoiceError
from lakehouse.core.format import SparkTables, TableDirectory, TableFormat, spark_tables
from lakehouse.core.names import CATALOG, TableName
from lakehouse.core.quoting import spark_text
from lakehouse.core.requests import QueryRequest, WriteTarget
from lakehouse.core.result import Result
from lakehouse.core.statement import Statement, TableUse
from lakehouse.engines.spark.session import LocalSession, PreparedStatement
from lakehouse.process.files import locked, statement_lock

_MAIN = re.compile(rf"(?<![\w.`])`?{CATALOG}`?\s*\.", re.IGNORECASE)


class SparkEngine:
    """Runs statements in a Spark session of this process."""

    name = "spark"

    def __init__(
        self,
        context: EngineContext,
        session: LocalSession,
        check_room: Callable[[], None],
        ingest_folder: Path,
        marks_commits: bool,
    ) -> None:
        """
        Args:
            check_room: raises if the disk is full.
            ingest_folder: where ingests stage files; a request may name no file outside it.
            marks_commits: the JVM is within reach, as that of Spark Connect is not.
        """
        self.capabilities = EngineCapabilities(writes=True, lake_only=True, marks_commits=marks_commits)
        self._context, self._catalog, self.session = context, context.catalog, session
        self._check_room, self._ingest_folder = check_room, ingest_folder
        self._known: dict[TableName, str] = {}

    def prepare(self) -> None:
        """The session of this process starts with its first statement."""

    def run(self, query: Query) -> Result:
        statement, request = query.statement, query.request
        tables = self._context.tables.on(request.branch)
        self._check_client(statement, tables, request.branch)
        if statement.kind == "write" or request.write:
            self._check_room()
        if statement.kind != "read" or request.write:
            # Commands return few rows, and Spark would run a limited command twice.
            request = replace(request, limit=None, stream=False)
        pinned = tables.pinned(list({use.name for use in statement.uses}))
        names = _StatementTables(statement, pinned, query.views)
        names.reject_hudi_changes()
        if names.check_new_table():
            catalog = self._catalog.on(request.branch) if request.branch else self._catalog
            catalog.ensure_namespace(names.target.namespace)
        versions = names.versions()
        prepared = self._prepare(request, statement, names, versions)
        try:
            with self._write_lock(request, names), self._context.log(statement, request):
                result = self.session.run(prepared, request, query.reason)
        except QueryRejectedError as exc:
            raise self._context.locate_error(exc, statement) from exc
        self._known.update(versions)
        if request.explain and statement.kind == "read":
            result.explain = replace(result.explain, plan=self.session.plan(prepared))
        return result

    def _write_lock(self, request: QueryRequest, names: _StatementTables) -> AbstractContextManager[None]:
        """Hold the lock of the table that a statement changes, where writers must take turns.

        An ingest takes it for every format: the next one waits for a statement whose own ingest was killed.
        """
        target = request.ingest_into or request.maintains or names.serial_target()
        if not target:
            return nullcontext()
        self._ingest_folder.mkdir(parents=True, exist_ok=True)
        return locked(statement_lock(self._ingest_folder, TableName.parse(target)))

    def _staged(self, folder: str) -> str:
        if not Path(folder).resolve().is_relative_to(self._ingest_folder.resolve()):
            raise NotSupportedError(f"{folder} is not a folder of staged files.", "Bring files in with lake ingest.")
        return folder

    def _check_client(self, statement: Statement, tables: TableDirectory, branch: str) -> None:
        """Raise if Spark has no client for the catalog of the tables; Hudi tables need none."""
        formats = [tables.find(use.name) for use in statement.uses]
        in_catalog = any(table_format is None or table_format.capabilities.branch for table_format in formats)
        if in_catalog and not self._catalog.on(branch).spark_conf():
            raise NotSupportedError(
                "Spark has no client for the catalog of this lake, only for its branches.",
                "Read with the engine duckdb. Write by lake ingest and lake run, or on a branch that you merge.",
            )

    def _prepare(
        self, request: QueryRequest, statement: Statement, names: _StatementTables, versions: Mapping[TableName, str]
    ) -> PreparedStatement:
        stale = [name for name, version in versions.items() if not version or self._known.get(name) != version]
        setup = [line for name in stale for line in names.in_session(name).setup(name)]
        copies = [names.in_session(name).schema_copy(name) for name in stale]
        setup += [_view(name, self._staged(folder)) for name, folder in request.files.items()]
        settings = {**names.write_settings(request.write), **request.settings}
        if request.maintains:
            maintained = TableName.parse(request.maintains)
            in_spark = spark_tables(names.tables.format_of(maintained))
            setup += in_spark.setup(maintained)
            settings |= in_spark.write_settings
        if request.branch:
            settings |= self._catalog.on(request.branch).spark_conf()
            setup.append(f"USE {request.branch}")
        sql = self._context.render(statement, names.replacements(request.as_of))
        return PreparedStatement(
            sql=_redirect_to_branch(statement, sql, request.branch),
            setup=setup,
            settings=settings,
            copies=[copy for copy in copies if copy is not None],
            changes_session=statement.kind == "session" or bool(settings or request.files),
        )


@dataclass(frozen=True)
class _StatementTables:
    """The tables of one statement, and their names in Spark."""

    statement: Statement
    tables: TableDirectory
    views: Sequence[TableName]
    """The names that may be read as views."""

    @property
    def target(self) -> TableName:
        return next(use.name for use in self.statement.uses if use.is_target)

    def reject_hudi_changes(self) -> None:
        """Refuse statements that lose the history of a Hudi table."""
        statement = self.statement
        if statement.truncates and self.tables.format_of(statement.uses[0].name).name == "hudi":
            raise NotSupportedError(
                f"TRUNCATE would delete all files of the Hudi table {statement.uses[0].name}, its history included.",
                f"Keep the history: delete from {statement.uses[0].name}",
            )
        if statement.renames and self.tables.format_of(statement.uses[0].name).name == "hudi":
            raise NotSupportedError(
                f"{statement.uses[0].name} is a Hudi table, which cannot be renamed: its name is its folder.",
                "Copy it: create table NEW using hudi … as select * from OLD, then lake drop OLD",
            )

    def check_new_table(self) -> bool:
        """Whether the statement creates a table. Rejects a name that a table of another format has."""
        creates = self.statement.creates
        if not creates:
            return False
        existing = self.tables.find(self.target)
        if existing is not None and existing.name != creates:
            raise TableExistsError(
                f"{self.target} exists already, as a table of {existing.name}.", f"lake describe {self.target}"
            )
        if creates not in self.tables.formats:
            raise UnknownChoiceError("USING", creates, self.tables.formats)
        return True

    def versions(self) -> dict[TableName, str]:
        """The version of each table, by which a session knows whether to register it again."""
        formats = ((use.name, self._format(use)) for use in self.statement.uses)
        return {
            name: spark_tables(table_format).setup_version(name)
            for name, table_format in formats
            if table_format is not None
        }

    def in_session(self, name: TableName) -> SparkTables:
        use = next(use for use in self.statement.uses if use.name == name)
        table_format = self._format(use)
        assert table_format is not None
        return spark_tables(table_format)

    def write_settings(self, write: WriteTarget | None) -> Mapping[str, str]:
        """Session settings for changing the statement's target."""
        targets = [self._format(use) for use in self.statement.uses if use.is_target and self.statement.kind != "read"]
        written = self.tables.formats[write.format] if write else next(iter(targets), None)
        return spark_tables(written).write_settings if written else {}

    def serial_target(self) -> str:
        """The table that the statement changes, if writers of its format must take turns; else an empty string."""
        changed = [use for use in self.statement.uses if use.is_target and self.statement.kind == "write"]
        formats = ((use.name, self._format(use)) for use in changed)
        return next(
            (str(name) for name, table_format in formats if table_format and table_format.capabilities.serial_writes),
            "",
        )

    def replacements(self, as_of: str) -> dict[int, str]:
        """What replaces each table name in Spark SQL, by its position in the text."""
        return {use.start: self._replacement(use, as_of) for use in self.statement.uses}

    def _format(self, use: TableUse) -> TableFormat | None:
        if use.is_target and self.statement.creates in self.tables.formats:
            return self.tables.formats[self.statement.creates]
        return self.tables.find(use.name)

    def _replacement(self, use: TableUse, as_of: str) -> str:
        table_format = self._format(use)
        if self.statement.renames and use is not self.statement.uses[0]:
            return f"`{use.name.namespace}`.`{use.name.table}`"  # Spark takes no catalog in a new name
        if table_format is None:
            # A view, a new table, or a mistake. A table that was replaced by a view since rights were checked is no table.
            is_view = self.tables.is_view(use.name)
            if use.name not in self.views if is_view else self.statement.kind == "read":
                self.tables.format_of(use.name)  # raises, with similar names
            return f"`{use.name.namespace}`.`{use.name.table}`"
        in_spark = spark_tables(table_format)
        if use.metadata_table:
            return f"{in_spark.name(use.name)}.{use.metadata_table}"
        if use.is_target or self.statement.kind == "other":
            return in_spark.name(use.name)
        when = use.as_of or as_of
        snapshot = self.tables.snapshot_at(use.name, when) if when else self._pinned_snapshot(use, in_spark)
        rows = in_spark.rows(use.name, snapshot)
        # Columns may be qualified with the table's name, so the replacement gets it as an alias.
        return rows if use.alias else f"{rows} AS `{use.name.table}`"

    def _pinned_snapshot(self, use: TableUse, in_spark: SparkTables) -> str:
        """Pin several tables to one moment, because Spark resolves each at a different time."""
        several = len({use.name for use in self.statement.uses}) > 1
        return in_spark.current_snapshot(use.name) if several and self.statement.kind == "read" else ""


def _view(name: str, folder: str) -> str:
    """A temporary view over the Parquet files of a folder."""
    return f"CREATE OR REPLACE TEMPORARY VIEW `{name}` USING parquet OPTIONS (path {spark_text(folder)})"


def _redirect_to_branch(statement: Statement, sql: str, branch: str) -> str:
    """Replace main's catalog name by the branch's in a statement whose table names we do not parse."""
    if not branch or statement.uses or statement.kind == "read":
        return sql
    return _MAIN.sub(f"{branch}.", sql)
