"""SQL values that came as JSON, read by the type of their column: the other direction of core/jsonable.py."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from lakehouse.core.result import Explain, ListedRows, Result
from lakehouse.core.tables import Column, split_arguments

Convert = Callable[[Any], Any]

_SCALARS: dict[str, Convert] = {
    "float": float,
    "double": float,
    "date": date.fromisoformat,
    "timestamp": datetime.fromisoformat,
    "timestamp_ntz": datetime.fromisoformat,
    "binary": base64.b64decode,
}


def result_of(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]], engine: str) -> Result:
    """The result of rows that came as JSON objects."""
    converters = [converter(column.type) for column in columns]
    listed = [
        tuple(convert(row[column.name]) for column, convert in zip(columns, converters, strict=True)) for row in rows
    ]
    return Result(tuple(columns), ListedRows([column.name for column in columns], listed), Explain(engine, ""))


def converter(kind: str) -> Convert:
    """What turns JSON into a value of a type in Spark's words."""
    convert = _converter(kind.strip())
    return lambda value: None if value is None else convert(value)


def _converter(kind: str) -> Convert:
    name, _, arguments = kind.partition("<")
    if name == "array":
        item = converter(arguments[:-1])
        return lambda value: [item(each) for each in value]
    if name == "map":
        key_type, value_type = split_arguments(arguments[:-1])
        key, item = _map_key(key_type), converter(value_type)
        return lambda value: {key(name): item(each) for name, each in value.items()}
    if name == "struct":
        parts = [part.partition(":") for part in split_arguments(arguments[:-1])]
        known = {part.strip(): converter(part_type) for part, _, part_type in parts}
        return lambda value: {name: known[name](each) if name in known else each for name, each in value.items()}
    if kind.startswith("decimal"):
        return lambda value: _decimal(kind, value)
    return _SCALARS.get(kind, lambda value: value)


def _map_key(kind: str) -> Convert:
    """JSON has strings as keys only."""
    if kind in ("tinyint", "smallint", "int", "bigint"):
        return int
    return _converter(kind)


def _decimal(kind: str, value: Any) -> Decimal:
    _, _, scale = kind.rstrip(")").partition(",")
    return Decimal(str(value)).quantize(Decimal(1).scaleb(-int(scale or 0)))
