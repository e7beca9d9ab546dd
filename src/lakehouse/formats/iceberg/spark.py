"""Iceberg tables in Spark: the lake's catalog is a Spark catalog, so a session needs no setup."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from lakehouse.core.names import TableName
from lakehouse.core.tables import SchemaCopy
from lakehouse.formats.iceberg.metadata import Metadata


class IcebergSpark:
    """Implements `SparkTables`.

    Args:
        catalog: the name of the Spark catalog.
        metadata: reads the current metadata of a table.
    """

    settings: Mapping[str, str] = MappingProxyType({})
    write_settings: Mapping[str, str] = MappingProxyType({})

    def __init__(self, catalog: str, metadata: Callable[[TableName], Metadata]) -> None:
        self._catalog, self._metadata = catalog, metadata

    def name(self, table: TableName) -> str:
        return f"{self._catalog}.`{table.namespace}`.`{table.table}`"

    def rows(self, table: TableName, snapshot: str = "") -> str:
        # `VERSION AS OF` fails beside Hudi's SQL extension; the name of the snapshot reads the same rows.
        return self.name(table) + (f".snapshot_id_{snapshot}" if snapshot else "")

    def current_snapshot(self, table: TableName) -> str:
        metadata = self._metadata(table)
        # A snapshot does not have a column that was added after it.
        changed = metadata.current_id and metadata.columns(metadata.current_id) != metadata.columns()
        return "" if changed else metadata.current_id

    def setup(self, table: TableName) -> Sequence[str]:
        return ()

    def setup_version(self, table: TableName) -> str:
        return ""

    def schema_copy(self, table: TableName) -> SchemaCopy | None:
        return None

    def rollback_sql(self, table: TableName, snapshot: str) -> str:
        """Set the current snapshot or, where the columns have changed since, insert the rows of the old one.

        A column whose type was changed has a new id in Iceberg: it would be null in the rows of the old files.
        """
        metadata = self._metadata(table)
        if metadata.same_columns(snapshot):
            arguments = f"table => '{table}', snapshot_id => {int(snapshot)}"
            return f"CALL {self._catalog}.system.set_current_snapshot({arguments})"
        then = {column.name for column in metadata.columns(snapshot)}
        selected = ", ".join(
            f"CAST({f'`{column.name}`' if column.name in then else 'NULL'} AS {column.type}) AS `{column.name}`"
            for column in metadata.columns()
        )
        return f"INSERT OVERWRITE TABLE {table} SELECT {selected} FROM {table} VERSION AS OF '{snapshot}'"

    def new_location(self, table: TableName) -> str:
        return ""  # file names are unique, so the default location is always free
