"""The interfaces of a catalog: where tables are found, branched, published and logged.

A catalog answers in plain data and settings, so no engine and no format needs to know its class: it describes itself to
Spark, PyIceberg, DuckDB and Trino. What only some catalogs can do is stated in `CatalogCapabilities`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Protocol, runtime_checkable

from lakehouse.core.clients import MavenArtifact
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import NotSupportedError
from lakehouse.core.files import LOCAL, Files
from lakehouse.core.names import TableName
from lakehouse.core.refs import Change, Commit, LogEntry, Published, ReachableFile, Ref
from lakehouse.core.state import CatalogState, TableEntry
from lakehouse.core.tables import Drop


@dataclass(frozen=True)
class CatalogCapabilities:
    """The optional abilities of a catalog. Callers read these, never the catalog's class."""

    multi_table_publish: bool
    """One publish can change several tables atomically; otherwise a publish of more than one table is refused."""
    statement_log: bool = False
    """The log does not see the commits of engines: callers report them with `record_statement`."""
    shared: bool = False
    """Other programs may keep tables of their own here, so it need not be empty before a restore."""


@dataclass(frozen=True)
class CatalogContext:
    """What the factory of a catalog gets: the settings `[catalog]`, and how to reach the warehouse."""

    warehouse: str
    """The URI below which new tables are created."""
    folder: Path
    """The local folder of the lake, for files of the catalog's own."""
    uri: str = field(default="", repr=False)  # it may hold a password
    token: str = field(default="", repr=False)
    files: Files = LOCAL
    """Reads and writes metadata files."""
    io: Mapping[str, str] = field(default_factory=dict, repr=False)  # it may hold keys
    """PyIceberg's FileIO properties of the warehouse (`s3.endpoint`, …)."""
    spark_io: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The same for an Iceberg catalog in Spark (`io-impl`, `s3.endpoint`, …)."""
    author: str = ""
    """The author of commits that name none."""
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)  # it may hold a credential
    """`[catalog.properties]`: for REST, what else its clients need; for others, settings of the kind's own."""


class FormatEntries(Protocol):
    """The tables of a format other than Iceberg that a catalog registers by their folders."""

    @property
    def warehouse(self) -> str:
        """The URI below which new tables are created."""

    def tables(self) -> Sequence[TableName]:
        """Return every table, sorted by name."""

    def location(self, table: TableName) -> str | None:
        """Return the URI of a table's folder, or None if there is no such table."""

    def drop(self, table: TableName) -> bool:
        """Remove a table from the catalog and keep its files; False if there is no such table."""

    def undrop(self, table: TableName, drop: str = "") -> bool:
        """Restore the table that was dropped last under this name, or by the drop of an id; False if there is none."""

    def dropped(self) -> Sequence[TableName]:
        """Return the names that `undrop` can restore."""

    def drops(self) -> Sequence[Drop]:
        """Return all that `undrop` can restore, with the ids and times of the drops."""


