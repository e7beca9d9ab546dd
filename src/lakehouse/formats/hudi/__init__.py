"""Copy-on-write Hudi tables: located by their folders or in a metastore, read with hudi-rs, changed by Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from datetime import datetime
from pathlib import Path
from typing import Any

from lakehouse.core.errors import NoSuchTableError, NotSupportedError, TableError, WhenError
from lakehouse.core.format import FormatCapabilities, FormatContext
from lakehouse.core.inspection import InspectRequest, MetadataFile, MetadataNode
from lakehouse.core.names import TableName
from lakehouse.core.result import RowChanges
from lakehouse.core.tables import Drop, FileSlice, Scan, Snapshot, TableInfo
from lakehouse.core.when import Version, resolve
from lakehouse.formats.hudi import timeline
from lakehouse.formats.hudi.locations import LocalFolders, Locations, RegisteredFolders
from lakehouse.formats.hudi.metadata import read_metadata
from lakehouse.formats.hudi.slices import file_slices
from lakehouse.formats.hudi.spark import HudiSpark


def open_tables(context: FormatContext) -> HudiTables | None:
    """Open the Hudi tables of a lake: in a local warehouse, or registered in its catalog; else there are none."""
    if not context.is_remote:
        return HudiTables(LocalFolders(context.warehouse, context.trash))
    entries = context.catalog.entries_of(HudiTables.name)
    return HudiTables(RegisteredFolders(entries, context.files, context.object_store)) if entries else None


#: The folder of the rows whose partition column is NULL or an empty text.
_DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"


class HudiTables:
    """Implements `TableFormat` for the Hudi tables of a lake, each a folder with a `.hoodie` folder in it."""

    name = "hudi"

    def __init__(self, locations: Locations) -> None:
        self._locations, self.spark = locations, HudiSpark(locations)
        self.capabilities = FormatCapabilities(branch=False, sync=locations.registered, serial_writes=True)

    def on(self, branch: str) -> HudiTables:
        return self

    def pin(self, tables: Sequence[TableName]) -> HudiTables:
        return self  # each Hudi table commits on its own

    def at_pointers(self, pointers: Mapping[TableName, str | None]) -> HudiTables:
        return self

    def tables(self) -> Sequence[TableName]:
        return self._locations.tables()

    def has(self, table: TableName) -> bool:
        return self._locations.find(table) is not None

    def describe(self, table: TableName) -> TableInfo:
        metadata = read_metadata(self._locations, table)
        snapshots = timeline.snapshots(metadata.instants)
        return TableInfo(
            name=table,
            format=self.name,
            location=metadata.location,
            columns=metadata.columns(),
            partitioning=metadata.partitioning,
            key=metadata.key,
            properties=metadata.properties,
            current=snapshots[-1] if snapshots else None,
        )

    def history(self, table: TableName) -> Sequence[Snapshot]:
        return timeline.snapshots(read_metadata(self._locations, table).instants)

    def changes_since(
        self, table: TableName, snapshot: str, effects: Set[str], engine: str, mark: str = ""
    ) -> RowChanges:
        return timeline.changes_since(read_metadata(self._locations, table).instants, snapshot, effects)

    def file_slices(self, table: TableName) -> Sequence[FileSlice]:
        return file_slices(read_metadata(self._locations, table).instants)

    def inspect(self, table: TableName, request: InspectRequest) -> MetadataNode:
        from lakehouse.formats.hudi.inspect import Inspector

        return Inspector(read_metadata(self._locations, table), self._locations).tree(request)

    def metadata_file(self, table: TableName, path: str, request: InspectRequest) -> MetadataFile:
        from lakehouse.formats.hudi.inspect import Inspector

        return Inspector(read_metadata(self._locations, table), self._locations).file(path, request)

    def resolve(self, table: TableName, when: str, now: datetime) -> str:
        instants = read_metadata(self._locations, table).instants
        versions = [Version(instant.id, timeline.moment(instant.id)) for instant in instants]
        instant_id = resolve(when, versions, {}, now, str(table))
        if instant_id != instants[-1].id:
            self._check_not_cleaned(table, [instant for instant in instants if instant.id <= instant_id])
        return instant_id

    def _check_not_cleaned(self, table: TableName, instants: Sequence[timeline.Instant]) -> None:
        """Raise if files that an instant needs are gone: Hudi itself reads it as a table with fewer rows."""
        location = read_metadata(self._locations, table).location
        opened = timeline.open_table(location, self._locations.access)
        slices = _latest_slices(opened, instants, location)
        files = [self._locations.file(location, part.files[0]) for part in slices]
        gone = any("://" not in file and not Path(file).exists() for file in files)
        if gone or len(slices) < timeline.files_with_rows(list(instants)):
            raise WhenError(
                f"Files of {table} as of {instants[-1].id} were cleaned, so it cannot be read as it was then.",
                f"List its instants: lake history {table}. Later ones may be complete.",
            )

    def scan(self, table: TableName, snapshot: str = "") -> Scan:
        metadata = read_metadata(self._locations, table)
        opened = timeline.open_table(metadata.location, self._locations.access)
        instants = [instant for instant in timeline.instants(opened) if not snapshot or instant.id <= snapshot]
        if not instants:
            return Scan(columns=metadata.columns(), total_rows=0, total_files=0, total_bytes=0)
        slices = _latest_slices(opened, instants, metadata.location)
        if any(part.log_files for part in slices):
            raise NotSupportedError(
                f"{table} is a merge-on-read table with unmerged changes, which only Spark reads correctly.",
                "Use Spark: lake sql --engine spark",
            )
        expected = timeline.files_with_rows(instants)
        if len(slices) < expected:
            # hudi-rs lists the folder, so that a lost file would only mean fewer rows.
            raise TableError(
                f"{table} has {len(slices)} data files, and its timeline states {expected}.",
                f"Find what is missing: lake verify {table}. Restore it from a backup.",
            )
        # The Parquet files of a copy-on-write table are the table, so DuckDB reads them with all its pruning.
        columns, files = timeline.columns(instants[-1]), [part.files[0] for part in slices]
        # Spark takes the values of partition columns from the folder, which is the same for NULL and for an empty text.
        has_default = any(_DEFAULT_PARTITION in file for file in files)
        texts = {column.name for column in columns if column.type == "string"} if has_default else set()
        return Scan(
            columns=columns,
            snapshot_id=snapshot,
            files=tuple(self._locations.file(metadata.location, file) for file in files),
            total_rows=timeline.snapshots(instants)[-1].rows_total,
            total_files=len(slices),
            total_bytes=sum(part.bytes for part in slices),
            empty_is_null=tuple(name for name in metadata.partitioning if name in texts),
        )

    def drop(self, table: TableName) -> None:
        if not self._locations.drop(table):
            raise NoSuchTableError(str(table))

    def undrop(self, table: TableName, drop: str = "") -> bool:
        return self._locations.undrop(table, drop)

    def dropped(self) -> Sequence[TableName]:
        return self._locations.dropped()

    def drops(self) -> Sequence[Drop]:
        return self._locations.drops()


def _latest_slices(opened: Any, instants: Sequence[timeline.Instant], location: str) -> list[FileSlice]:
    """The file slices that hold the rows at the last of these instants."""
    try:
        slices = timeline.file_slices_at(opened, instants[-1], location)
    except NotSupportedError:
        # The timeline names the files, too; it takes no notice of one that is lost, and reading it is then an error.
        return [part for part in file_slices(instants) if part.is_latest and part.files]
    return [
        FileSlice(
            part.file_id,
            part.partition_path,
            instants[-1].id,
            (part.base_file_relative_path(),),
            part.base_file_size,
            int(part.has_log_files()),
            is_latest=True,
        )
        for part in slices
    ]
