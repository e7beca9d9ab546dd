"""The first metadata of a table, from a create request."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.partitioning import PARTITION_FIELD_ID_START, UNPARTITIONED_PARTITION_SPEC
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER

from lakehouse.rest_catalog.backend import parse_model
from lakehouse.rest_catalog.errors import RestError
from lakehouse.rest_catalog.messages import parse_properties
from lakehouse.rest_catalog.table_updates import serialize

if TYPE_CHECKING:
    from lakehouse.core.names import TableName

_DEFAULTS = ("initial-default", "write-default")
#: The first format version with column defaults.
_DEFAULTS_VERSION = 3


def first_metadata(
    name: TableName, body: Mapping[str, Any], default_location: str, default_properties: Mapping[str, str]
) -> tuple[TableMetadata, bytes]:
    """Return the metadata and the content of its file."""
    fields = {
        "name": name.table,
        "location": body.get("location"),
        "schema": body.get("schema"),
        "partition-spec": _with_field_ids(body.get("partition-spec")),
        "write-order": body.get("write-order"),
        "properties": {**default_properties, **parse_properties(body.get("properties"))},
    }
    request = parse_model(CreateTableRequest, fields)
    try:
        metadata = new_table_metadata(
            request.table_schema,
            request.partition_spec or UNPARTITIONED_PARTITION_SPEC,
            request.write_order or UNSORTED_SORT_ORDER,
            (request.location or default_location).rstrip("/"),
            dict(request.properties),
        )
    except (ValueError, KeyError, TypeError) as exc:
        raise RestError(f"The table cannot be created: {exc}") from exc
    if metadata.format_version > 2:
        metadata = metadata.model_copy(update={"next_row_id": 0})
    content = json.loads(serialize(metadata, {}, []))
    for schema in [*content["schemas"], *([content["schema"]] if "schema" in content else [])]:
        if _copy_defaults(schema, fields["schema"]) and metadata.format_version < _DEFAULTS_VERSION:
            raise RestError(f"Column defaults need format version {_DEFAULTS_VERSION}.", "Set format-version=3.")
    return metadata, json.dumps(content, separators=(",", ":")).encode()


def _with_field_ids(spec: Any) -> Any:
    """Add the ids of partition fields, which the protocol lets clients omit and PyIceberg's models do not."""
    if not isinstance(spec, dict) or not isinstance(spec.get("fields"), list):
        return spec
    fields = enumerate(spec["fields"], PARTITION_FIELD_ID_START)
    with_ids = [{"field-id": number, **field} if isinstance(field, dict) else field for number, field in fields]
    return {**spec, "fields": with_ids}


def _copy_defaults(fresh: Any, sent: Any) -> bool:
    """Copy the column defaults of a request, which PyIceberg drops, into the table's schema; False if there are none."""
    if not isinstance(fresh, dict) or not isinstance(sent, dict):
        return False
    has_defaults = False
    for own, other in zip(fresh.get("fields", ()), sent.get("fields", ()), strict=True):
        defaults = {key: other[key] for key in _DEFAULTS if other.get(key) is not None}
        own.update(defaults)
        has_defaults = bool(defaults) or _copy_defaults(own["type"], other["type"]) or has_defaults
    for part in ("element", "key", "value"):
        has_defaults = _copy_defaults(fresh.get(part), sent.get(part)) or has_defaults
    return has_defaults
