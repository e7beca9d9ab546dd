"""Tables as Nessie keeps them: a key, the place of the metadata file, and which parts of that file are current."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lakehouse.catalogs.nessie.api import Content, Key
from lakehouse.core.names import TableName

TABLE, VIEW, NAMESPACE = "ICEBERG_TABLE", "ICEBERG_VIEW", "NAMESPACE"
_NO_SNAPSHOT = -1


def key_of(table: TableName) -> Key:
    """Where Nessie keeps a table; the levels of a namespace are parts of the key."""
    return (*table.namespace.split("."), table.table)


def name_of(key: Key) -> TableName:
    """The table or view under a key."""
    return TableName(".".join(key[:-1]), key[-1])


def pointer_of(content: Content | None) -> str | None:
    """Where the metadata of a table or view is; None for what is neither."""
    if content is None or content["type"] not in (TABLE, VIEW):
        return None
    return str(content["metadataLocation"])


def table_content(location: str, metadata: Mapping[str, Any], id: str | None = None) -> dict[str, Any]:
    """What Nessie must be told of a metadata file.

    Iceberg's NessieCatalog believes these numbers and not the file: with those of another file under the new location,
    Spark would go on from an old snapshot, and the newest one would be lost with its next commit.
    """
    snapshot = metadata.get("current-snapshot-id")
    facts: dict[str, Any] = {
        "type": TABLE,
        "metadataLocation": location,
        "snapshotId": _NO_SNAPSHOT if snapshot is None else snapshot,
        "schemaId": metadata.get("current-schema-id", 0),
        "specId": metadata.get("default-spec-id", 0),
        "sortOrderId": metadata.get("default-sort-order-id", 0),
    }
    return {**facts, "id": id} if id else facts


def parsed(metadata: bytes) -> Mapping[str, Any]:
    """A metadata file's content, packed or not."""
    if metadata[:2] == b"\x1f\x8b":
        import gzip

        metadata = gzip.decompress(metadata)
    found: Mapping[str, Any] = json.loads(metadata)
    return found


def new(content: Content) -> dict[str, Any]:
    """The same content for a key where nothing is: Nessie gives it an id of its own."""
    return {name: value for name, value in content.items() if name != "id"}


def namespace_content(namespace: str, properties: Mapping[str, str] | None = None) -> dict[str, Any]:
    """A namespace with its properties."""
    return {"type": NAMESPACE, "elements": namespace.split("."), "properties": dict(properties or {})}
