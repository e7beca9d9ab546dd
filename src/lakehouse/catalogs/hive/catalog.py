"""Implements `BaseCatalog` with the Iceberg tables of a Hive Metastore.

A pointer is the parameter `metadata_location` of a table's entry. It is replaced under the metastore's own lock, which
Iceberg in Spark, PyIceberg and Trino take for a commit as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from lakehouse.catalogs.hive.metastore import Metastore, MetastoreEntries, alter, entry_of, format_of, locked, objects
from lakehouse.core.catalog import CatalogCapabilities, NoClients
from lakehouse.core.clients import spark_catalog
from lakehouse.core.dataclass import dataclass
from lakehouse.core.names import CATALOG, TableName
from lakehouse.core.refs import Change, hash_pointers
from lakehouse.core.state import TableEntry
from lakehouse.core.tables import Drop

_POINTER = "metadata_location"
_ICEBERG = "iceberg"
_VIEW = "VIRTUAL_VIEW"


@dataclass(frozen=True)
class HiveCatalog(NoClients):
    """The tables of one metastore.

    Args:
        uri: its address, such as `thrift://127.0.0.1:9083`.
        warehouse: the URI below which new tables are created.
        io: PyIceberg's FileIO properties (`s3.endpoint`, …).
        spark_io: the same for Iceberg in Spark (`io-impl`, `s3.endpoint`, …).
        scratch: a local folder for temporary files of Hive's client in Spark.
    """

    uri: str
    warehouse: str
    io: Mapping[str, str] = field(default_factory=dict, repr=False)  # it may hold keys
    spark_io: Mapping[str, str] = field(default_factory=dict, repr=False)
    scratch: Path = Path("/tmp/hive")
    name: str = CATALOG
    display_name: ClassVar[str] = "The Hive Metastore"
    capabilities: ClassVar[CatalogCapabilities] = CatalogCapabilities(multi_table_publish=False, shared=True)

    def __post_init__(self) -> None:
        Metastore(self.uri)  # checks the address

    @cached_property
    def metastore(self) -> Metastore:
        return Metastore(self.uri)

    # ---- settings of other programs -----------------------------------------------------------------------------

    def spark_conf(self) -> Mapping[str, str]:
        own = {"type": "hive", "uri": self.uri, "warehouse": self.warehouse}
        iceberg = spark_catalog(self.name, {**own, "table-default.gc.enabled": "false", **self.spark_io})
        return {**iceberg, **self._hive_session()} if self.spark_io else iceberg

    def _hive_session(self) -> Mapping[str, str]:
        """Return the settings of a session on the metastore, where Hudi registers tables of a bucket and their schemas."""
        return {
            "spark.sql.catalogImplementation": "hive",
            "spark.hadoop.hive.metastore.uris": self.uri,
            "spark.sql.warehouse.dir": self.warehouse,
            "spark.hadoop.hive.exec.scratchdir": str(self.scratch),
            "spark.hadoop.hive.exec.local.scratchdir": str(self.scratch),
        }

    def trino_catalogs(self, name: str) -> Mapping[str, Mapping[str, str]]:
        """Return three catalogs: a table is found by its plain name in the first, whatever its format is.

        Iceberg's catalog hands on what is not its own to Hive's, and that knows which connector reads it.
        """
        metastore = {"hive.metastore.uri": self.uri}
        return {
            name: {
                "connector.name": "iceberg",
                "iceberg.catalog.type": "hive_metastore",
                **metastore,
                "iceberg.hive-catalog-name": "metastore",
            },
            "metastore": {
                "connector.name": "hive",
                **metastore,
                "hive.iceberg-catalog-name": name,
                "hive.hudi-catalog-name": "hudi",
            },
            "hudi": {"connector.name": "hudi", **metastore},
        }

    def pyiceberg_properties(self) -> Mapping[str, str]:
        retries = {"lock-check-retries": "30", "lock-check-max-wait-time": "2"}  # the default is 4 checks
        return {"type": "hive", "uri": self.uri, "warehouse": self.warehouse, **retries, **self.io}

    def entries_of(self, table_format: str) -> MetastoreEntries:
        return MetastoreEntries(self.metastore, self.warehouse, table_format)

    def ensure_ready(self) -> None:
        with self.metastore.client() as client:
            client.get_all_databases()

    # ---- pointers -----------------------------------------------------------------------------------------------

    def tables(self) -> Sequence[TableName]:
        return sorted(self.all_pointers())

    def all_pointers(self) -> dict[TableName, str]:
        pointers = {name: _pointer(entry) for name, entry in self.metastore.entries()}
        return {name: pointer for name, pointer in pointers.items() if pointer is not None}

    def pointer(self, table: TableName) -> str | None:
        return self.pointers([table])[table]

    def pointers(self, tables: Iterable[TableName]) -> dict[TableName, str | None]:
        """Return the pointers of several tables; Hive reads those of one namespace at one moment."""
        listed = list(tables)
        pointers: dict[TableName, str | None] = dict.fromkeys(listed)
        with self.metastore.client() as client:
            for namespace in dict.fromkeys(table.namespace for table in listed):
                names = [table.table for table in listed if table.namespace == namespace]
                for entry in objects(client, namespace, names):
                    pointers[TableName(namespace, entry.tableName)] = _pointer(entry)
        return pointers

    def has_view(self, name: TableName) -> bool:
        entry = self.metastore.entry(name)
        return entry is not None and entry.tableType == _VIEW

    def views(self) -> Sequence[TableName]:
        return sorted(name for name, entry in self.metastore.entries() if entry.tableType == _VIEW)

    def ensure_namespace(self, namespace: str) -> None:
        self.metastore.ensure_database(namespace, f"{self.warehouse.rstrip('/')}/{namespace}.db")

    def swap_pointer(self, table: TableName, expected: str, new: str | None) -> bool:
        with self.metastore.client() as client, locked(client, table):
            entry = entry_of(client, table)
            if entry is None or _pointer(entry) != expected:
                return False
            if new is None:
                client.drop_table(table.namespace, table.table, False)
            else:
                entry.parameters.update({_POINTER: new, f"previous_{_POINTER}": expected})
                entry.sd.cols = self._columns(new)
                alter(client, table, entry)
        return True

    def _columns(self, pointer: str) -> list[Any]:
        """Return a table's columns with Hive's types, for clients that read only the metastore."""
        from hive_metastore.ttypes import FieldSchema
        from pyiceberg.catalog.hive import SchemaToHiveConverter
        from pyiceberg.schema import visit

        from lakehouse.pyiceberg_internals import table_at

        fields = table_at(pointer, self.io).schema().fields
        return [
            FieldSchema(field.name, visit(field.field_type, SchemaToHiveConverter(False)), field.doc)
            for field in fields
        ]

    def commit(self, changes: Sequence[Change]) -> bool:
        (change,) = changes  # capabilities.multi_table_publish is false
        if change.after is None:
            return self.metastore.drop(
                change.table, _ICEBERG, self.warehouse, lambda entry: _pointer(entry) == change.before
            )
        if change.before is None:
            return self._register(change.table, change.after)
        return self.swap_pointer(change.table, change.before, change.after)

    def is_committed(self, change: Change) -> bool:
        return self.pointer(change.table) == change.after

    def _register(self, table: TableName, pointer: str) -> bool:
        """Create an entry for existing metadata; False if the name is taken."""
        from pyiceberg.catalog import load_catalog
        from pyiceberg.exceptions import TableAlreadyExistsError

        self.ensure_namespace(table.namespace)
        catalog = load_catalog(self.name, **self.pyiceberg_properties())
        try:
            catalog.register_table((table.namespace, table.table), pointer)
        except TableAlreadyExistsError:
            return False
        return True

    def state_hash(self) -> str:
        return hash_pointers(self.all_pointers())

    # ---- soft drop ----------------------------------------------------------------------------------------------

    def drop(self, table: TableName, at: str) -> bool:
        return self.metastore.drop(table, _ICEBERG, self.warehouse)

    def undrop(self, table: TableName, drop: str = "") -> bool:
        return self.metastore.undrop(table, _ICEBERG, drop)

    def dropped(self) -> Sequence[TableName]:
        return self.metastore.dropped(_ICEBERG)

    def drops(self) -> Sequence[Drop]:
        return self.metastore.drops(_ICEBERG)

    def dropped_entries(self) -> Sequence[TableEntry]:
        names = dict(self.metastore.dropped_names(_ICEBERG))
        return [TableEntry(names[now], pointer) for now, pointer in self.pointers(names).items() if pointer is not None]


def _pointer(entry: Any) -> str | None:
    """Return the pointer of an entry; None for a table of another format and for a view."""
    return (entry.parameters or {}).get(_POINTER) if format_of(entry) == _ICEBERG else None
