"""The JSON catalog as a catalog of PyIceberg, through which strangers read and write its tables."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pyiceberg.catalog import Catalog, PropertiesUpdateSummary
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortOrder

from lake_plugin.pointers import PointerFile
from lakehouse.core.properties import new_table_properties
from lakehouse.pyiceberg_internals import StagingCatalog

Name = str | tuple[str, ...]


class JsonTables(StagingCatalog):
    """The tables of one file. Properties: path, wait-s, warehouse and those of FileIO."""

    def __init__(self, name: str, **properties: str) -> None:
        super().__init__(name, **properties)
        self._file = PointerFile(Path(properties["path"]), float(properties["wait-s"]))

    # ---- tables -------------------------------------------------------------------------------------------------

    def create_table(
        self,
        identifier: Name,
        schema: Any,
        location: str | None = None,
        partition_spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
        sort_order: SortOrder = UNSORTED_SORT_ORDER,
        properties: Mapping[str, str] = MappingProxyType({}),
    ) -> Table:
        """Create an empty table."""
        own = {**new_table_properties(), **properties}
        staged = self.stage_new_table(identifier, schema, location, partition_spec, sort_order, own)
        self.write_staged(staged)
        return self.register_table(identifier, staged.metadata_location)

    def register_table(self, identifier: Name, metadata_location: str, overwrite: bool = False) -> Table:
        """Create a table from existing metadata."""
        name = _text(identifier)
        with self._file.changing() as content:
            if name in content["tables"] and not overwrite:
                raise TableAlreadyExistsError(f"Table already exists: {name}")
            self._require_namespace(content, name.rpartition(".")[0])
            content["tables"][name] = metadata_location
        return self.load_table(identifier)

    def load_table(self, identifier: Name) -> Table:
        """Load a table."""
        location = self._file.read()["tables"].get(_text(identifier))
        if location is None:
            raise NoSuchTableError(f"Table does not exist: {_text(identifier)}")
        metadata = FromInputFile.table_metadata(self.file_io(location).new_input(location))
        io = self.file_io(location, metadata.properties)
        return Table(Catalog.identifier_to_tuple(identifier), metadata, location, io, self)

    def commit_table(
        self, table: Table, requirements: tuple[Any, ...], updates: tuple[Any, ...]
    ) -> CommitTableResponse:
        """Replace a table's metadata, if the requirements hold and nobody else has replaced it meanwhile."""
        name = _text(table.name())
        try:
            current = self.load_table(name)
        except NoSuchTableError:
            current = None
        staged = self.stage_update(current, Catalog.identifier_to_tuple(name), requirements, updates)
        if current is not None and staged.metadata == current.metadata:
            return CommitTableResponse(metadata=current.metadata, metadata_location=current.metadata_location)
        self.write_staged(staged)
        with self._file.changing() as content:
            self._require_namespace(content, name.rpartition(".")[0])
            if content["tables"].get(name) != (current.metadata_location if current else None):
                raise CommitFailedException(f"Another writer changed {name} first.")
            content["tables"][name] = staged.metadata_location
        return CommitTableResponse(metadata=staged.metadata, metadata_location=staged.metadata_location)

    def drop_table(self, identifier: Name) -> None:
        """Remove a table and keep its files; `lake undrop` restores it."""
        name = _text(identifier)
        with self._file.changing() as content:
            if name not in content["tables"]:
                raise NoSuchTableError(f"Table does not exist: {name}")
            content["dropped"].append({"table": name, "pointer": content["tables"].pop(name), "at": ""})

    def purge_table(self, identifier: Name) -> None:
        """Refuse: branches and tags may use the files."""
        raise NotImplementedError("Branches and tags may use the table's files. Use drop_table.")

    def rename_table(self, from_identifier: Name, to_identifier: Name) -> Table:
        """Rename a table."""
        start, end = _text(from_identifier), _text(to_identifier)
        with self._file.changing() as content:
            if start not in content["tables"]:
                raise NoSuchTableError(f"Table does not exist: {start}")
            if end in content["tables"]:
                raise TableAlreadyExistsError(f"Table already exists: {end}")
            self._require_namespace(content, end.rpartition(".")[0])
            content["tables"][end] = content["tables"].pop(start)
        return self.load_table(to_identifier)

    def list_tables(self, namespace: Name) -> list[tuple[str, ...]]:
        """Return the tables of a namespace."""
        content, space = self._file.read(), _text(namespace)
        self._require_namespace(content, space)
        return [tuple(name.split(".")) for name in content["tables"] if name.rpartition(".")[0] == space]

    # ---- namespaces ---------------------------------------------------------------------------------------------

    def create_namespace(self, namespace: Name, properties: Any = None) -> None:
        """Create a namespace."""
        with self._file.changing() as content:
            if _text(namespace) in content["namespaces"]:
                raise NamespaceAlreadyExistsError(f"Namespace already exists: {_text(namespace)}")
            content["namespaces"][_text(namespace)] = dict(properties or {})

    def drop_namespace(self, namespace: Name) -> None:
        """Delete an empty namespace."""
        space = _text(namespace)
        with self._file.changing() as content:
            self._require_namespace(content, space)
            if any(name.rpartition(".")[0] == space for name in content["tables"]):
                raise NamespaceNotEmptyError(f"Namespace is not empty: {space}")
            del content["namespaces"][space]

    def list_namespaces(self, namespace: Name = ()) -> list[tuple[str, ...]]:
        """Return the top-level namespaces; there are no others."""
        return [] if namespace else [(space,) for space in sorted(self._file.read()["namespaces"])]

    def load_namespace_properties(self, namespace: Name) -> dict[str, str]:
        """Return the properties of a namespace."""
        content = self._file.read()
        self._require_namespace(content, _text(namespace))
        return dict(content["namespaces"][_text(namespace)])

    def update_namespace_properties(
        self, namespace: Name, removals: set[str] | None = None, updates: Any = None
    ) -> PropertiesUpdateSummary:
        """Set and remove properties of a namespace."""
        with self._file.changing() as content:
            self._require_namespace(content, _text(namespace))
            before = content["namespaces"][_text(namespace)]
            summary, content["namespaces"][_text(namespace)] = self.update_properties(before, removals, updates or {})
        return summary

    # ---- views: there are none ----------------------------------------------------------------------------------

    def list_views(self, namespace: Name) -> list[tuple[str, ...]]:
        """Return nothing."""
        return []

    def view_exists(self, identifier: Name) -> bool:
        """Return False."""
        return False

    def load_view(self, identifier: Name) -> Any:
        """Not supported."""
        raise NotImplementedError("A JSON catalog has no views.")

    def register_view(self, identifier: Name, metadata_location: str) -> Any:
        """Not supported."""
        raise NotImplementedError("A JSON catalog has no views.")

    def drop_view(self, identifier: Name) -> None:
        """Not supported."""
        raise NotImplementedError("A JSON catalog has no views.")

    # ---- helpers ------------------------------------------------------------------------------------------------

    def default_location(self, namespace: str, table: str) -> str:
        # A table that is dropped and created again has a new folder: the old one can still be restored.
        return f"{super().default_location(namespace, table)}_{uuid.uuid4()}"

    @staticmethod
    def _require_namespace(content: Mapping[str, Any], namespace: str) -> None:
        if namespace not in content["namespaces"]:
            raise NoSuchNamespaceError(f"Namespace does not exist: {namespace}")


def _text(identifier: Name) -> str:
    return ".".join(Catalog.identifier_to_tuple(identifier))
