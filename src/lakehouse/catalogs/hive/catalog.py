"""Iceberg's tables in the Hive Metastore. It has no branches of its own (aside.py).

A pointer is the parameter `metadata_location` of a table's entry. It is exchanged under the metastore's own lock, the one
that Iceberg in Spark, PyIceberg and Trino take for a commit, so that nobody's is overwritten.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from lakehouse.catalogs.hive.metastore import Metastore, alter, entry_of, kind_of, locked, objects
from lakehouse.core.names import CATALOG, TableName
from lakehouse.core.refs import Change, state_of
from lakehouse.core.spark_catalog import spark_catalog

_POINTER = "metadata_location"
_ICEBERG = "iceberg"


@dataclass(frozen=True)
class HiveCatalog:
    """The tables of one metastore.

    Args:
        uri: where it listens, as `thrift://127.0.0.1:9083`.
        warehouse: where new tables go, as a URI.
        io: properties of PyIceberg's file access (`s3.endpoint`, …).
        spark_io: the same for Iceberg in Spark (`io-impl`, `s3.endpoint`, …).
    """

    uri: str
    warehouse: str
    io: Mapping[str, str] = field(default_factory=dict, repr=False)  # there are keys among them
    spark_io: Mapping[str, str] = field(default_factory=dict, repr=False)
    name: str = CATALOG
    called = "The Hive Metastore"
    all_at_once = False

    def __post_init__(self) -> None:
        Metastore(self.uri)  # refuses what is no address

    @cached_property
    def metastore(self) -> Metastore:
        return Metastore(self.uri)

    # ---- settings for others ------------------------------------------------------------------------------------

    def spark_conf(self) -> Mapping[str, str]:
        """What a Spark session needs to see this catalog under its name. It may hold keys."""
        facts = {"type": "hive", "uri": self.uri, "warehouse": self.warehouse, **self.spark_io}
        return spark_catalog(self.name, facts)

    def pyiceberg_properties(self) -> Mapping[str, str]:
        """What `pyiceberg.catalog.load_catalog` needs. It may hold keys."""
        waits = {"lock-check-retries": "30", "lock-check-max-wait-time": "2"}  # by default it gives up after 4 looks
        return {"type": "hive", "uri": self.uri, "warehouse": self.warehouse, **waits, **self.io}

    def ready(self) -> None:
        """See that the metastore is there."""
        with self.metastore.client() as client:
            client.get_all_databases()

    # ---- pointers -----------------------------------------------------------------------------------------------

    def tables(self) -> Sequence[TableName]:
        """Every Iceberg table, by name."""
        return sorted(self.everything())

    def everything(self) -> dict[TableName, str]:
        """Where every Iceberg table points."""
        found = {name: _pointer(entry) for name, entry in self.metastore.entries()}
        return {name: place for name, place in found.items() if place is not None}

    def pointer(self, table: TableName) -> str | None:
        """Where the newest metadata of an Iceberg table is, or None if there is no such table."""
        return self.pointers([table])[table]

    def pointers(self, tables: Iterable[TableName]) -> dict[TableName, str | None]:
        """Where several tables point; those of one namespace are asked for at once, which is all that Hive can."""
        wanted = list(tables)
        found: dict[TableName, str | None] = dict.fromkeys(wanted)
        with self.metastore.client() as client:
            for namespace in dict.fromkeys(table.namespace for table in wanted):
                names = [table.table for table in wanted if table.namespace == namespace]
                for entry in objects(client, namespace, names):
                    found[TableName(namespace, entry.tableName)] = _pointer(entry)
        return found

    def has_view(self, name: TableName) -> bool:
        """Whether the name is a view's."""
        entry = self.metastore.entry(name)
        return entry is not None and entry.tableType == "VIRTUAL_VIEW"

    def ensure_namespace(self, namespace: str) -> None:
        """Make the namespace unless it is there."""
        self.metastore.ensure_database(namespace, f"{self.warehouse.rstrip('/')}/{namespace}.db")

    def move(self, table: TableName, start: str, end: str | None) -> bool:
        """Point a table elsewhere (or, with None, forget it), if it still points where it did."""
        with self.metastore.client() as client, locked(client, table):
            entry = entry_of(client, table)
            if entry is None or _pointer(entry) != start:
                return False
            if end is None:
                client.drop_table(table.namespace, table.table, False)
            else:
                entry.parameters.update({_POINTER: end, f"previous_{_POINTER}": start})
                entry.sd.cols = self._columns(end)
                alter(client, table, entry)
        return True

    def _columns(self, pointer: str) -> list[Any]:
        """A table's columns in Hive's words, for those who ask the metastore alone."""
        from hive_metastore.ttypes import FieldSchema
        from pyiceberg.catalog.hive import SchemaToHiveConverter
        from pyiceberg.schema import visit
        from pyiceberg.table import StaticTable

        fields = StaticTable.from_metadata(pointer, dict(self.io)).schema().fields
        return [
            FieldSchema(each.name, visit(each.field_type, SchemaToHiveConverter(False)), each.doc) for each in fields
        ]

    def change(self, changes: Sequence[Change]) -> bool:
        """Make a change, if the table is where it begins: one, as Hive knows no moment of several tables."""
        (change,) = changes
        if change.after is None:
            return self.pointer(change.table) == change.before and self.drop(change.table, "")
        if change.before is None:
            return self._registered(change.table, change.after)
        return self.move(change.table, change.before, change.after)

    def is_done(self, change: Change) -> bool:
        """Whether a table is what a change makes of it."""
        return self.pointer(change.table) == change.after

    def _registered(self, table: TableName, pointer: str) -> bool:
        """Make an entry for a table that is there already; False if the name is taken."""
        from pyiceberg.catalog import load_catalog
        from pyiceberg.exceptions import TableAlreadyExistsError

        self.ensure_namespace(table.namespace)
        theirs = load_catalog(self.name, **self.pyiceberg_properties())
        try:
            theirs.register_table((table.namespace, table.table), pointer)
        except TableAlreadyExistsError:
            return False
        return True

    def state(self) -> str:
        """A hash of where everything points: it changes whenever anything does."""
        return state_of(self.everything())

    # ---- soft drop ----------------------------------------------------------------------------------------------

    def drop(self, table: TableName, at: str) -> bool:
        """Move the table's entry to another database; its files stay."""
        return self.metastore.drop(table, _ICEBERG, self.warehouse)

    def undrop(self, table: TableName) -> bool:
        """Bring back what was dropped last under that name."""
        return self.metastore.undrop(table, _ICEBERG)

    def dropped(self) -> Sequence[TableName]:
        """The names that `undrop` knows."""
        return self.metastore.dropped(_ICEBERG)


def _pointer(entry: Any) -> str | None:
    """Where an entry's Iceberg metadata is; None for a table of another format and for a view."""
    return (entry.parameters or {}).get(_POINTER) if kind_of(entry) == _ICEBERG else None
