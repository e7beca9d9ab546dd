"""What a Hudi table's folder states about the table: instants, schema, properties."""

from __future__ import annotations

from dataclasses import field
from functools import cached_property

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import NoSuchTableError
from lakehouse.core.names import TableName
from lakehouse.core.tables import Column
from lakehouse.formats.hudi import timeline
from lakehouse.formats.hudi.locations import Locations
from lakehouse.formats.hudi.timeline import Instant


def read_metadata(locations: Locations, table: TableName) -> HudiMetadata:
    """Return the metadata of a table as it is now; each part is read on first use."""
    location = locations.find(table)
    if location is None:
        raise NoSuchTableError(str(table))
    return HudiMetadata(location, locations)


@dataclass(frozen=True)
class HudiMetadata:
    """The metadata of one table."""

    location: str
    """The URI of the table's folder."""
    _locations: Locations = field(repr=False)

    @cached_property
    def instants(self) -> list[Instant]:
        """The completed commits, oldest first."""
        return timeline.instants(timeline.open_table(self.location, self._locations.access))

    @cached_property
    def properties(self) -> dict[str, str]:
        """The table's `hoodie.properties`."""
        lines = self._locations.read(f"{self.location}/.hoodie/hoodie.properties").decode().splitlines()
        pairs = (line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
        return {key: value.replace("\\:", ":") for key, value in pairs}

    def columns(self, snapshot: str = "") -> tuple[Column, ...]:
        """Return the schema now or at a snapshot; before the first commit, the schema of CREATE TABLE."""
        until = [instant for instant in self.instants if not snapshot or instant.id <= snapshot]
        if until:
            return timeline.columns(until[-1])
        return timeline.columns_of(self.properties.get("hoodie.table.create.schema") or '{"fields": []}')

    @property
    def partitioning(self) -> tuple[str, ...]:
        """The partition columns."""
        return _names(self.properties.get("hoodie.table.partition.fields", ""))

    @property
    def key(self) -> tuple[str, ...]:
        """The record key columns."""
        return _names(self.properties.get("hoodie.table.recordkey.fields", ""))


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip().split(":")[0] for part in text.split(",") if part.strip())
