"""The interfaces of a table format (Iceberg, Hudi).

A format describes its tables in plain data (`Scan`, `Snapshot`, `TableInfo`), so that no engine needs to know a format.
What only Spark needs is in `SparkTables`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import field
from datetime import datetime
from pathlib import Path
from typing import Protocol, runtime_checkable

from lakehouse.core.catalog import Catalog
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import NotSupportedError
from lakehouse.core.files import LOCAL, Files
from lakehouse.core.names import TableName
from lakehouse.core.result import RowChanges
from lakehouse.core.tables import Drop, FileSlice, Scan, SchemaCopy, Snapshot, TableInfo

#: The name under which a snapshot has the mark of the statement that committed it. Not `lake.…`: those notes are of ingests and runs.
MARK = "lakehouse-statement"


@dataclass(frozen=True)
class FormatCapabilities:
    """The abilities of a format. Callers read these, never the format's class."""

    branch: bool
    sync: bool = False
    """The tables are registered in a metastore, which every writer of a new schema must update."""
    serial_writes: bool = False
    """The writers of one table must take turns: the format does not notice that two are at work."""


@dataclass(frozen=True)
class FormatContext:
    """What the factory of a format gets: the catalog, and where the warehouse is."""

    catalog: Catalog
    warehouse: Path
    """The local warehouse folder."""
    trash: Path
    """The local folder for dropped tables."""
    files: Files = LOCAL
    is_remote: bool = False
    """The warehouse is in an object store."""
    object_store: Mapping[str, str] = field(default_factory=dict, repr=False)  # it may hold keys
    """Options of the Rust crate `object_store` for the warehouse."""


class SparkTables(Protocol):
    """The tables of a format in Spark: their names, and the statements that Spark needs around them."""

    @property
    def settings(self) -> Mapping[str, str]:
        """The settings of every Spark session that uses this format."""

    @property
    def write_settings(self) -> Mapping[str, str]:
        """The settings of a statement that writes a table."""

    def name(self, table: TableName) -> str:
        """Return the name of a table in statements that change or describe it."""

    def rows(self, table: TableName, snapshot: str = "") -> str:
        """Return what a FROM clause reads, now or at a snapshot: a name or a query in parentheses."""

    def current_snapshot(self, table: TableName) -> str:
        """Return the snapshot that reads as the table does now; empty if none does.

        Spark reads several tables at one moment by these.
        """

    def setup(self, table: TableName) -> Sequence[str]:
        """Return the statements that a session must run before it can use a table."""

    def setup_version(self, table: TableName) -> str:
        """Return a value that changes whenever `setup` has to run again."""

    def schema_copy(self, table: TableName) -> SchemaCopy | None:
        """Return the schema that Spark's session catalog must hold; None where Spark reads it from the lake's catalog."""

    def rollback_sql(self, table: TableName, snapshot: str) -> str:
        """Return the statement that restores the rows of a snapshot."""

    def new_location(self, table: TableName) -> str:
        """Return where to create a new table; empty for the default location."""


class TableFormat(Protocol):
    """A table format: which tables it has, what they hold, how they change."""

    name: str
    capabilities: FormatCapabilities

    @property
    def spark(self) -> SparkTables | None:
        """The tables in Spark; None if Spark cannot use this format."""

    def on(self, branch: str) -> TableFormat:
        """Return the tables of a branch; a format without branches returns itself."""

    def pin(self, tables: Sequence[TableName]) -> TableFormat:
        """Return the same format, in which these tables stay as they are at this moment."""

    def at_pointers(self, pointers: Mapping[TableName, str | None]) -> TableFormat:
        """Return the same format, in which some tables are what these catalog pointers refer to."""

    def tables(self) -> Sequence[TableName]:
        """Return every table of this format in the lake."""

    def has(self, table: TableName) -> bool:
        """Return whether a table of this format has this name."""

    def describe(self, table: TableName) -> TableInfo:
        """Return the schema, partitioning, key and newest snapshot of a table."""

    def history(self, table: TableName) -> Sequence[Snapshot]:
        """Return every snapshot that is still available, oldest first."""

    def resolve(self, table: TableName, when: str, now: datetime) -> str:
        """Return the id of the snapshot that a WHEN means."""

    def scan(self, table: TableName, snapshot: str = "") -> Scan:
        """Return how to read a table, now or at a snapshot."""

    def file_slices(self, table: TableName) -> Sequence[FileSlice]:
        """Return every version of every file group that the table's commits wrote; none for a format without file groups."""

    def drop(self, table: TableName) -> None:
        """Remove a table from the lake and keep it for `undrop`."""

    def undrop(self, table: TableName, drop: str = "") -> bool:
        """Restore the table that was dropped last under this name, or by the drop of an id; False if there is none."""

    def dropped(self) -> Sequence[TableName]:
        """Return the names that `undrop` can restore."""

    def drops(self) -> Sequence[Drop]:
        """Return all that `undrop` can restore, with the ids and times of the drops."""


@runtime_checkable
class CountsChanges(Protocol):
    """A format whose commits state how many rows they changed; what a format may also be able to do."""

    def changes_since(
        self, table: TableName, snapshot: str, effects: Set[str], engine: str, mark: str = ""
    ) -> RowChanges:
        """Return how many rows the only commit since a snapshot changed, as far as that is certain.

        Nothing if there are several commits, or if the one cannot be that of the statement, which then has committed nothing.

        Args:
            snapshot: empty if the table had none.
            effects: what the statement may do to rows: `insert`, `update`, `delete`; also `overwrite`.
            engine: the engine that ran the statement.
            mark: what the engine noted in the snapshot of the statement; empty if it notes nothing.
        """


class TableDirectory(Protocol):
    """The tables of a lake on one branch, whatever their format."""

    @property
    def formats(self) -> Mapping[str, TableFormat]:
        """Every format by its name."""

    @property
    def is_view(self) -> Callable[[TableName], bool]:
        """Whether a name is that of a view."""

    def on(self, branch: str) -> TableDirectory:
        """Return the tables of a branch, without checking that it exists."""

    def pinned(self, names: Sequence[TableName]) -> TableDirectory:
        """Return the same tables, in which these stay as they are at this moment."""

    def find(self, name: TableName) -> TableFormat | None:
        """Return the format of a table; None if there is no such table."""

    def format_of(self, name: TableName) -> TableFormat:
        """Return the format of a table; raises NoSuchTableError."""

    def snapshot_at(self, name: TableName, when: str) -> str:
        """Return the snapshot id of a WHEN; empty for the current one."""


#: What an entry point of the group `lakehouse.formats` names; None where the lake has no location for such tables.
FormatFactory = Callable[[FormatContext], TableFormat | None]


def spark_tables(table_format: TableFormat) -> SparkTables:
    """Return the tables of a format in Spark; an error if Spark cannot use the format."""
    if table_format.spark is None:
        raise NotSupportedError(f"Spark cannot use tables of the format {table_format.name}.", "Use another engine.")
    return table_format.spark
