"""A statement on Spark: its tables called by the names that Spark knows them under, Hudi's made known first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lakehouse.core.errors import NotSupportedError, QueryRejectedError, TableExistsError, UnknownChoiceError
from lakehouse.core.names import TableName
from lakehouse.core.ports import Request, TableFormat
from lakehouse.core.result import Result
from lakehouse.engines.spark.session import LocalSession
from lakehouse.serve.drop import drop_softly
from lakehouse.serve.sql import Statement, TableUse, parse
from lakehouse.serve.sql.render import for_spark, pointed_back
from lakehouse.serve.tables import Tables


class SparkQueries:
    """Runs statements in a session of this process."""

    def __init__(
        self,
        tables: Tables,
        session: LocalSession,
        ensure_namespace: Callable[[str], None],
        check_room: Callable[[], None],
    ) -> None:
        """
        Args:
            ensure_namespace: makes the namespace of a table that is about to be created.
            check_room: raises if there is no room left to write.
        """
        self._tables, self.session = tables, session
        self._ensure_namespace, self._check_room = ensure_namespace, check_room
        self._known: dict[TableName, str] = {}

    def query(self, request: Request, reason: str) -> Result:
        statement = parse(request.sql)
        if statement.kind == "drop":
            return drop_softly(statement, self._tables)
        if statement.kind == "write":
            self._check_room()
        self._refuse_renaming_folders(statement)
        self._prepare_new_table(statement)
        names = {use.start: self._spark_name(use, statement, request.as_of) for use in statement.uses}
        sql = for_spark(statement, names)
        setup, versions = self._setup(statement)
        if statement.kind != "read":
            # A limit is for reading: the answers of commands are short, and Spark runs a limited one twice.
            request = replace(request, limit=None)
        try:
            result = self.session.run(sql, request, reason, setup, keeps_state=statement.kind == "session")
        except QueryRejectedError as exc:
            raise pointed_back(exc, statement) from exc
        self._known.update(versions)
        if request.explain and statement.kind == "read":
            result.explain = replace(result.explain, plan=self.session.plan(sql, setup))
        return result

    def _refuse_renaming_folders(self, statement: Statement) -> None:
        if statement.renames and self._tables.format_of(statement.uses[0].name).name == "hudi":
            raise NotSupportedError(
                f"{statement.uses[0].name} is a Hudi table, whose name is its folder.",
                "Copy it: create table NEW using hudi … as select * from OLD, then lake drop OLD",
            )

    def _prepare_new_table(self, statement: Statement) -> None:
        """One name, one table: an Iceberg and a Hudi table may not share one, though their catalogs would let them.
        The namespace of a new table is made with it."""
        for use in statement.uses:
            if use.is_target and statement.creates:
                found = self._tables.find(use.name)
                if found is not None and found.name != statement.creates:
                    raise TableExistsError(
                        f"{use.name} is already a table, in {found.name}.", f"lake describe {use.name}"
                    )
                if statement.creates not in self._tables.formats:
                    raise UnknownChoiceError("USING", statement.creates, self._tables.formats)
                self._ensure_namespace(use.name.namespace)

    def _format(self, use: TableUse, statement: Statement) -> TableFormat | None:
        if use.is_target and statement.creates in self._tables.formats:
            return self._tables.formats[statement.creates]
        return self._tables.find(use.name)

    def _spark_name(self, use: TableUse, statement: Statement, as_of: str) -> str:
        table_format = self._format(use, statement)
        if table_format is None:
            # A view, a table about to be created or dropped, or a mistake. Reads say which names are near.
            if statement.kind == "read" and not self._tables.is_view(use.name):
                self._tables.format_of(use.name)
            return f"`{use.name.namespace}`.`{use.name.table}`"
        if use.metadata_table:
            return f"{table_format.spark_name(use.name)}.{use.metadata_table}"
        if use.is_target or statement.kind == "other":
            return table_format.spark_name(use.name)
        rows = table_format.spark_rows(use.name, self._tables.snapshot_at(use.name, use.as_of or as_of))
        # Columns may be qualified with the table's own name, so what replaces the name keeps it.
        return rows if use.alias else f"{rows} AS `{use.name.table}`"

    def _setup(self, statement: Statement) -> tuple[list[str], dict[TableName, str]]:
        """Statements that make the session know the tables as they are now, and which state of them that is."""
        setup: list[str] = []
        versions: dict[TableName, str] = {}
        for use in statement.uses:
            table_format = self._format(use, statement)
            if table_format is None:
                continue
            versions[use.name] = version = table_format.version(use.name)
            if not version or self._known.get(use.name) != version:
                setup += table_format.spark_setup(use.name)
        return setup, versions
