"""A statement on Spark: its tables called by the names that Spark knows them under, Hudi's made known first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from lakehouse.core.engine import EngineCapabilities, Query
from lakehouse.core.errors import NotSupportedError, QueryRejectedError, TableExistsError, UnknownChoiceError
from lakehouse.core.format import TableFormat
from lakehouse.core.names import TableName
from lakehouse.core.quoting import spark_text
from lakehouse.core.refs import Commit
from lakehouse.core.requests import QueryRequest, WriteTarget
from lakehouse.core.result import Result
from lakehouse.core.statement import Statement, TableUse
from lakehouse.engines.spark.session import LocalSession, PreparedStatement
from lakehouse.process.locks import locked
from lakehouse.query.guard import kept_on_branch, without_texts
from lakehouse.query.sql.render import for_spark, pointed_back
from lakehouse.query.tables import Tables


class Catalog(Protocol):
    """The part of a catalog that running statements needs."""

    @property
    def name(self) -> str: ...

    def on(self, branch: str) -> Catalog: ...
    def spark_conf(self) -> Mapping[str, str]: ...
    def ensure_namespace(self, namespace: str) -> None: ...


class StatementLog(Protocol):
    """Where statements are written down, by a catalog that does not see them itself."""

    def on(self, branch: str) -> StatementLog: ...
    def pointers(self, tables: Iterable[TableName]) -> Mapping[TableName, str | None]: ...
    def note(self, table: TableName, before: str | None, commit: Commit) -> bool: ...


class SparkEngine:
    """Runs statements in a Spark session of this process."""

    name = "spark"
    capabilities = EngineCapabilities(writes=True)

    def __init__(
        self,
        tables: Tables,
        session: LocalSession,
        catalog: Catalog,
        check_room: Callable[[], None],
        log: StatementLog | None = None,
    ) -> None:
        """
        Args:
            check_room: raises if there is no room left to write.
            log: where statements that change tables are written down.
        """
        self._log = log
        self._tables, self.session, self._catalog, self._check_room = tables, session, catalog, check_room
        self._known: dict[TableName, str] = {}

    def prepare(self) -> None:
        """The session of this process starts with its first statement."""

    def run(self, query: Query) -> Result:
        statement, request = query.statement, query.request
        tables = self._tables.on(request.branch)
        if statement.kind == "write" or request.write:
            self._check_room()
        if statement.kind != "read" or request.write:
            # A limit is for reading: the answers of commands are short, and Spark runs a limited one twice.
            request = replace(request, limit=None)
        names = _Names(statement, tables.frozen(list({use.name for use in statement.uses})))
        names.refuse_renaming_folders()
        if names.check_new_table():
            catalog = self._catalog.on(request.branch) if request.branch else self._catalog
            catalog.ensure_namespace(names.target.namespace)
        versions = names.versions()
        prepared = self._prepared(request, statement, names, versions)
        before = self._changing(statement, request)
        try:
            with locked(Path(request.lock)) if request.lock else nullcontext():
                result = self.session.run(prepared, request, query.reason)
        except QueryRejectedError as exc:
            raise pointed_back(exc, statement) from exc
        self._known.update(versions)
        self._note(statement, request, before)
        if request.explain and statement.kind == "read":
            result.explain = replace(result.explain, plan=self.session.plan(prepared))
        return result

    def _changing(self, statement: Statement, request: QueryRequest) -> Mapping[TableName, str | None]:
        """Where the tables point that a statement may change, for the log; an ingest's own are logged as a whole."""
        targets = [use.name for use in statement.uses if use.is_target and statement.kind == "write"]
        if self._log is None or not targets or request.lock or statement.renames:
            return {}
        return self._log.on(request.branch).pointers(targets)

    def _note(self, statement: Statement, request: QueryRequest, before: Mapping[TableName, str | None]) -> None:
        for table, pointer in before.items():
            assert self._log is not None
            commit = Commit("sql", message=without_texts(statement.text))
            self._log.on(request.branch).note(table, pointer, commit)

    def _prepared(
        self, request: QueryRequest, statement: Statement, names: _Names, versions: Mapping[TableName, str]
    ) -> PreparedStatement:
        stale = [name for name, version in versions.items() if not version or self._known.get(name) != version]
        setup = [line for name in stale for line in names.format_of(name).spark_setup(name)]
        copies = [names.format_of(name).spark_copy(name) for name in stale]
        setup += [_view(name, folder) for name, folder in request.files.items()]
        settings = {**names.write_settings(request.write), **request.settings}
        if request.branch:
            settings |= self._catalog.on(request.branch).spark_conf()
            setup.append(f"USE {request.branch}")
        return PreparedStatement(
            sql=kept_on_branch(statement, for_spark(statement, names.in_spark(request.as_of)), request.branch),
            setup=setup,
            settings=settings,
            copies=[copy for copy in copies if copy is not None],
            changes_session=statement.kind == "session" or bool(settings or request.files),
        )


