"""Implements `FormatEntries`: the tables of one format in a metastore, by their folders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakehouse.catalogs.hive.metastore import Metastore, format_of
from lakehouse.core.names import TableName


@dataclass(frozen=True)
class MetastoreEntries:
    """The tables of one format. The format's writers update the entries with their commits."""

    metastore: Metastore
    warehouse: str
    table_format: str

    def tables(self) -> Sequence[TableName]:
        return sorted(name for name, entry in self.metastore.entries() if format_of(entry) == self.table_format)

    def location(self, table: TableName) -> str | None:
        entry = self.metastore.entry(table)
        found = entry is not None and format_of(entry) == self.table_format
        return str(entry.sd.location).rstrip("/") if found else None

    def drop(self, table: TableName) -> bool:
        return self.metastore.drop(table, self.table_format, self.warehouse)

    def undrop(self, table: TableName) -> bool:
        return self.metastore.undrop(table, self.table_format)

    def dropped(self) -> Sequence[TableName]:
        return self.metastore.dropped(self.table_format)