class TableCatalog(Protocol):
    """The current tables of a catalog.

    A pointer is the catalog's reference to the current state of a table: the location of its newest metadata file.
    Callers pass it back and do not interpret it.
    """

    @property
    def name(self) -> str:
        """The name of the catalog in Spark SQL."""

    @property
    def capabilities(self) -> CatalogCapabilities:
        """The optional abilities. A REST catalog asks its server for them."""

    def spark_conf(self) -> Mapping[str, str]:
        """Return the Spark settings that define this catalog under its name. They may hold a password or keys.

        Empty if Spark has no client for the catalog. Its branches may still have one.
        """

    def spark_jars(self) -> Sequence[MavenArtifact]:
        """Return the jars that Spark needs for this catalog, besides those that every lake has."""

    def trino_catalogs(self, name: str) -> Mapping[str, Mapping[str, str]]:
        """Return the properties of Trino's catalogs by their names, without those of the warehouse.

        NotSupportedError if Trino cannot use this catalog. They may hold a password.

        Args:
            name: that of the catalog with the Iceberg tables; further ones are for tables of other formats.
        """

    def duckdb_attach(self) -> str:
        """Return DuckDB's statement that attaches this catalog; empty if it cannot. It may hold a password."""

    def pyiceberg_properties(self) -> Mapping[str, str]:
        """Return the properties for `pyiceberg.catalog.load_catalog`. They may hold a password or keys."""

    def rest_properties(self) -> Mapping[str, str]:
        """Return the same for the catalog's Iceberg REST endpoint; empty if it has none."""

    def entries_of(self, table_format: str) -> FormatEntries | None:
        """Return the tables of another format that this catalog registers; None if it registers none."""

    def ensure_ready(self) -> None:
        """Check that the catalog is reachable, and create what it needs before its first use."""

    def tables(self) -> Sequence[TableName]:
        """Return every Iceberg table, sorted by name."""

    def pointer(self, table: TableName) -> str | None:
        """Return the pointer of a table, or None if there is no such table."""

    def pointers(self, tables: Iterable[TableName]) -> dict[TableName, str | None]:
        """Return the pointers of several tables, read at one moment where the catalog can."""

    def has_view(self, name: TableName) -> bool:
        """Return whether a view has this name."""

    def ensure_namespace(self, namespace: str) -> None:
        """Create a namespace unless it exists."""

    def swap_pointer(self, table: TableName, expected: str, new: str | None) -> bool:
        """Replace the pointer of a table (None removes the table) if it is still `expected`; False if it is not."""

    def state_hash(self) -> str:
        """Return a hash of all pointers; it changes whenever a table or view does."""

    def drop(self, table: TableName, at: str) -> bool:
        """Remove a table and keep its files and its pointer for `undrop`; False if there is no such table.

        Args:
            at: the time of the drop in ISO 8601.
        """

    def undrop(self, table: TableName, drop: str = "") -> bool:
        """Restore the table that was dropped last under this name, or by the drop of an id; False if there is none."""

    def dropped(self) -> Sequence[TableName]:
        """Return the names that `undrop` can restore."""

    def drops(self) -> Sequence[Drop]:
        """Return all that `undrop` can restore, with the ids and times of the drops."""


@runtime_checkable
class ListsViews(Protocol):
    """A catalog that can list its views; what a catalog may also be able to do."""

    def views(self) -> Sequence[TableName]:
        """Return every view, sorted by name."""


class NoClients:
    """The answers of a catalog that no engine has a client for; a base class from which a catalog overrides what it can."""

    def spark_conf(self) -> Mapping[str, str]:
        return {}

    def spark_jars(self) -> Sequence[MavenArtifact]:
        return ()

    def trino_catalogs(self, name: str) -> Mapping[str, Mapping[str, str]]:
        raise NotSupportedError("Trino has no client for this catalog.", "Ask DuckDB: lake sql --engine duckdb")

    def duckdb_attach(self) -> str:
        return ""

    def rest_properties(self) -> Mapping[str, str]:
        return {}

    def entries_of(self, table_format: str) -> FormatEntries | None:
        return None


class BaseCatalog(TableCatalog, Protocol):
    """A catalog without branches, tags and log. `lakehouse.catalogs.overlay` adds them."""

    @property
    def display_name(self) -> str:
        """What error messages call it; it starts a sentence."""

    def all_pointers(self) -> dict[TableName, str]:
        """Return the pointer of every table."""

    def dropped_entries(self) -> Sequence[TableEntry]:
        """Return the tables that `undrop` can restore, under their own names, with their pointers."""

    def commit(self, changes: Sequence[Change]) -> bool:
        """Apply all changes or none; False if the pointer of a table is not its change's `before`."""

    def is_committed(self, change: Change) -> bool:
        """Return whether a table is in the state that a change leads to."""


