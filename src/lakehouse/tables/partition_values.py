"""Partition values of data files that DuckDB writes: as SQL, and as the values that Iceberg stores."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from lakehouse.core.dataclass import dataclass
from lakehouse.core.quoting import name as _name

_EPOCH = date(1970, 1, 1)
#: SQL for the text that Iceberg writes into the path of a partition. Bucket needs a hash that DuckDB does not have.
_TRANSFORMS = {
    "identity": "CAST({0} AS VARCHAR)",
    "year": "strftime(CAST({0} AS TIMESTAMP), '%Y')",
    "month": "strftime(CAST({0} AS TIMESTAMP), '%Y-%m')",
    "day": "strftime(CAST({0} AS TIMESTAMP), '%Y-%m-%d')",
    "hour": "strftime(CAST({0} AS TIMESTAMP), '%Y-%m-%d-%H')",
}
#: Types whose text in a path is the same in DuckDB as in Iceberg.
_IDENTITY_TYPES = re.compile(r"(tinyint|smallint|int|bigint|string|date|boolean)")


@dataclass(frozen=True)
class PartitionField:
    """A partition field of a table, and SQL for the text of its value."""

    name: str
    alias: str
    """The name of the text in a query; it differs from all columns of the table."""
    sql: str


def partition_fields(table: Any, types: Mapping[str, str]) -> list[PartitionField] | None:
    """The partition fields of a PyIceberg table; None if DuckDB cannot compute one of them."""
    fields = []
    for field in table.spec().fields:
        column = table.schema().find_column_name(field.source_id)
        transform = str(field.transform)
        if transform not in _TRANSFORMS:
            return None
        if transform == "identity" and not _IDENTITY_TYPES.fullmatch(types.get(column, "")):
            return None
        alias = field.name
        while alias in types:
            alias += "_"
        fields.append(PartitionField(field.name, alias, _TRANSFORMS[transform].format(_name(column))))
    return fields


def partition_record(table: Any, texts: Mapping[str, str | None]) -> Any:
    """The partition of a data file as Iceberg stores it, from the texts of its values."""
    from pyiceberg.typedef import Record

    values = []
    for field in table.spec().fields:
        text = texts.get(field.name)
        source_type = str(table.schema().find_type(field.source_id))
        values.append(None if text is None else _value(str(field.transform), text, source_type))
    return Record(*values)


def _value(transform: str, text: str, source_type: str) -> Any:
    if transform == "identity":
        return _identity(text, source_type)
    if transform == "year":
        return int(text) - _EPOCH.year
    if transform == "month":
        year, month = text.split("-")
        return (int(year) - _EPOCH.year) * 12 + int(month) - 1
    if transform == "day":
        return (date.fromisoformat(text) - _EPOCH).days
    since = datetime.strptime(text, "%Y-%m-%d-%H") - datetime(1970, 1, 1)
    return since.days * 24 + since.seconds // 3600


def _identity(text: str, source_type: str) -> Any:
    if source_type == "date":
        return (date.fromisoformat(text) - _EPOCH).days
    return text if source_type == "string" else json.loads(text)
