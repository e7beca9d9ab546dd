"""The first metadata of a table, from a request to make one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.partitioning import PARTITION_FIELD_ID_START, UNPARTITIONED_PARTITION_SPEC
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER

from lakehouse.rest_catalog.answers import properties_of
from lakehouse.rest_catalog.backing import parsed
from lakehouse.rest_catalog.changes import as_json
from lakehouse.rest_catalog.problems import Problem

if TYPE_CHECKING:
    from lakehouse.core.names import TableName

_DEFAULTS = ("initial-default", "write-default")
#: From this version of the format on, columns may have defaults.
_WITH_DEFAULTS = 3


def first_metadata(
    name: TableName, body: Mapping[str, Any], default_location: str, default_properties: Mapping[str, str]
) -> tuple[TableMetadata, bytes]:
    """The metadata and what its file holds."""
    given = {
        "name": name.table,
        "location": body.get("location"),
        "schema": body.get("schema"),
        "partition-spec": _numbered(body.get("partition-spec")),
        "write-order": body.get("write-order"),
        "properties": {**default_properties, **properties_of(body.get("properties"))},
    }
    request = parsed(CreateTableRequest, given)
    try:
        metadata = new_table_metadata(
            request.table_schema,
            request.partition_spec or UNPARTITIONED_PARTITION_SPEC,
            request.write_order or UNSORTED_SORT_ORDER,
            (request.location or default_location).rstrip("/"),
            dict(request.properties),
        )
    except (ValueError, KeyError, TypeError) as exc:
        raise Problem(f"The table cannot be made so: {exc}") from exc
    if metadata.format_version > 2:
        metadata = metadata.model_copy(update={"next_row_id": 0})
    whole = json.loads(as_json(metadata, {}, []))
    for schema in [*whole["schemas"], *([whole["schema"]] if "schema" in whole else [])]:
        if _take_defaults(schema, given["schema"]) and metadata.format_version < _WITH_DEFAULTS:
            raise Problem(f"Columns have defaults from format version {_WITH_DEFAULTS} on.", "Set format-version=3.")
    return metadata, json.dumps(whole, separators=(",", ":")).encode()


def _numbered(spec: Any) -> Any:
    """The protocol lets clients leave out the numbers of partition fields, PyIceberg's models do not."""
    if not isinstance(spec, dict) or not isinstance(spec.get("fields"), list):
        return spec
    fields = enumerate(spec["fields"], PARTITION_FIELD_ID_START)
    numbered = [{"field-id": number, **field} if isinstance(field, dict) else field for number, field in fields]
    return {**spec, "fields": numbered}


def _take_defaults(fresh: Any, sent: Any) -> bool:
    """Give a type of the table the columns' defaults that were sent, which PyIceberg leaves behind; were there any?"""
    if not isinstance(fresh, dict) or not isinstance(sent, dict):
        return False
    found = False
    for own, other in zip(fresh.get("fields", ()), sent.get("fields", ()), strict=True):
        told = {key: other[key] for key in _DEFAULTS if other.get(key) is not None}
        own.update(told)
        found = bool(told) or _take_defaults(own["type"], other["type"]) or found
    for part in ("element", "key", "value"):
        found = _take_defaults(fresh.get(part), sent.get(part)) or found
    return found
