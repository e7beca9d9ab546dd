"""Nessie as a catalog of PyIceberg's: the same commits that Iceberg's NessieCatalog makes in Spark.

Nessie's own Iceberg REST endpoint is not used for writing: every commit through it writes a metadata file with the newest
snapshot alone, and a first append to an empty table is accepted from two writers at once. Here a commit writes the whole
metadata file and puts it into Nessie under the hash that it was made from.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

# Whoever loads this module has asked PyIceberg for it.
from pyiceberg.catalog import Catalog, MetastoreCatalog, PropertiesUpdateSummary  # noqa: TID253
from pyiceberg.exceptions import (  # noqa: TID253
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec  # noqa: TID253
from pyiceberg.serializers import FromInputFile  # noqa: TID253
from pyiceberg.table import CommitTableResponse, StagedTable, Table  # noqa: TID253
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortOrder  # noqa: TID253

from lakehouse.catalogs.nessie.api import Conflict, Content, Key, NessieApi, Reference, put, remove
from lakehouse.catalogs.nessie.contents import NAMESPACE, TABLE, VIEW, namespace_content, table_content

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata

_VIEWS = "Views are made and read by Spark."


class NessieTables(MetastoreCatalog):  # type: ignore[misc] # PyIceberg's types are not looked at
    """One branch of a Nessie, for PyIceberg. Properties: uri, ref, warehouse, token and those of file access."""

    def __init__(self, name: str, **properties: str) -> None:
        super().__init__(name, **properties)
        self._api = NessieApi(properties["uri"], properties.get("token", ""))
        self._ref = properties.get("ref", "main")

    # ---- tables -------------------------------------------------------------------------------------------------

    def create_table(
        self,
        identifier: str | Key,
        schema: Any,
        location: str | None = None,
        partition_spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
        sort_order: SortOrder = UNSORTED_SORT_ORDER,
        properties: Mapping[str, str] = MappingProxyType({}),
    ) -> Table:
        """A new, empty table."""
        ours = {
            "format-version": "2",
            # Nessie's branches and tags share files that a table by itself does not know to be in use.
            "gc.enabled": "false",
            "write.parquet.compression-codec": "zstd",
            **properties,
        }
        staged = self._create_staged_table(identifier, schema, location, partition_spec, sort_order, ours)
        self._write_metadata(staged.metadata, staged.io, staged.metadata_location)
        return self.register_table(identifier, staged.metadata_location)

    def register_table(self, identifier: str | Key, metadata_location: str, overwrite: bool = False) -> Table:
        """A table whose metadata lies somewhere already."""
        if overwrite:
            raise NotImplementedError("A table is not put over another one.")
        key = _key(identifier)
        found, seen = self._contents([key])
        if key in found:
            raise TableAlreadyExistsError(f"Table already exists: {'.'.join(key)}")
        content = table_content(metadata_location, _dumped(self._metadata_at(metadata_location)))
        try:
            self._commit(seen, f"create {'.'.join(key)}", [put(key, content)])
        except Conflict as exc:
            if not self.namespace_exists(key[:-1]):
                raise NoSuchNamespaceError(f"Namespace does not exist: {'.'.join(key[:-1])}") from exc
            raise TableAlreadyExistsError(f"Table already exists: {'.'.join(key)}") from exc
        return self.load_table(identifier)

    def load_table(self, identifier: str | Key) -> Table:
        """A table as the branch has it now."""
        return self._loaded(_key(identifier))[0]

    def commit_table(
        self, table: Table, requirements: tuple[Any, ...], updates: tuple[Any, ...]
    ) -> CommitTableResponse:
        """Exchange a table's metadata, if it is still what the change was made from."""
        key = _key(table.name())
        try:
            current, content, seen = self._loaded(key)
        except NoSuchTableError:
            current, content, seen = None, None, self._contents([key])[1]
        staged: StagedTable = self._update_and_stage_table(current, key, requirements, updates)
        if current is not None and staged.metadata == current.metadata:
            return CommitTableResponse(metadata=current.metadata, metadata_location=current.metadata_location)
        self._write_metadata(staged.metadata, staged.io, staged.metadata_location)
        told = table_content(staged.metadata_location, _dumped(staged.metadata), content["id"] if content else None)
        try:
            self._commit(seen, f"{'update' if content else 'create'} {'.'.join(key)}", [put(key, told)])
        except Conflict as exc:
            raise CommitFailedException(f"Another writer changed {'.'.join(key)} first.") from exc
        return CommitTableResponse(metadata=staged.metadata, metadata_location=staged.metadata_location)

    def drop_table(self, identifier: str | Key) -> None:
        """Take a table out of the branch; its files stay."""
        key = _key(identifier)
        _, _, seen = self._loaded(key)
        self._commit_or_fail(seen, f"drop {'.'.join(key)}", [remove(key)])

    def purge_table(self, identifier: str | Key) -> None:
        """Never: other branches and tags may need the files."""
        raise NotImplementedError("Files of a table may be in use on other branches and by tags. Use drop_table.")

    def rename_table(self, from_identifier: str | Key, to_identifier: str | Key) -> Table:
        """The same table under another name."""
        start, end = _key(from_identifier), _key(to_identifier)
        _, content, seen = self._loaded(start)
        if not self.namespace_exists(end[:-1]):
            raise NoSuchNamespaceError(f"Namespace does not exist: {'.'.join(end[:-1])}")
        if end in self._contents([end])[0]:
            raise TableAlreadyExistsError(f"Table already exists: {'.'.join(end)}")
        # A table that moves keeps its id, which Nessie takes where the same commit removes it elsewhere.
        self._commit_or_fail(seen, f"rename {'.'.join(start)} to {'.'.join(end)}", [remove(start), put(end, content)])
        return self.load_table(to_identifier)

    def list_tables(self, namespace: str | Key) -> list[Key]:
        """The tables right in a namespace."""
        return self._listed(namespace, TABLE)

    # ---- namespaces ---------------------------------------------------------------------------------------------

    def create_namespace(self, namespace: str | Key, properties: Any = None) -> None:
        """A new namespace."""
        key = _key(namespace)
        found, seen = self._contents([key])
        if key in found:
            raise NamespaceAlreadyExistsError(f"Namespace already exists: {'.'.join(key)}")
        try:
            self._commit(
                seen, f"create namespace {'.'.join(key)}", [put(key, namespace_content(".".join(key), properties))]
            )
        except Conflict as exc:
            if len(key) > 1 and not self.namespace_exists(key[:-1]):
                raise NoSuchNamespaceError(f"Namespace does not exist: {'.'.join(key[:-1])}") from exc
            raise NamespaceAlreadyExistsError(f"Namespace already exists: {'.'.join(key)}") from exc

    def drop_namespace(self, namespace: str | Key) -> None:
        """Take away an empty namespace."""
        key = _key(namespace)
        self.load_namespace_properties(namespace)
        try:
            self._commit(self._contents([key])[1], f"drop namespace {'.'.join(key)}", [remove(key)])
        except Conflict as exc:
            raise NamespaceNotEmptyError(f"Namespace is not empty: {'.'.join(key)}") from exc

    def list_namespaces(self, namespace: str | Key = ()) -> list[Key]:
        """The namespaces right below another, or at the top."""
        return self._listed(namespace, NAMESPACE)

    def load_namespace_properties(self, namespace: str | Key) -> dict[str, str]:
        """The properties of a namespace."""
        key = _key(namespace)
        found = self._contents([key])[0].get(key)
        if found is None or found["type"] != NAMESPACE:
            raise NoSuchNamespaceError(f"Namespace does not exist: {'.'.join(key)}")
        return dict(found.get("properties") or {})

    def update_namespace_properties(
        self, namespace: str | Key, removals: set[str] | None = None, updates: Any = None
    ) -> PropertiesUpdateSummary:
        """Change some properties of a namespace."""
        key = _key(namespace)
        summary, wanted = self._get_updated_props_and_update_summary(
            self.load_namespace_properties(namespace), removals, updates or {}
        )
        found, seen = self._contents([key])
        content = {**namespace_content(".".join(key), wanted), "id": found[key]["id"]}
        self._commit_or_fail(seen, f"change namespace {'.'.join(key)}", [put(key, content)])
        return summary

    # ---- views: Spark's business --------------------------------------------------------------------------------

    def list_views(self, namespace: str | Key) -> list[Key]:
        """The views right in a namespace."""
        return self._listed(namespace, VIEW)

    def view_exists(self, identifier: str | Key) -> bool:
        """Whether the name is a view's."""
        key = _key(identifier)
        return (self._contents([key])[0].get(key) or {}).get("type") == VIEW

    def load_view(self, identifier: str | Key) -> Any:
        """Not here."""
        raise NotImplementedError(_VIEWS)

    def register_view(self, identifier: str | Key, metadata_location: str) -> Any:
        """Not here."""
        raise NotImplementedError(_VIEWS)

    def drop_view(self, identifier: str | Key) -> None:
        """Not here."""
        raise NotImplementedError(_VIEWS)

    # ---- parts --------------------------------------------------------------------------------------------------

    def _contents(self, keys: Iterable[Key]) -> tuple[dict[Key, Content], str]:
        return self._api.contents(self._ref, keys)

    def _commit(self, seen: str, message: str, operations: list[dict[str, Any]]) -> None:
        self._api.commit(Reference(self._ref, seen), {"message": message}, operations)

    def _commit_or_fail(self, seen: str, message: str, operations: list[dict[str, Any]]) -> None:
        try:
            self._commit(seen, message, operations)
        except Conflict as exc:
            raise CommitFailedException(f"Another writer was first: {message}.") from exc

    def _loaded(self, key: Key) -> tuple[Table, Content, str]:
        found, seen = self._contents([key])
        content = found.get(key)
        if content is None or content["type"] != TABLE:
            raise NoSuchTableError(f"Table does not exist: {'.'.join(key)}")
        location = content["metadataLocation"]
        metadata = self._metadata_at(location)
        table = Table(key, metadata, location, self._load_file_io(metadata.properties, location), self)
        return table, content, seen

    def _metadata_at(self, location: str) -> TableMetadata:
        return FromInputFile.table_metadata(self._load_file_io(location=location).new_input(location))

    def _listed(self, namespace: str | Key, kind: str) -> list[Key]:
        above = Catalog.identifier_to_tuple(namespace) if namespace else ()
        if above:
            self.load_namespace_properties(above)
        found = self._api.entries(self._ref)
        return [key for key, content in found if content["type"] == kind and key[:-1] == tuple(above)]

    def _get_default_warehouse_location(self, database_name: str, table_name: str) -> str:
        # As NessieCatalog does: a table that was dropped and made again shares no folder with the old one.
        return f"{super()._get_default_warehouse_location(database_name, table_name)}_{uuid.uuid4()}"


def _key(identifier: str | Key) -> Key:
    return tuple(Catalog.identifier_to_tuple(identifier))


def _dumped(metadata: TableMetadata) -> dict[str, Any]:
    return {
        "current-snapshot-id": metadata.current_snapshot_id,
        "current-schema-id": metadata.current_schema_id,
        "default-spec-id": metadata.default_spec_id,
        "default-sort-order-id": metadata.default_sort_order_id,
    }
