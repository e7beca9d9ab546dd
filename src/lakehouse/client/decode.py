"""JSON of the service as the dataclasses of the Python API: the other direction of http/answers.py."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from lakehouse.core.names import TableName

T = TypeVar("T")


def decode(kind: type[T], value: Any) -> T:
    """A value of JSON as a value of a type. Fields that this version does not know are ignored."""
    found: T = _decoded(kind, value)
    return found


def decode_all(kind: type[T], values: Sequence[Any]) -> list[T]:
    """A list of JSON values as values of a type."""
    return [decode(kind, value) for value in values]


def _decoded(kind: Any, value: Any) -> Any:
    if value is None or kind is Any:
        return value
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _decoded(next(each for each in arguments if each is not type(None)), value)
    if origin is not None:
        return _collection(origin, arguments, value)
    if kind is TableName:
        return TableName.parse(value)
    if kind is datetime:
        return datetime.fromisoformat(value)
    if kind is float:
        return float(value)
    return _dataclass(kind, value) if is_dataclass(kind) else value


def _collection(origin: Any, arguments: tuple[Any, ...], value: Any) -> Any:
    if issubclass(origin, Mapping):
        return {key: _decoded(arguments[1], item) for key, item in value.items()}
    if origin is tuple and arguments[-1] is not Ellipsis:
        return tuple(_decoded(each, item) for each, item in zip(arguments, value, strict=True))
    return (tuple if origin is tuple else list)(_decoded(arguments[0], item) for item in value)


def _dataclass(kind: Any, value: Mapping[str, Any]) -> Any:
    hints = _hints(kind)
    return kind(**{name: _decoded(hints[name], item) for name, item in value.items() if name in hints})


@cache
def _hints(kind: Any) -> dict[str, Any]:
    known = get_type_hints(kind)
    return {each.name: known[each.name] for each in fields(kind) if each.init}
