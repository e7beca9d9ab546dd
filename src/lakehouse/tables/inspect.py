"""The metadata of a table: the tree that it consists of, and the content of each of its files."""

from __future__ import annotations

from dataclasses import replace

from lakehouse.core.errors import NotSupportedError, UnknownChoiceError
from lakehouse.core.format import TableDirectory
from lakehouse.core.inspection import LAYERS, Inspectable, InspectRequest, MetadataFile, MetadataNode
from lakehouse.core.names import TableName


def inspect_table(tables: TableDirectory, name: TableName, when: str, request: InspectRequest) -> MetadataNode:
    """Return the metadata of a table as a tree, of all snapshots or of the one at a WHEN."""
    if request.layer not in LAYERS:
        raise UnknownChoiceError("layer", request.layer, LAYERS)
    return _format(tables, name).inspect(name, replace(request, snapshot=tables.snapshot_at(name, when)))


def inspect_file(
    tables: TableDirectory, name: TableName, path: str, when: str, request: InspectRequest
) -> MetadataFile:
    """Return the content of a file that belongs to a table; NotFoundError for any other file."""
    return _format(tables, name).metadata_file(name, path, replace(request, snapshot=tables.snapshot_at(name, when)))


def _format(tables: TableDirectory, name: TableName) -> Inspectable:
    table_format = tables.format_of(name)
    if not isinstance(table_format, Inspectable):
        raise NotSupportedError(
            f"Tables of the format {table_format.name} do not show their metadata.", "lake describe"
        )
    return table_format
