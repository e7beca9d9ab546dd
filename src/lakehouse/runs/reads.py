"""Small reads of a run, by DuckDB in this process: a Spark job for a count takes half a second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import NeedsSparkError
from lakehouse.core.names import TableName
from lakehouse.core.quoting import name as quoted
from lakehouse.core.quoting import spark_text, text
from lakehouse.query.translate.statement import translate_over
from lakehouse.query.translate.types import NotTranslatedError
from lakehouse.tables.directory import Tables

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from lakehouse.core.tables import Scan
    from lakehouse.engines.duckdb import DuckDB

#: More rows than this are left to Spark, which may have a cluster.
MAX_ROWS = 50_000_000


@dataclass(frozen=True)
class Part:
    """The rows of a table in some partitions; all rows if `keys` is None."""

    table: str
    column: str = ""
    kind: str = ""
    """The SQL type of the partition column."""
    keys: Sequence[str] | None = None

    def select(self, view: str) -> str:
        """A query of these rows from a view of the table."""
        if self.keys is None:
            return view
        return f"(SELECT * FROM {view} WHERE {quoted(self.column)} IN ({self._literals(text)}))"

    def select_in_spark(self, view: str) -> str:
        """The same query in Spark's SQL."""
        if self.keys is None:
            return view
        return f"(SELECT * FROM {view} WHERE `{self.column}` IN ({self._literals(spark_text)}))"

    def _literals(self, quote: Callable[[str], str]) -> str:
        return ", ".join(f"CAST({quote(key)} AS {self.kind})" for key in self.keys or ()) or "NULL"


@dataclass(frozen=True)
class BranchReads:
    """Reads the tables of a run's branch without Spark."""

    tables: Tables
    duckdb: DuckDB
    max_rows: float = MAX_ROWS
    """Larger tables are left to Spark."""

    def query(self, sql: str, **parts: Part) -> list[dict[str, Any]]:
        """Run a query of DuckDB in which names in braces stand for parts of tables."""
        return self._query(sql, parts)

    def _query(self, sql: str, parts: Mapping[str, Part], snapshot: str = "") -> list[dict[str, Any]]:
        views: dict[TableName | str, Scan] = {}
        names = {}
        for alias, part in parts.items():
            table = TableName.parse(part.table)
            views[alias] = self.tables.format_of(table).scan(table, snapshot)
            names[alias] = part.select(quoted(alias))
        return self.duckdb.query(sql.format(**names), views, "a small read of a run").dicts()

    def answer(self, sql: str, **parts: Part) -> list[dict[str, Any]]:
        """Answer a query in Spark's SQL in which names in braces stand for parts of tables.

        Raises:
            NeedsSparkError: DuckDB is not shown to answer it as Spark does.
        """
        tables = {alias: TableName.parse(part.table) for alias, part in parts.items()}
        scans = {alias: self.tables.format_of(table).scan(table) for alias, table in tables.items()}
        names = {alias: part.select_in_spark(alias) for alias, part in parts.items()}
        try:
            translation = translate_over(sql.format(**names), scans)
        except NotTranslatedError as exc:
            raise only_by_spark(f"A check with {exc}", "Write the check in another way") from exc
        return self.duckdb.answer(translation, "a small read of a run").dicts()

    def count(self, part: Part) -> int:
        """The number of rows of a part."""
        return int(self.query("SELECT count(*) AS count FROM {part}", part=part)[0]["count"])

    def keys(self, part: Part) -> set[str] | None:
        """The partitions among these that the table has; None if that is to be asked of Spark."""
        if not self.can_read(part.table):
            return None
        column = quoted(part.column)
        return {str(row["key"]) for row in self.query(f"SELECT DISTINCT {column} AS key FROM {{part}}", part=part)}

    def rows_by_key(self, part: Part, snapshot: str = "") -> dict[str, int]:
        """The number of rows of each partition, now or at a snapshot."""
        sql = f"SELECT {quoted(part.column)} AS key, count(*) AS count FROM {{part}} GROUP BY 1"
        return {str(row["key"]): int(row["count"]) for row in self._query(sql, {"part": part}, snapshot)}

    def can_read(self, table: str) -> bool:
        """Whether a table is to be read without Spark."""
        name = TableName.parse(table)
        total = self.tables.format_of(name).scan(name).total_rows
        return self.is_installed and total is not None and total <= self.max_rows

    @property
    def is_installed(self) -> bool:
        return find_spec("duckdb") is not None


@dataclass(frozen=True)
class SmallCheckContext:
    """A CheckContext for portable checks: DuckDB answers their queries.

    Raises:
        NeedsSparkError: a check asks for DataFrames, or reads too many rows.
    """

    reads: BranchReads
    parts: Callable[[str], Part]
    """The part of a table that a check is to read."""
    name: str
    before: Mapping[str, Any]
    total: int | None
    now: datetime

    @property
    def rows(self) -> DataFrame:
        raise self._needs_spark()

    def table(self, name: str) -> DataFrame:
        raise self._needs_spark()

    def query(self, sql: str, **tables: str) -> list[dict[str, Any]]:
        named = {"rows": self.name, **tables}
        used = {alias: self.parts(name) for alias, name in named.items() if f"{{{alias}}}" in sql}
        # The partitions of an input are about as large as those that were built from it.
        if not all(part.keys is not None or self.reads.can_read(part.table) for part in used.values()):
            raise self._needs_spark()
        return self.reads.answer(sql, **used)

    def _needs_spark(self) -> NeedsSparkError:
        return only_by_spark(f"A check of {self.name}", "Write the check with context.query(…)")


def only_by_spark(what: str, hint: str) -> NeedsSparkError:
    """The error of a rule or check that a run without Spark cannot evaluate."""
    return NeedsSparkError(f"{what} can be evaluated only by Spark.", f"{hint}, or run without --light.")
