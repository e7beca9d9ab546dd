"""Who writes rows to an Iceberg table: executors behind one interface, asked in turn.

DuckDB with PyIceberg (`native.py`) starts no JVM and writes the same file in a third of the CPU time; Spark (`spark.py`) can
make every change. A further executor implements `TableWriter` and is put into the list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Protocol

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import NeedsSparkError
from lakehouse.core.tables import Column


def needs_spark(what: str) -> NeedsSparkError:
    """The error of an executor that cannot make a change."""
    return NeedsSparkError(f"{what} needs Spark, and this write runs without it.", "Use POST /ingest or lake ingest.")


@dataclass(frozen=True)
class StagedRows:
    """A folder of Parquet files with rows for a table."""

    folder: Path
    provided: Sequence[str]
    """The columns that the files have; the other columns of the table become NULL."""
    computed: Mapping[str, str] = field(default_factory=dict)
    """SQL expressions, the same for every executor, of columns that the files do not have."""

    deleted: str = ""
    """A boolean column of the files, true for rows of which a merge only removes the key; empty if there is none."""

    def expression(self, column: Column, quoted: str) -> str:
        """SQL for the value of a column, given its quoted name."""
        return quoted if column.name in (*self.provided, self.deleted) else self.computed.get(column.name, "NULL")


@dataclass(frozen=True)
class PartitionKeys:
    """Partitions of a table by the values of one column: exactly these are replaced, whatever their number."""

    column: str
    type: str
    """The SQL type of the column."""
    keys: Sequence[str]


class TableWriter(Protocol):
    """Writes rows to one table of a branch; each call is one snapshot.

    Raises:
        NeedsSparkError: this executor cannot do it, and nothing was written.
    """

    def append(self, rows: StagedRows, columns: Sequence[Column]) -> None:
        """Add the rows, in the columns of the table."""

    def merge(self, rows: StagedRows, columns: Sequence[Column], key: Sequence[str]) -> None:
        """Add the rows that are not `deleted`, and remove those of the table that have the key of any."""

    def overwrite(self, rows: StagedRows, columns: Sequence[Column]) -> None:
        """Replace all rows of the table."""


def write_with(writers: Sequence[TableWriter], change: Callable[[TableWriter], None]) -> None:
    """Let the first executor that can make a change; NeedsSparkError of the last one if none can."""
    *others, last = writers
    for writer in others:
        try:
            change(writer)
        except NeedsSparkError:
            continue
        return
    change(last)
