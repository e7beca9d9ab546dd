"""The Arrow type of a type in Spark's words, for rows that arrive as Python values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from lakehouse.core.tables import Column, split_arguments

if TYPE_CHECKING:
    import pyarrow

Convert = Callable[[Any], Any]


def arrow_schema(columns: Sequence[Column]) -> pyarrow.Schema:
    """The schema of rows with these columns; what Arrow has no type for is text."""
    import pyarrow

    return pyarrow.schema([(column.name, arrow_type(column.type)) for column in columns])


def record_batch(schema: pyarrow.Schema, rows: Sequence[Sequence[Any]]) -> pyarrow.RecordBatch:
    """Rows of Python values as one batch."""
    import pyarrow

    arrays = [pyarrow.array(_values(rows, place, field.type), field.type) for place, field in enumerate(schema)]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=schema)


def arrow_type(kind: str) -> pyarrow.DataType:
    """The Arrow type of a type such as `array<decimal(10,2)>`."""
    import pyarrow

    head, _, inside = kind.strip().partition("<")
    match head:
        case "array":
            return pyarrow.list_(arrow_type(inside[:-1]))
        case "map":
            return pyarrow.map_(*(arrow_type(part) for part in split_arguments(inside[:-1])))
        case "struct":
            parts = [part.partition(":") for part in split_arguments(inside[:-1])]
            return pyarrow.struct([(name, arrow_type(part)) for name, _, part in parts])
    if head.startswith("decimal("):
        precision, scale = head.removeprefix("decimal(").removesuffix(")").split(",")
        return pyarrow.decimal128(int(precision), int(scale))
    known = {
        "boolean": pyarrow.bool_(),
        "tinyint": pyarrow.int8(),
        "smallint": pyarrow.int16(),
        "int": pyarrow.int32(),
        "bigint": pyarrow.int64(),
        "float": pyarrow.float32(),
        "double": pyarrow.float64(),
        "binary": pyarrow.binary(),
        "date": pyarrow.date32(),
        "timestamp": pyarrow.timestamp("us", "UTC"),
        "timestamp_ntz": pyarrow.timestamp("us"),
        "void": pyarrow.null(),
    }
    return known.get(head, pyarrow.string())


def _values(rows: Sequence[Sequence[Any]], place: int, kind: pyarrow.DataType) -> Iterable[Any]:
    convert = _converter(kind)
    values = [row[place] for row in rows]
    return values if convert is None else [None if value is None else convert(value) for value in values]


def _converter(kind: pyarrow.DataType) -> Convert | None:
    """What turns a value into one that Arrow takes; None if it takes every value of the type."""
    from pyarrow import types

    if types.is_string(kind):
        return str
    if types.is_map(kind):
        key, item = _or_same(_converter(kind.key_type)), _or_same(_converter(kind.item_type))
        return lambda value: [(key(name), None if entry is None else item(entry)) for name, entry in value.items()]
    if types.is_list(kind):
        inner = _or_same(_converter(kind.value_type))
        return lambda value: [None if entry is None else inner(entry) for entry in value]
    if types.is_struct(kind):
        names = [field.name for field in kind]
        parts = [_or_same(_converter(field.type)) for field in kind]
        return lambda value: {
            name: None if entry is None else part(entry) for name, part, entry in zip(names, parts, value, strict=True)
        }
    return None


def _or_same(convert: Convert | None) -> Convert:
    return convert or (lambda value: value)
