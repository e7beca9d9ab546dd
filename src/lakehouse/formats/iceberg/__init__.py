"""Iceberg tables: located by the catalog's pointers, read from their metadata files, changed by Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lakehouse.core.catalog import Catalog
from lakehouse.core.errors import NoSuchTableError, NotSupportedError, WhenError
from lakehouse.core.files import LOCAL, Files
from lakehouse.core.format import FormatCapabilities, FormatContext
from lakehouse.core.inspection import InspectRequest, MetadataFile, MetadataNode
from lakehouse.core.names import TableName
from lakehouse.core.result import RowChanges
from lakehouse.core.tables import Drop, FileSlice, Scan, Snapshot, TableInfo
from lakehouse.core.when import Version, resolve
from lakehouse.formats.iceberg.metadata import Metadata, read_metadata
from lakehouse.formats.iceberg.spark import IcebergSpark

if TYPE_CHECKING:
    from lakehouse.formats.iceberg.inspect import Inspector

Pointers = Mapping[TableName, str | None]


def open_tables(context: FormatContext) -> IcebergTables:
    """Open the Iceberg tables of a lake's catalog."""
    return IcebergTables(context.catalog, context.files)


class IcebergTables:
    """Implements `TableFormat` for the Iceberg tables of one catalog.

    Args:
        pinned: the pointers of tables that stay as they are, whatever the catalog holds now.
    """

    name = "iceberg"
    capabilities = FormatCapabilities(branch=True)

    def __init__(self, catalog: Catalog, files: Files = LOCAL, pinned: Pointers | None = None) -> None:
        self._catalog, self._files, self._pinned = catalog, files, pinned or {}

    @property
    def spark(self) -> IcebergSpark:
        return IcebergSpark(self._catalog.name, self._metadata)

    def on(self, branch: str) -> IcebergTables:
        return IcebergTables(self._catalog.on(branch), self._files)

    def pin(self, tables: Sequence[TableName]) -> IcebergTables:
        return self.at_pointers(self._catalog.pointers([table for table in tables if table not in self._pinned]))

    def at_pointers(self, pointers: Pointers) -> IcebergTables:
        return IcebergTables(self._catalog, self._files, {**self._pinned, **pointers})

    def tables(self) -> Sequence[TableName]:
        return self._catalog.tables()

    def has(self, table: TableName) -> bool:
        return self._find(table) is not None

    def describe(self, table: TableName) -> TableInfo:
        metadata = self._metadata(table)
        return TableInfo(
            name=table,
            format=self.name,
            location=metadata.location,
            columns=metadata.columns(),
            partitioning=metadata.partitioning(),
            sorting=metadata.sorting(),
            key=metadata.key(),
            properties=metadata.properties,
            current=metadata.snapshot(metadata.current_id),
        )

    def history(self, table: TableName) -> Sequence[Snapshot]:
        return self._metadata(table).snapshots()

    def changes_since(
        self, table: TableName, snapshot: str, effects: Set[str], engine: str, mark: str = ""
    ) -> RowChanges:
        return self._metadata(table).changes_since(snapshot, effects, engine, mark)

    def resolve(self, table: TableName, when: str, now: datetime) -> str:
        metadata = self._metadata(table)
        versions = [Version(snapshot_id, at) for snapshot_id, at in metadata.log()]
        available = metadata.snapshot_ids()
        refs = {**self._tag(table, when), **metadata.refs()}
        snapshot_id = resolve(when, versions, refs, now, str(table), available)
        if snapshot_id not in available:
            raise WhenError(
                f"The snapshot of {table} to which {when!r} resolves was expired.",
                f"List those that are left: lake history {table}",
            )
        return snapshot_id

    def _tag(self, table: TableName, when: str) -> dict[str, str]:
        """Return the snapshot that a tag of the whole catalog holds for this table, if the WHEN is such a tag."""
        pointer = (self._catalog.tag_pointers(when) or {}).get(table) if when.isidentifier() else None
        return {when: read_metadata(pointer, self._files).current_id} if pointer else {}

    def scan(self, table: TableName, snapshot: str = "") -> Scan:
        pointer = self._pointer(table)
        metadata = read_metadata(pointer, self._files)
        if not metadata.has_ascii_partitions():
            raise NotSupportedError(
                f"{table} has partitions with names beyond ASCII, whose manifests DuckDB cannot read.",
                "Use Spark: lake sql --engine spark",
            )
        requested = snapshot or metadata.current_id
        read = metadata.snapshot(requested)
        return Scan(
            columns=metadata.columns(snapshot),
            metadata=pointer if requested else "",
            snapshot_id=snapshot,
            total_rows=read.rows_total if read else 0,
            total_files=read.files_total if read else 0,
            total_bytes=read.bytes_total if read else 0,
            holding_uuids=metadata.columns_with_uuids(snapshot),
        )

    def inspect(self, table: TableName, request: InspectRequest) -> MetadataNode:
        return self._inspector(table).tree(request)

    def metadata_file(self, table: TableName, path: str, request: InspectRequest) -> MetadataFile:
        return self._inspector(table).file(path, request)

    def _inspector(self, table: TableName) -> Inspector:
        from lakehouse.formats.iceberg.inspect import Inspector

        pointer = self._pointer(table)
        return Inspector(pointer, self._metadata(table), self._files, self._catalog.pyiceberg_properties)

    def drop(self, table: TableName) -> None:
        if not self._catalog.drop(table, datetime.now(UTC).isoformat()):
            raise NoSuchTableError(str(table))

    def undrop(self, table: TableName, drop: str = "") -> bool:
        return self._catalog.undrop(table, drop)

    def file_slices(self, table: TableName) -> Sequence[FileSlice]:
        return ()

    def dropped(self) -> Sequence[TableName]:
        return self._catalog.dropped()

    def drops(self) -> Sequence[Drop]:
        return self._catalog.drops()

    def _find(self, table: TableName) -> str | None:
        return self._pinned[table] if table in self._pinned else self._catalog.pointer(table)

    def _pointer(self, table: TableName) -> str:
        pointer = self._find(table)
        if pointer is None:
            raise NoSuchTableError(str(table))
        return pointer

    def _metadata(self, table: TableName) -> Metadata:
        return read_metadata(self._pointer(table), self._files)