@dataclass(frozen=True)
class _Names:
    """The tables of one statement."""

    statement: Statement
    tables: Tables

    @property
    def target(self) -> TableName:
        return next(use.name for use in self.statement.uses if use.is_target)

    def refuse_renaming_folders(self) -> None:
        statement = self.statement
        if statement.renames and self.tables.format_of(statement.uses[0].name).name == "hudi":
            raise NotSupportedError(
                f"{statement.uses[0].name} is a Hudi table, whose name is its folder.",
                "Copy it: create table NEW using hudi … as select * from OLD, then lake drop OLD",
            )

    def check_new_table(self) -> bool:
        """Whether a table will be made. One name, one table: Iceberg's and Hudi's catalogs would let both have it."""
        creates = self.statement.creates
        if not creates:
            return False
        found = self.tables.find(self.target)
        if found is not None and found.name != creates:
            raise TableExistsError(
                f"{self.target} is already a table, in {found.name}.", f"lake describe {self.target}"
            )
        if creates not in self.tables.formats:
            raise UnknownChoiceError("USING", creates, self.tables.formats)
        return True

    def versions(self) -> dict[TableName, str]:
        """The state of each table, as far as a session may have to be told of it."""
        found = ((use.name, self._format(use)) for use in self.statement.uses)
        return {name: table_format.version(name) for name, table_format in found if table_format is not None}

    def format_of(self, name: TableName) -> TableFormat:
        use = next(use for use in self.statement.uses if use.name == name)
        found = self._format(use)
        assert found is not None
        return found

    def write_settings(self, write: WriteTarget | None) -> Mapping[str, str]:
        """What a session is told before it changes the statement's target."""
        targets = [self._format(use) for use in self.statement.uses if use.is_target and self.statement.kind != "read"]
        written = self.tables.formats[write.format] if write else next(iter(targets), None)
        return written.write_settings if written else {}

    def in_spark(self, as_of: str) -> dict[int, str]:
        """What stands for each table in Spark's SQL, by its place in the text."""
        return {use.start: self._in_spark(use, as_of) for use in self.statement.uses}

    def _format(self, use: TableUse) -> TableFormat | None:
        if use.is_target and self.statement.creates in self.tables.formats:
            return self.tables.formats[self.statement.creates]
        return self.tables.find(use.name)

    def _in_spark(self, use: TableUse, as_of: str) -> str:
        table_format = self._format(use)
        if table_format is None:
            # A view, a table about to be created, or a mistake. Reads say which names are near.
            if self.statement.kind == "read" and not self.tables.is_view(use.name):
                self.tables.format_of(use.name)
            return f"`{use.name.namespace}`.`{use.name.table}`"
        if use.metadata_table:
            return f"{table_format.spark_name(use.name)}.{use.metadata_table}"
        if use.is_target or self.statement.kind == "other":
            return table_format.spark_name(use.name)
        when = use.as_of or as_of
        snapshot = self.tables.snapshot_at(use.name, when) if when else self._pinned(use, table_format)
        rows = table_format.spark_rows(use.name, snapshot)
        # Columns may be qualified with the table's own name, so what replaces the name keeps it.
        return rows if use.alias else f"{rows} AS `{use.name.table}`"

    def _pinned(self, use: TableUse, table_format: TableFormat) -> str:
        """Of several tables that are read, the snapshots of one moment: Spark would look at each when it comes to it."""
        several = len({each.name for each in self.statement.uses}) > 1
        return table_format.present(use.name) if several and self.statement.kind == "read" else ""


def _view(name: str, folder: str) -> str:
    """The Parquet files of a folder as a view of the session."""
    return f"CREATE OR REPLACE TEMPORARY VIEW `{name}` USING parquet OPTIONS (path {spark_text(folder)})"
