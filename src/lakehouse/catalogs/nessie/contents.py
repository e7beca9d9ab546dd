"""Tables as Nessie stores them: a key, the location of the metadata file, and which parts of that file are current."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakehouse.catalogs.nessie.api import Content, Key
from lakehouse.core.names import TableName

TABLE, VIEW, NAMESPACE = "ICEBERG_TABLE", "ICEBERG_VIEW", "NAMESPACE"
_NO_SNAPSHOT = -1


def key_of(table: TableName) -> Key:
    """Return the key of a table; the levels of its namespace are parts of the key."""
    return (*table.namespace.split("."), table.table)


def name_of(key: Key) -> TableName:
    """Return the name of the table or view under a key."""
    return TableName(".".join(key[:-1]), key[-1])


def pointer_of(content: Content | None) -> str | None:
    """Return the metadata location of a table or view; None for other content."""
    if content is None or content["type"] not in (TABLE, VIEW):
        return None
    return str(content["metadataLocation"])


def table_content(location: str, metadata: Mapping[str, Any], id: str | None = None) -> dict[str, Any]:
    """Return the content that Nessie stores for a metadata file.

    Iceberg's NessieCatalog uses these numbers and not the file's: with wrong ones Spark would continue from an old
    snapshot, and its next commit would lose the newest.
    """
    snapshot = metadata.get("current-snapshot-id")
    content: dict[str, Any] = {
        "type": TABLE,
        "metadataLocation": location,
        "snapshotId": _NO_SNAPSHOT if snapshot is None else snapshot,
        "schemaId": metadata.get("current-schema-id", 0),
        "specId": metadata.get("default-spec-id", 0),
        "sortOrderId": metadata.get("default-sort-order-id", 0),
    }
    return {**content, "id": id} if id else content


def view_content(location: str, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content that Nessie stores for the metadata file of a view."""
    version = metadata["current-version-id"]
    schema = next(listed["schema-id"] for listed in metadata["versions"] if listed["version-id"] == version)
    return {"type": VIEW, "metadataLocation": location, "versionId": version, "schemaId": schema}


def without_id(content: Content) -> dict[str, Any]:
    """Return the content for a new key, to which Nessie assigns an id."""
    return {name: value for name, value in content.items() if name != "id"}


def namespace_content(namespace: str, properties: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the content of a namespace with its properties."""
    return {"type": NAMESPACE, "elements": namespace.split("."), "properties": dict(properties or {})}