class Catalog(TableCatalog, Protocol):
    """A catalog with branches, tags and a log, each over all of its tables at once."""

    def on(self, branch: str) -> Catalog:
        """Return the catalog of a branch; `main` and the empty string mean main."""

    # ---- branches -----------------------------------------------------------------------------------------------

    def branches(self) -> Sequence[str]:
        """Return the names of all branches except main."""

    def branch_refs(self) -> Sequence[Ref]:
        """Return all branches except main."""

    def branches_of(self, table: TableName, prefix: str) -> Sequence[str]:
        """Return the branches that start with a prefix and were created for a table."""

    def create_branch(self, name: str, from_ref: str = "main", commit: Commit | None = None) -> None:
        """Create a branch of all tables from main, another branch or a tag. No data is copied."""

    def fork(
        self, branch: str, tables: Sequence[TableName], commit: Commit | None = None
    ) -> dict[TableName, str | None]:
        """Create a branch for some tables and return their pointers, None for a table that does not exist yet."""

    def drop_branch(self, branch: str) -> bool:
        """Delete a branch; False if there is none."""

    def changes(self, branch: str) -> Sequence[Change]:
        """Return what a branch has changed since it was created."""

    def conflicts(self, branch: str) -> Sequence[TableName]:
        """Return the tables that a branch has changed and this catalog as well, since the branch was created."""

    def publish(self, branch: str, commit: Commit | None = None, tag: str = "") -> Published:
        """Apply a branch's changes to this catalog and delete the branch.

        All changes are applied or, if any of their tables has changed here as well, none.

        Args:
            tag: create this tag of the result; an existing one is replaced.
        """

    # ---- tags ---------------------------------------------------------------------------------------------------

    def tags(self) -> Sequence[Ref]:
        """Return all tags."""

    def create_tag(self, name: str, from_ref: str = "main", commit: Commit | None = None) -> None:
        """Create a tag of main, a branch or another tag."""

    def drop_tag(self, name: str) -> bool:
        """Delete a tag; False if there is none."""

    def tag_pointers(self, tag: str) -> Mapping[TableName, str] | None:
        """Return the pointers that a tag holds; None if there is no such tag."""

    # ---- log ----------------------------------------------------------------------------------------------------

    def log(self, table: TableName | None = None, limit: int = 100) -> Sequence[LogEntry]:
        """Return the newest log entries first: all of them, or those that changed a table."""

    def published_by(self, run: str) -> LogEntry | None:
        """Return the log entry of a run's publish; None if it has not published, or that was reverted.

        A revert is one of the run that its commit names.
        """

    def record_statement(self, table: TableName, before: str | None, commit: Commit) -> bool:
        """Log the commit that an engine made to a table whose pointer was `before`, if it is the only one since.

        Catalogs without `capabilities.statement_log` log nothing and return False.
        """

    def revert(self, entry: str, commit: Commit) -> Published:
        """Undo a log entry in all its tables at once, if each is still as that entry left it."""

    def forget_dropped(self, before: Callable[[TableName], str]) -> Sequence[TableName]:
        """Make `undrop` impossible for tables that were dropped, on any branch, before a time; returns their names.

        Args:
            before: returns the time for a table (ISO 8601).
        """

    def reachable(self, since: str = "") -> Sequence[ReachableFile]:
        """Return every metadata file that main, a branch, a tag, a dropped table or the log refers to.

        Args:
            since: ignore log entries before this time (ISO 8601).
        """

    # ---- everything ---------------------------------------------------------------------------------------------

    def dump_state(self) -> CatalogState:
        """Return everything that the catalog holds, of one moment where it can."""

    def problems(self) -> Sequence[str]:
        """Return what is inconsistent in the catalog's own data, one sentence each."""

    def load_state(self, content: CatalogState) -> Sequence[str]:
        """Fill an empty catalog, and return what it cannot hold; TableExistsError if it is not empty.

        A call that was killed may be repeated. Where the catalog can, it takes everything in one transaction.
        """


#: What an entry point of the group `lakehouse.catalogs` names.
CatalogFactory = Callable[[CatalogContext], Catalog]
