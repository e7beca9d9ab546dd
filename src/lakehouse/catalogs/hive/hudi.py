"""Hudi's tables in the metastore: where each one's folder is. Hudi itself keeps the entries in step with its commits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakehouse.catalogs.hive.metastore import Metastore, kind_of
from lakehouse.core.names import TableName

_HUDI = "hudi"


@dataclass(frozen=True)
class HudiEntries:
    """The Hudi tables of one metastore."""

    metastore: Metastore
    warehouse: str

    def tables(self) -> Sequence[TableName]:
        """Every one, by name."""
        return sorted(name for name, entry in self.metastore.entries() if kind_of(entry) == _HUDI)

    def location(self, table: TableName) -> str | None:
        """The folder of a table, or None if there is no such table."""
        entry = self.metastore.entry(table)
        return str(entry.sd.location).rstrip("/") if entry is not None and kind_of(entry) == _HUDI else None

    def drop(self, table: TableName) -> bool:
        """Take the entry away; the files stay."""
        return self.metastore.drop(table, _HUDI, self.warehouse)

    def undrop(self, table: TableName) -> bool:
        """Bring back what was dropped last under that name."""
        return self.metastore.undrop(table, _HUDI)

    def dropped(self) -> Sequence[TableName]:
        """The names that `undrop` knows."""
        return self.metastore.dropped(_HUDI)
