"""Iceberg tables: found through the catalog's pointer, read from their metadata, changed by Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from lakehouse.core.errors import NoSuchTableError
from lakehouse.core.files import LOCAL, Files
from lakehouse.core.format import FormatCan
from lakehouse.core.names import TableName
from lakehouse.core.tables import Scan, SchemaCopy, Snapshot, TableInfo
from lakehouse.core.when import Version, resolve
from lakehouse.formats.iceberg.metadata import Metadata, read_metadata
from lakehouse.formats.iceberg.pinned import Pinned, Pointers


class IcebergTables:
    """The Iceberg tables of one catalog."""

    name = "iceberg"
    can = FormatCan(branch=True, upsert=True, time_travel=True, partition_evolution=True)
    write_settings: Mapping[str, str] = {}

    def __init__(self, catalog: Pointers, files: Files = LOCAL) -> None:
        self._catalog, self._files = catalog, files

    def on(self, branch: str) -> IcebergTables:
        return IcebergTables(self._catalog.on(branch), self._files)

    def frozen(self, tables: Sequence[TableName]) -> IcebergTables:
        return self.at(self._catalog.pointers(tables))

    def at(self, found: Mapping[TableName, str | None]) -> IcebergTables:
        """The same tables, of which some are where they were found, whatever the catalog says now."""
        return IcebergTables(Pinned(self._catalog, found), self._files)

    def tables(self) -> Sequence[TableName]:
        return self._catalog.tables()

    def has(self, table: TableName) -> bool:
        return self._catalog.pointer(table) is not None

    def describe(self, table: TableName) -> TableInfo:
        metadata = self._metadata(table)
        current = next((snapshot for snapshot in metadata.snapshots() if snapshot.is_current), None)
        return TableInfo(
            name=table,
            format=self.name,
            location=metadata.location,
            columns=metadata.columns(),
            partitioning=metadata.partitioning(),
            sorting=metadata.sorting(),
            key=metadata.key(),
            properties=metadata.properties,
            current=current,
        )

    def history(self, table: TableName) -> Sequence[Snapshot]:
        return self._metadata(table).snapshots()

    def resolve(self, table: TableName, when: str, now: datetime) -> str:
        metadata = self._metadata(table)
        versions = [Version(snapshot_id, at) for snapshot_id, at in metadata.log()]
        kept = [snapshot.id for snapshot in metadata.snapshots()]
        refs = {**self._tagged(table, when), **metadata.refs()}
        return resolve(when, versions, refs, now, str(table), kept)

    def _tagged(self, table: TableName, when: str) -> dict[str, str]:
        """The snapshot that a tag of the whole catalog means for this table, if the WHEN is one that knows it."""
        pointer = (self._catalog.tagged(when) or {}).get(table) if when.isidentifier() else None
        return {when: read_metadata(pointer, self._files).current_id} if pointer else {}

    def scan(self, table: TableName, snapshot: str = "") -> Scan:
        pointer = self._pointer(table)
        metadata = read_metadata(pointer, self._files)
        wanted = snapshot or metadata.current_id
        facts = next((entry for entry in metadata.snapshots() if entry.id == wanted), None)
        return Scan(
            columns=metadata.columns(snapshot),
            metadata=pointer if wanted else "",
            snapshot_id=snapshot,
            total_rows=facts.rows_total if facts else 0,
            total_files=facts.files_total if facts else 0,
            total_bytes=facts.bytes_total if facts else 0,
        )

    def spark_name(self, table: TableName, snapshot: str = "") -> str:
        # `VERSION AS OF` fails beside Hudi's SQL extension; the name of the snapshot does the same and does not.
        at = f".snapshot_id_{snapshot}" if snapshot else ""
        return f"{self._catalog.name}.`{table.namespace}`.`{table.table}`{at}"

    def spark_rows(self, table: TableName, snapshot: str = "") -> str:
        return self.spark_name(table, snapshot)

    def present(self, table: TableName) -> str:
        metadata = self._metadata(table)
        # A column that was added after the newest snapshot would not be among the snapshot's.
        changed = metadata.current_id and metadata.columns(metadata.current_id) != metadata.columns()
        return "" if changed else metadata.current_id

    def spark_setup(self, table: TableName) -> Sequence[str]:
        return ()

    def spark_copy(self, table: TableName) -> SchemaCopy | None:
        return None

    def version(self, table: TableName) -> str:
        return ""

    def rollback_sql(self, table: TableName, snapshot: str) -> str:
        """The old snapshot made the present one, or its rows as a new one where today's columns are not those of then.

        A column that changed its type is another one to Iceberg: in the old files it would be null.
        """
        metadata = self._metadata(table)
        if not metadata.same_columns(snapshot):
            then = {column.name for column in metadata.columns(snapshot)}
            picked = ", ".join(
                f"CAST({f'`{column.name}`' if column.name in then else 'NULL'} AS {column.type}) AS `{column.name}`"
                for column in metadata.columns()
            )
            return f"INSERT OVERWRITE TABLE {table} SELECT {picked} FROM {table} VERSION AS OF '{snapshot}'"
        return (
            f"CALL {self._catalog.name}.system.set_current_snapshot(table => '{table}', snapshot_id => {int(snapshot)})"
        )

    def place_for_new(self, table: TableName) -> str:
        return ""  # every file has a name of its own

    def drop(self, table: TableName) -> None:
        if not self._catalog.drop(table, datetime.now(UTC).isoformat()):
            raise NoSuchTableError(str(table))

    def undrop(self, table: TableName) -> bool:
        return self._catalog.undrop(table)

    def dropped(self) -> Sequence[TableName]:
        return self._catalog.dropped()

    def _pointer(self, table: TableName) -> str:
        pointer = self._catalog.pointer(table)
        if pointer is None:
            raise NoSuchTableError(str(table))
        return pointer

    def _metadata(self, table: TableName) -> Metadata:
        return read_metadata(self._pointer(table), self._files)
