"""Facts about tables that formats, engines and callers exchange: columns, snapshots, scans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime

from lakehouse.core.dataclass import dataclass
from lakehouse.core.names import TableName

#: The operation of a snapshot that rewrote files and changed no row.
REPLACE = "replace"


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
    """The partitions it touched, as `date=2026-01-14`, if the format reports them; `changed_partition_count` is their number."""
    changed_partition_count: int = 0


@dataclass(frozen=True)
class FileSlice:
    """One version of a Hudi file group: a base file, and the log files with later changes to its rows."""

    group: str
    partition: str
    instant: str
    """The commit that wrote the base file; without one, the first log file."""
    files: tuple[str, ...]
    """Relative to the table's folder."""
    bytes: int
    log_files: int = 0
    replaced_at: str = ""
    """The commit that replaced the whole group by others; empty if none did."""
    is_latest: bool = False
    """Whether the current snapshot reads it."""


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
    empty_is_null: tuple[str, ...] = ()
    """Columns of text whose empty values are NULL to the format, although the files have them."""
    holding_uuids: tuple[str, ...] = ()
    """Columns in which the format has UUIDs, also nested ones; their type says text, as Spark does."""


@dataclass(frozen=True)
class Drop:
    """A table that was dropped and can be restored."""

    table: TableName
    id: str
    """Which of several tables of one name it is; later drops have higher ids."""
    at: str
    """When it was dropped, in ISO 8601; empty if the catalog does not know."""


#: A property of Iceberg tables that others may have created; the guard refuses it.
DELETES_METADATA = "write.metadata.delete-after-commit.enabled"


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

    def warnings(self) -> tuple[str, ...]:
        """What endangers the table's branches, tags and old snapshots."""
        if self.properties.get(DELETES_METADATA, "").lower() != "true":
            return ()
        return (
            f"{DELETES_METADATA}=true: each commit deletes an old metadata file, and a branch or tag that needs it"
            " becomes unreadable. Unset the property with the tool that set it.",
        )


@dataclass(frozen=True)
class SchemaCopy:
    """The schema of a table that Spark keeps a copy of in its own catalog, where the copy may be out of date."""

    table: TableName
    format: str
    location: str
    columns: tuple[Column, ...]
    partitioning: tuple[str, ...]


def split_arguments(text: str) -> list[str]:
    """Split the arguments of a nested column type, such as `a:int,b:array<string>`, at the commas outside of brackets."""
    arguments, depth, start = [], 0, 0
    for position, letter in enumerate(text + ","):
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0:
            arguments.append(text[start:position].strip())
            start = position + 1
    return [argument for argument in arguments if argument]
