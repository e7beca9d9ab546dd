"""A PyIceberg catalog for Nessie that commits as Iceberg's NessieCatalog does in Spark.

It does not use Nessie's Iceberg REST endpoint: a commit through that writes a metadata file with only the newest snapshot,
and it accepts the first appends of two writers to an empty table. Here a commit writes the complete metadata file and sets
it in Nessie with the hash that it is based on.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

# Only PyIceberg itself loads this module.
from pyiceberg.catalog import Catalog, PropertiesUpdateSummary  # noqa: TID253
from pyiceberg.exceptions import (  # noqa: TID253
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec  # noqa: TID253
from pyiceberg.table import CommitTableResponse, Table  # noqa: TID253
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortOrder  # noqa: TID253

from lakehouse.catalogs.nessie.api import Conflict, Content, Key, NessieApi, Reference, put, remove
from lakehouse.catalogs.nessie.contents import NAMESPACE, TABLE, VIEW, namespace_content, table_content
from lakehouse.core.properties import new_table_properties
from lakehouse.pyiceberg_internals import StagingCatalog, metadata_at

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata

_VIEWS = "Only Spark creates and reads views."


class NessieTables(StagingCatalog):
    """The tables of one branch. Properties: uri, ref, warehouse, token and those of FileIO."""

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
        """Create an empty table."""
        defaults = {
            **new_table_properties(),
            "write.parquet.compression-codec": "zstd",
            **properties,
        }
        staged = self.stage_new_table(identifier, schema, location, partition_spec, sort_order, defaults)
        self.write_staged(staged)
        return self.register_table(identifier, staged.metadata_location)

    def register_table(self, identifier: str | Key, metadata_location: str, overwrite: bool = False) -> Table:
        """Create a table from existing metadata."""
        if overwrite:
            raise NotImplementedError("This catalog cannot overwrite a table.")
        key = _key(identifier)
        existing, seen = self._contents([key])
        if key in existing:
            raise TableAlreadyExistsError(f"Table already exists: {'.'.join(key)}")
        content = table_content(metadata_location, _current_ids(self._metadata_at(metadata_location)))
        try:
            self._commit(seen, f"create {'.'.join(key)}", [put(key, content)])
        except Conflict as exc:
            if not self.namespace_exists(key[:-1]):
                raise NoSuchNamespaceError(f"Namespace does not exist: {'.'.join(key[:-1])}") from exc
            raise TableAlreadyExistsError(f"Table already exists: {'.'.join(key)}") from exc
        return self.load_table(identifier)

    def load_table(self, identifier: str | Key) -> Table:
        """Load a table."""
        return self._load(_key(identifier))[0]

    def commit_table(
        self, table: Table, requirements: tuple[Any, ...], updates: tuple[Any, ...]
    ) -> CommitTableResponse:
        """Replace a table's metadata, if the requirements hold."""
        key = _key(table.name())
        try:
            current, content, seen = self._load(key)
        except NoSuchTableError:
            current, content, seen = None, None, self._contents([key])[1]
        staged = self.stage_update(current, key, requirements, updates)
        if current is not None and staged.metadata == current.metadata:
            return CommitTableResponse(metadata=current.metadata, metadata_location=current.metadata_location)
        self.write_staged(staged)
        new_content = table_content(
            staged.metadata_location, _current_ids(staged.metadata), content["id"] if content else None
        )
        try:
            self._commit(seen, f"{'update' if content else 'create'} {'.'.join(key)}", [put(key, new_content)])
        except Conflict as exc:
            raise CommitFailedException(f"Another writer changed {'.'.join(key)} first.") from exc
        return CommitTableResponse(metadata=staged.metadata, metadata_location=staged.metadata_location)

    def drop_table(self, identifier: str | Key) -> None:
        """Remove a table from the branch and keep its files."""
        key = _key(identifier)
        _, _, seen = self._load(key)
        self._commit_or_fail(seen, f"drop {'.'.join(key)}", [remove(key)])

    def purge_table(self, identifier: str | Key) -> None:
        """Refuse: other branches and tags may use the files."""
        raise NotImplementedError("Other branches and tags may use the table's files. Use drop_table.")

    def rename_table(self, from_identifier: str | Key, to_identifier: str | Key) -> Table:
        """Rename a table."""
        start, end = _key(from_identifier), _key(to_identifier)
        _, content, seen = self._load(start)
        if not self.namespace_exists(end[:-1]):
            raise NoSuchNamespaceError(f"Namespace does not exist: {'.'.join(end[:-1])}")
        if end in self._contents([end])[0]:
            raise TableAlreadyExistsError(f"Table already exists: {'.'.join(end)}")
        # The table keeps its id, which Nessie accepts because the same commit removes the old key.
        self._commit_or_fail(seen, f"rename {'.'.join(start)} to {'.'.join(end)}", [remove(start), put(end, content)])
        return self.load_table(to_identifier)

    def list_tables(self, namespace: str | Key) -> list[Key]:
        """Return the tables of a namespace."""
        return self._list(namespace, TABLE)

    # ---- namespaces ---------------------------------------------------------------------------------------------

    def create_namespace(self, namespace: str | Key, properties: Any = None) -> None:
        """Create a namespace."""
        key = _key(namespace)
        existing, seen = self._contents([key])
        if key in existing:
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
        """Delete an empty namespace."""
        key = _key(namespace)
        self.load_namespace_properties(namespace)
        try:
            self._commit(self._contents([key])[1], f"drop namespace {'.'.join(key)}", [remove(key)])
        except Conflict as exc:
            raise NamespaceNotEmptyError(f"Namespace is not empty: {'.'.join(key)}") from exc

    def list_namespaces(self, namespace: str | Key = ()) -> list[Key]:
        """Return the children of a namespace, or the top-level namespaces."""
        return self._list(namespace, NAMESPACE)

    def load_namespace_properties(self, namespace: str | Key) -> dict[str, str]:
        """Return the properties of a namespace."""
        key = _key(namespace)
        content = self._contents([key])[0].get(key)
        if content is None or content["type"] != NAMESPACE:
            raise NoSuchNamespaceError(f"Namespace does not exist: {'.'.join(key)}")
        return dict(content.get("properties") or {})

    def update_namespace_properties(
        self, namespace: str | Key, removals: set[str] | None = None, updates: Any = None
    ) -> PropertiesUpdateSummary:
        """Set and remove properties of a namespace."""
        key = _key(namespace)
        summary, result = self.update_properties(self.load_namespace_properties(namespace), removals, updates or {})
        existing, seen = self._contents([key])
        content = {**namespace_content(".".join(key), result), "id": existing[key]["id"]}
        self._commit_or_fail(seen, f"change namespace {'.'.join(key)}", [put(key, content)])
        return summary

    # ---- views: only Spark creates and reads them ---------------------------------------------------------------

    def list_views(self, namespace: str | Key) -> list[Key]:
        """Return the views of a namespace."""
        return self._list(namespace, VIEW)

    def view_exists(self, identifier: str | Key) -> bool:
        """Return whether a view has this name."""
        key = _key(identifier)
        return (self._contents([key])[0].get(key) or {}).get("type") == VIEW

    def load_view(self, identifier: str | Key) -> Any:
        """Not supported."""
        raise NotImplementedError(_VIEWS)

    def register_view(self, identifier: str | Key, metadata_location: str) -> Any:
        """Not supported."""
        raise NotImplementedError(_VIEWS)

    def drop_view(self, identifier: str | Key) -> None:
        """Not supported."""
        raise NotImplementedError(_VIEWS)

    # ---- helpers ------------------------------------------------------------------------------------------------

    def _contents(self, keys: Iterable[Key]) -> tuple[dict[Key, Content], str]:
        return self._api.contents(self._ref, keys)

    def _commit(self, seen: str, message: str, operations: list[dict[str, Any]]) -> None:
        self._api.commit(Reference(self._ref, seen), {"message": message}, operations)

    def _commit_or_fail(self, seen: str, message: str, operations: list[dict[str, Any]]) -> None:
        try:
            self._commit(seen, message, operations)
        except Conflict as exc:
            raise CommitFailedException(f"Another writer was first: {message}.") from exc

    def _load(self, key: Key) -> tuple[Table, Content, str]:
        existing, seen = self._contents([key])
        content = existing.get(key)
        if content is None or content["type"] != TABLE:
            raise NoSuchTableError(f"Table does not exist: {'.'.join(key)}")
        location = content["metadataLocation"]
        metadata = self._metadata_at(location)
        table = Table(key, metadata, location, self.file_io(location, metadata.properties), self)
        return table, content, seen

    def _metadata_at(self, location: str) -> TableMetadata:
        return metadata_at(location, self.file_io(location))

    def _list(self, namespace: str | Key, kind: str) -> list[Key]:
        above = Catalog.identifier_to_tuple(namespace) if namespace else ()
        if above:
            self.load_namespace_properties(above)
        entries = self._api.entries(self._ref)
        return [key for key, content in entries if content["type"] == kind and key[:-1] == tuple(above)]

    def default_location(self, namespace: str, table: str) -> str:
        # As NessieCatalog does: a table that is dropped and created again has a new folder.
        return f"{super().default_location(namespace, table)}_{uuid.uuid4()}"


def _key(identifier: str | Key) -> Key:
    return tuple(Catalog.identifier_to_tuple(identifier))


def _current_ids(metadata: TableMetadata) -> dict[str, Any]:
    return {
        "current-snapshot-id": metadata.current_snapshot_id,
        "current-schema-id": metadata.current_schema_id,
        "default-spec-id": metadata.default_spec_id,
        "default-sort-order-id": metadata.default_sort_order_id,
    }
