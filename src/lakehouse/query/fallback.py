"""Run a query on DuckDB, and on Spark if DuckDB fails on what Spark answers: an overflow, a conversion, its memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from lakehouse.core.dataclass import dataclass
from lakehouse.core.engine import Engine, Query
from lakehouse.core.errors import NeedsSparkError
from lakehouse.core.result import Result, Row, Rows
from lakehouse.engines.duckdb import DuckDBRows

if TYPE_CHECKING:
    import pyarrow

T = TypeVar("T")


def with_fallback(duckdb: Engine, query: Query, on_spark: Callable[[str], Result]) -> Result:
    """The result of DuckDB, which becomes that of Spark if DuckDB fails before it has handed out a row.

    Args:
        on_spark: runs the same statement on Spark, for a reason.
    """
    try:
        result = duckdb.run(query)
    except NeedsSparkError as exc:
        return on_spark(exc.message)
    if isinstance(result.source, DuckDBRows):
        result.source = FallbackRows(result, result.source, on_spark)
    return result


@dataclass
class FallbackRows:
    """The rows of DuckDB, or of Spark once DuckDB has failed."""

    result: Result
    rows: Rows
    on_spark: Callable[[str], Result]
    is_on_spark: bool = False

    def fetch(self) -> list[Row]:
        return self._read(lambda rows: rows.fetch())

    def arrow(self) -> pyarrow.Table:
        return self._read(lambda rows: rows.arrow())

    def _read(self, read: Callable[[Rows], T]) -> T:
        try:
            return read(self.rows)
        except NeedsSparkError as exc:
            if self.is_on_spark:
                raise
            spark = self.on_spark(exc.message)
        self.rows, self.is_on_spark = spark.source, True
        self.result.explain = spark.explain
        return read(self.rows)
