"""The interfaces between the rooms, and the plain facts that pass through them.

A format answers for its tables in plain data (`Scan`, `Snapshot`, `TableInfo`), so that no engine needs to know
a format and no format an engine. What a room can do is stated as data (`FormatCan`), never asked of its class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from lakehouse.core.names import TableName
    from lakehouse.core.refs import Change, Commit, LogEntry, Published, Reached, Ref
    from lakehouse.core.result import Result


@dataclass(frozen=True)
class Column:
    """A column as the table's schema states it, with its type in Spark's words."""

    name: str
    type: str
    required: bool = False
    comment: str = ""


@dataclass(frozen=True)
class Snapshot:
    """One committed change of a table: an Iceberg snapshot or a Hudi instant."""

    id: str
    at: datetime
    operation: str
    rows_added: int | None = None
    rows_removed: int | None = None
    rows_total: int | None = None
    files_total: int | None = None
    bytes_total: int | None = None
    source: str = ""
    parent: str = ""
    """The snapshot that this one was made from; nothing for a first one."""
    refs: tuple[str, ...] = ()
    is_current: bool = False
    """False for what was rolled back as well as for what came before the present."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """What our own commits wrote down with it: source, content hashes, …"""
    changed_partitions: tuple[str, ...] = ()
    """The partitions it touched, as `date=2026-01-14`, if the format told; `changed_partition_count` says how many."""
    changed_partition_count: int = 0


@dataclass(frozen=True)
class Scan:
    """All that is needed to read a table at one moment without its format's own library.

    Either `metadata` (an Iceberg metadata file, with a snapshot unless it is the present one) or `files` (Parquet
    files that together are the table) is set. `columns` is what the reader must show, in order.
    """

    columns: tuple[Column, ...]
    metadata: str = ""
    snapshot_id: str = ""
    files: tuple[str, ...] = ()
    total_rows: int | None = None
    total_files: int | None = None
    total_bytes: int | None = None


@dataclass(frozen=True)
class TableInfo:
    """What `lake describe` says of a table."""

    name: TableName
    format: str
    location: str
    columns: tuple[Column, ...]
    partitioning: tuple[str, ...] = ()
    sorting: tuple[str, ...] = ()
    """The order that writers keep rows in, as one would write it."""
    key: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    current: Snapshot | None = None
    problem: str = ""
    """Why the rest could not be found out, where one broken table must not hide the others."""


@dataclass(frozen=True)
class SchemaCopy:
    """The schema of a table that Spark keeps a copy of in its own catalog, where the copy may be out of date."""

    table: TableName
    format: str
    location: str
    columns: tuple[Column, ...]
    partitioning: tuple[str, ...]


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


class CanBranch(Protocol):
    """A catalog with branches, tags and a log of its own, each over all of its tables at once.

    A pointer is whatever the catalog finds a table's state by; callers hand it back and never look inside.
    """

    @property
    def all_at_once(self) -> bool:
        """Whether several tables can be published in one moment; else a publish of more than one is refused."""

    def on(self, branch: str) -> CanBranch:
        """The catalog as a branch has it; `main` and nothing mean main."""

    def branch_refs(self) -> Sequence[Ref]:
        """Every branch beside main."""

    def create_branch(self, name: str, from_ref: str = "main", commit: Commit | None = None) -> None:
        """A branch of all tables as main, another branch or a tag has them. No data is copied."""

    def discard(self, branch: str) -> bool:
        """Forget a branch; False if there is none."""

    def changes(self, branch: str) -> Sequence[Change]:
        """What a branch has changed since it was made."""

    def conflicts(self, branch: str) -> Sequence[TableName]:
        """The tables that a branch has changed and this catalog as well, since the branch was made."""

    def publish(self, branch: str, commit: Commit | None = None, tag: str = "") -> Published:
        """Make a branch's changes everybody's, all at once, or none if any of their tables has moved: never force."""

    def tags(self) -> Sequence[Ref]:
        """Every tag."""

    def create_tag(self, name: str, from_ref: str = "main", commit: Commit | None = None) -> None:
        """Remember what main, a branch or another tag is, under a name."""

    def drop_tag(self, name: str) -> bool:
        """Forget a tag; False if there is none."""

    def tagged(self, tag: str) -> Mapping[TableName, str] | None:
        """Where every table was when a tag was made; None if there is no such tag."""

    def log(self, table: TableName | None = None, limit: int = 100) -> Sequence[LogEntry]:
        """What was published, the newest first: all of it, or what touched a table."""

    def published_by(self, run: str) -> LogEntry | None:
        """What a run published, if it did."""

    def revert(self, entry: str, commit: Commit) -> Published:
        """Undo an entry of the log in all its tables at once, if each is still as that entry left it."""

    def state(self) -> str:
        """A hash of everything: it changes whenever anything does."""

    def reachable(self, since: str = "") -> Sequence[Reached]:
        """Every metadata file that main, branches, tags, dropped tables or the log since then may lead to."""


@dataclass(frozen=True)
class Write:
    """Where the rows of a query go when a format's own writer takes them, which may bring a schema with them.

    SQL's INSERT writes in the schema that a table has; a writer makes a new one and the rows one commit.
    """

    format: str
    location: str
    options: Mapping[str, str] = field(default_factory=dict)
    comments: Mapping[str, str] = field(default_factory=dict)
    """What the columns' comments will be, by the columns' names."""


@dataclass(frozen=True)
class QueryRequest:
    """One statement as the user wrote it, and how to answer it."""

    sql: str
    as_of: str = ""
    limit: int | None = None
    explain: bool = False
    arrow: bool = True
    """The result is for a program; otherwise for a person, who need not wait for Arrow to load."""
    branch: str = ""
    """Where the tables are; nothing means `main`."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Folders (or single files) of Parquet that the statement reads under a name."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Spark's settings for this statement alone."""
    write: Write | None = None
    """The statement is a query, and its rows are written there instead of given back."""
    lock: str = ""
    """A file that is locked while the statement runs, wherever it runs: whoever asked may be dead before it ends."""


class SparkEngine(Protocol):
    """Spark, wherever it runs: warm behind a socket, in this process, or on a cluster."""

    def query(self, request: QueryRequest, reason: str) -> Result:
        """Resolve the statement's names, run it and give its result; `reason` says why Spark was chosen."""

    def wake(self) -> None:
        """Begin to start, if that takes long: a statement will come soon."""


@dataclass(frozen=True)
class RemoteFile:
    """A file in an object store: its whole name (`s3://bucket/key`), its size, and a mark that changes with its content."""

    name: str
    size: int
    etag: str = ""


class RemoteFiles(Protocol):
    """An object store, as far as files that users bring lie there."""

    def list(self, folder: str, deep: bool) -> Sequence[str]:
        """The sorted names of all files below a folder, or only of those right in it; none if there is no such folder."""

    def stat(self, name: str) -> RemoteFile | None:
        """What is known of a file, or None if there is none of that name."""

    def fetch(self, file: RemoteFile, into: Path, stop: Callable[[], bool]) -> None:
        """Copy a file here; it arrives as it was looked at, or an error says that it did not, or `stop` said so."""
