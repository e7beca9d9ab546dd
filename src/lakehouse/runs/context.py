"""All that the tables of one run share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from lakehouse.core.format import TableFormat
from lakehouse.core.names import TableName
from lakehouse.pipelines.model import Pipeline, Reading, Table
from lakehouse.pipelines.partitions import with_neighbours
from lakehouse.quality.model import Outcome

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

#: More partitions than that are read as the range they span: Spark plans a list of thousands for minutes.
_LONGEST_LIST = 400


@dataclass
class RunContext:
    """A run on its way: its session, its branch's tables, and what has come of the rules so far."""

    pipeline: Pipeline
    run: str
    author: str
    message: str
    asked: tuple[str, ...]
    """Partitions that were asked for by name."""
    spark: SparkSession
    iceberg: TableFormat
    """Iceberg's tables as the run's branch has them."""
    rows_of: Callable[[str], DataFrame]
    """Any table of the lake, as the run's branch has it."""
    reading: Callable[[str, str], Reading]
    """A source's view of the world, for a partition and a cursor."""
    stamp: Callable[[TableName, dict[str, str], str | None], None]
    """Write notes into the newest snapshot of a table; the pointer that the table had before says which one that is."""
    pointer: Callable[[TableName], str | None]
    now: datetime
    say: Callable[[str], None]
    outcomes: list[Outcome] = field(default_factory=list)

    def give_up(self) -> None:
        """Let Spark drop what it is doing for us: a session of Spark Connect has its own word for that."""
        try:
            self.spark.sparkContext.cancelAllJobs()
        except Exception:  # noqa: BLE001 - each kind of session refuses the other's word in a way of its own
            self.spark.interruptAll()

    def table(self, name: str) -> Table | None:
        """A table that the pipeline makes from others; None for any other."""
        found = next((table for table in self.pipeline.tables if table.name == name), None)
        return found if isinstance(found, Table) else None

    def rows_in(self, name: str, slices: Sequence[str] | None, lookback: int = 0) -> DataFrame:
        """A table's rows in some partitions and those before them; all rows if it has none, or is another pipeline's."""
        rows, table, partitions = self.rows_of(name), self.table(name), self.pipeline.partitions
        if slices is None or table is None or partitions is None:
            return rows
        wanted = with_neighbours(partitions, slices, before=lookback)
        return rows.where(self.within(self.pipeline.slice_of(table), wanted))

    def within(self, column: str, slices: Sequence[str]) -> Column:
        """The condition that a row is in one of some partitions."""
        from pyspark.sql import functions as F

        partitions = self.pipeline.partitions
        assert partitions is not None
        kind = partitions.sql_type()
        if len(slices) > _LONGEST_LIST:
            return F.col(column).between(F.lit(min(slices)).cast(kind), F.lit(max(slices)).cast(kind))
        # Equal to a literal, not to a list of strings: Iceberg's overwrite by condition understands only plain ones.
        return F.col(column).isin([_typed(each, kind) for each in slices])


def _typed(key: str, kind: str) -> Any:
    return date.fromisoformat(key) if kind == "date" else key
