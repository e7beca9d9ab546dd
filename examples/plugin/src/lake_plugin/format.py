"""`formats = ["iceberg", "hudi", "parquet"]`: folders of Parquet files that others write, as tables that can only be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow
import pyarrow.parquet

from lakehouse.core.errors import NoSuchTableError, NotSupportedError
from lakehouse.core.files import file_uri
from lakehouse.core.format import FormatCapabilities, FormatContext
from lakehouse.core.names import TableName
from lakehouse.core.tables import Column, Drop, FileSlice, Scan, Snapshot, TableInfo
from lakehouse.core.when import Version, resolve

#: Arrow's types in Spark's words, where they differ.
_TYPES = {"int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint", "bool": "boolean"}


def open_tables(context: FormatContext) -> ParquetFolders:
    """Open the tables in the folder `parquet` beside the warehouse: parquet/NAMESPACE/TABLE/*.parquet."""
    return ParquetFolders(context.warehouse.parent / "parquet")


class ParquetFolders:
    """Implements `TableFormat`. A table has one snapshot, the present: its files, and when the newest of them was written."""

    name = "parquet"
    capabilities = FormatCapabilities(branch=False)
    spark = None

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def on(self, branch: str) -> ParquetFolders:
        return self

    def pin(self, tables: Sequence[TableName]) -> ParquetFolders:
        return self

    def at_pointers(self, pointers: Mapping[TableName, str | None]) -> ParquetFolders:
        return self

    def tables(self) -> Sequence[TableName]:
        folders = {file.parent for file in self._folder.glob("*/*/*.parquet")}
        return sorted(TableName(folder.parent.name, folder.name) for folder in folders)

    def has(self, table: TableName) -> bool:
        return bool(self._files(table))

    def describe(self, table: TableName) -> TableInfo:
        (snapshot,) = self.history(table)
        return TableInfo(table, self.name, file_uri(self._path(table)), self._columns(table), current=snapshot)

    def history(self, table: TableName) -> Sequence[Snapshot]:
        files = self._existing(table)
        rows = sum(pyarrow.parquet.read_metadata(file).num_rows for file in files)
        newest = max(file.stat().st_mtime for file in files)
        size = sum(file.stat().st_size for file in files)
        at = datetime.fromtimestamp(newest, UTC)
        return [
            Snapshot(f"{newest:.6f}", at, "append", rows, 0, rows, len(files), size, is_current=True),
        ]

    def resolve(self, table: TableName, when: str, now: datetime) -> str:
        return resolve(when, [Version(known.id, known.at) for known in self.history(table)], {}, now, str(table))

    def scan(self, table: TableName, snapshot: str = "") -> Scan:
        (current,) = self.history(table)
        files = tuple(str(file) for file in self._existing(table))
        return Scan(
            self._columns(table),
            files=files,
            total_rows=current.rows_total,
            total_files=len(files),
            total_bytes=current.bytes_total,
        )

    def file_slices(self, table: TableName) -> Sequence[FileSlice]:
        return ()

    def drop(self, table: TableName) -> None:
        raise NotSupportedError(f"{table} belongs to those who write its files.", f"Delete {self._path(table)}.")

    def undrop(self, table: TableName, drop: str = "") -> bool:
        return False

    def dropped(self) -> Sequence[TableName]:
        return ()

    def drops(self) -> Sequence[Drop]:
        return ()

    def _path(self, table: TableName) -> Path:
        return self._folder / table.namespace / table.table

    def _files(self, table: TableName) -> list[Path]:
        return sorted(self._path(table).glob("*.parquet"))

    def _existing(self, table: TableName) -> list[Path]:
        files = self._files(table)
        if not files:
            raise NoSuchTableError(str(table))
        return files

    def _columns(self, table: TableName) -> tuple[Column, ...]:
        schema = pyarrow.parquet.read_schema(self._existing(table)[-1])
        return tuple(Column(field.name, _type(field.type), not field.nullable) for field in schema)


def _type(kind: pyarrow.DataType) -> str:
    if pyarrow.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pyarrow.types.is_date(kind):
        return "date"
    if pyarrow.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return _TYPES.get(str(kind), str(kind))
