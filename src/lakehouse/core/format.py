"""The interface of a table format (Iceberg, Hudi).

A format describes its tables in plain data (`Scan`, `Snapshot`, `TableInfo`), so that no engine needs to know a format.
Callers ask for its capabilities, never for its class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from lakehouse.core.names import TableName
from lakehouse.core.tables import Scan, SchemaCopy, Snapshot, TableInfo


@dataclass(frozen=True)
class FormatCan:
    """The abilities of a format. Callers ask `format.can.branch`, never for the class."""

    branch: bool
    upsert: bool
    time_travel: bool
    partition_evolution: bool
    sync: bool = False
    """Its tables stand in a metastore, which whoever writes a new schema has to tell of it."""


class TableFormat(Protocol):
    """A table format: where its tables are, what they hold, how they change."""

    name: str
    can: FormatCan

    @property
    def write_settings(self) -> Mapping[str, str]:
        """What a Spark session is told before it changes a table."""

    def on(self, branch: str) -> TableFormat:
        """The same format's tables on a branch; a format without branches has only one state to show."""

    def frozen(self, tables: Sequence[TableName]) -> TableFormat:
        """The same format, in which these tables stay what they are now, all at the same moment."""

    def tables(self) -> Sequence[TableName]:
        """Every table of this format in the lake."""

    def has(self, table: TableName) -> bool:
        """Whether the table is there and of this format."""

    def describe(self, table: TableName) -> TableInfo:
        """Schema, partitioning, key and the newest snapshot."""

    def history(self, table: TableName) -> Sequence[Snapshot]:
        """Every snapshot that can be told of, oldest first."""

    def resolve(self, table: TableName, when: str, now: datetime) -> str:
        """The id of the snapshot that a WHEN means."""

    def scan(self, table: TableName, snapshot: str = "") -> Scan:
        """How to read the table, now or at a snapshot."""

    def spark_name(self, table: TableName) -> str:
        """What the table is called in Spark SQL where it is changed or described."""

    def spark_rows(self, table: TableName, snapshot: str = "") -> str:
        """What stands for the table's rows, now or at a snapshot, in Spark SQL: a name or a query in parentheses."""

    def present(self, table: TableName) -> str:
        """The newest snapshot, if naming it gives what the table is now: how Spark reads several at one moment."""

    def spark_setup(self, table: TableName) -> Sequence[str]:
        """Statements that a Spark session must have run before it can use the table; none if it just knows it."""

    def spark_copy(self, table: TableName) -> SchemaCopy | None:
        """What Spark's own catalog must hold of the table; None where it asks the lake's catalog every time."""

    def version(self, table: TableName) -> str:
        """Changes whenever `spark_setup` has to run again."""

    def rollback_sql(self, table: TableName, snapshot: str) -> str:
        """The Spark statement that makes the table what it was at a snapshot."""

    def place_for_new(self, table: TableName) -> str:
        """Where a new table has to be told to go; nothing where its usual place is free, or none of our business."""

    def drop(self, table: TableName) -> None:
        """Take the table out of the lake so that `undrop` can bring it back."""

    def undrop(self, table: TableName) -> bool:
        """Bring back the table that was dropped last under that name; False if there is none."""

    def dropped(self) -> Sequence[TableName]:
        """What `undrop` could bring back."""
