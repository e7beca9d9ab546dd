"""JSON of the service as the objects of the Python API: the other direction of http/answers.py and core/jsonable.py."""

from __future__ import annotations

import base64
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from lakehouse.core.names import TableName
from lakehouse.core.result import Explain, ListedRows, Result
from lakehouse.core.tables import Column, split_arguments

T = TypeVar("T")


def decode(kind: type[T], value: Any) -> T:
    """A value of JSON as a value of a type. Fields that this version does not know are ignored."""
    decoded: T = _decoded(kind, value)
    return decoded


def _decoded(kind: Any, value: Any) -> Any:
    if value is None or kind is Any:
        return value
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _decoded(next(argument for argument in arguments if argument is not type(None)), value)
    if origin is not None:
        return _collection(origin, arguments, value)
    if kind is TableName:
        return TableName.parse(value)
    if kind is datetime:
        return datetime.fromisoformat(value)
    if kind is Result:
        return result_of([decode(Column, column) for column in value["columns"]], value["rows"])
    if kind is float:
        return float(value)
    return _dataclass(kind, value) if is_dataclass(kind) else value


def _collection(origin: Any, arguments: tuple[Any, ...], value: Any) -> Any:
    if issubclass(origin, Mapping):
        return {key: _decoded(arguments[1], item) for key, item in value.items()}
    if origin is tuple and arguments[-1] is not Ellipsis:
        return tuple(_decoded(argument, item) for argument, item in zip(arguments, value, strict=True))
    return (tuple if origin is tuple else list)(_decoded(arguments[0], item) for item in value)


def _dataclass(kind: Any, value: Mapping[str, Any]) -> Any:
    hints = _hints(kind)
    # The rows of a result stand beside its columns.
    parts = {name: value if hints[name] is Result else item for name, item in value.items() if name in hints}
    return kind(**{name: _decoded(hints[name], part) for name, part in parts.items()})


@cache
def _hints(kind: Any) -> dict[str, Any]:
    known = get_type_hints(kind)
    return {field.name: known[field.name] for field in fields(kind) if field.init}


Convert = Callable[[Any], Any]

_SCALARS: dict[str, Convert] = {
    "float": float,
    "double": float,
    "date": date.fromisoformat,
    "timestamp": datetime.fromisoformat,
    "timestamp_ntz": datetime.fromisoformat,
    "binary": base64.b64decode,
}


def result_of(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> Result:
    """The result of rows that came as JSON objects."""
    converters = [converter(column.type) for column in columns]
    listed = [
        tuple(convert(row[column.name]) for column, convert in zip(columns, converters, strict=True)) for row in rows
    ]
    return Result(tuple(columns), ListedRows([column.name for column in columns], listed), Explain("duckdb", ""))


def converter(kind: str) -> Convert:
    """What turns JSON into a value of a type in Spark's words."""
    convert = _converter(kind.strip())
    return lambda value: None if value is None else convert(value)


def _converter(kind: str) -> Convert:
    name, _, arguments = kind.partition("<")
    if name == "array":
        item = converter(arguments[:-1])
        return lambda value: [item(entry) for entry in value]
    if name == "map":
        key_type, value_type = split_arguments(arguments[:-1])
        key, item = _map_key(key_type), converter(value_type)
        return lambda value: {key(name): item(entry) for name, entry in value.items()}
    if name == "struct":
        parts = [part.partition(":") for part in split_arguments(arguments[:-1])]
        known = {part.strip(): converter(part_type) for part, _, part_type in parts}
        return lambda value: {name: known[name](entry) if name in known else entry for name, entry in value.items()}
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
