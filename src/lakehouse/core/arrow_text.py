"""Columns of Arrow as text, computed by Arrow: JSON values and fields of CSV, in the forms that core/jsonable.py gives single values."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from lakehouse.core.jsonable import jsonable

if TYPE_CHECKING:
    import pyarrow

#: Characters for which a text is escaped in JSON, and quoted in CSV (as is an empty text).
_ESCAPED, _QUOTED = bytes(range(32)) + b'"\\', b'",\r\n'
_IN_NEED_OF_QUOTES = r'^$|[",\r\n]'
#: Arrow writes smaller whole numbers without an exponent.
_PLAIN_FLOATS = 1e6
#: Arrow writes a decimal with an exponent only if its scale is larger.
_PLAIN_SCALE = 6
#: Replaced by Arrow; rows with other control characters are escaped one by one.
_ESCAPES = (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))


def json_objects(names: Sequence[str], columns: Sequence[pyarrow.Array]) -> list[Any]:
    """The parts of one object per row, to be joined."""
    parts: list[Any] = ["{"]
    for place, (name, column) in enumerate(zip(names, columns, strict=True)):
        _extend(parts, [f"{', ' if place else ''}{json.dumps(name, ensure_ascii=False)}: ", *json_parts(column)])
    return _extend(parts, ["}"])


def json_arrays(columns: Sequence[pyarrow.Array]) -> list[Any]:
    """The parts of one array per row, to be joined."""
    parts: list[Any] = ["["]
    for place, column in enumerate(columns):
        _extend(parts, [*([", "] if place else []), *json_parts(column)])
    return _extend(parts, ["]"])


def json_parts(column: pyarrow.Array) -> list[Any]:
    """Each value as JSON, in parts to be joined: what all rows have in common is a text of its own. NULL is `null`."""
    import pyarrow
    import pyarrow.compute as pc

    if not len(column) or column.null_count == len(column):
        return [pyarrow.array(["null"] * len(column), pyarrow.string())]
    parts = _json_texts(_plain(column))
    if not column.null_count:
        return parts
    is_valid = column.is_valid()
    return [pc.if_else(is_valid, part, "" if isinstance(part, str) else "null") for part in parts]


def _extend(parts: list[Any], more: Sequence[Any]) -> list[Any]:
    """Add parts; a text after a text becomes one with it."""
    for part in more:
        if isinstance(part, str) and parts and isinstance(parts[-1], str):
            parts[-1] += part
        else:
            parts.append(part)
    return parts


def csv_parts(column: pyarrow.Array) -> list[Any]:
    """Each value as a field of CSV, in parts to be joined, quoted where it has to be; NULL stays NULL."""
    import pyarrow
    import pyarrow.compute as pc
    from pyarrow import types

    if not len(column) or column.null_count == len(column):
        return [pyarrow.nulls(len(column), pyarrow.string())]
    column = _plain(column)
    kind = column.type
    if types.is_primitive(kind) or types.is_decimal(kind):  # numbers and times, which need no quotes
        texts, *suffix = _scalar_texts(column)
        return [texts, *(pc.if_else(column.is_valid(), part, "") if column.null_count else part for part in suffix)]
    if types.is_nested(kind):
        json_texts = row_texts(_json_texts(column))
        texts = pc.if_else(column.is_valid(), json_texts, pyarrow.scalar(None, pyarrow.string()))
    else:
        texts = column if types.is_string(kind) else row_texts(_scalar_texts(column))
    if not _has_any(texts, _QUOTED) and pc.min(pc.binary_length(texts)).as_py():
        return [texts]
    need_quotes = pc.match_substring_regex(texts, _IN_NEED_OF_QUOTES)
    if not pc.any(need_quotes).as_py():
        return [texts]
    return [pc.if_else(need_quotes, row_texts(['"', pc.replace_substring(texts, '"', '""'), '"']), texts)]


def joined(parts: Sequence[Any]) -> memoryview:
    """Texts and columns of texts, row by row one after the other; NULL is nothing.

    All texts are gathered in the order in which they are written: a third of the time that Arrow takes to join each row.
    """
    import pyarrow
    import pyarrow.compute as pc

    is_literal = tuple(isinstance(part, str) for part in parts)
    columns = [part for part in parts if not isinstance(part, str)]
    literals = pyarrow.array([part for part in parts if isinstance(part, str)], pyarrow.string())
    order = _order(is_literal, len(columns[0]))
    texts = pc.take(pyarrow.concat_arrays([literals, *columns]), order, boundscheck=False)
    return memoryview(texts.buffers()[2])  # texts of a new column follow each other


@lru_cache(maxsize=2)  # almost all batches of a result have the same parts and number of rows
def _order(is_literal: tuple[bool, ...], rows: int) -> pyarrow.Array:
    """For each row, the places of its parts among the literals, after which the columns follow."""
    import pyarrow

    count, literal, column = len(is_literal), 0, sum(is_literal)
    order = array("I", bytes(4 * count * rows))
    for place, is_text in enumerate(is_literal):
        if is_text:
            order[place::count] = array("I", [literal]) * rows
            literal += 1
        else:
            places = pyarrow.arange(column, column + rows).cast(pyarrow.uint32())
            order[place::count] = array("I", memoryview(places.buffers()[1]).cast("I")[:rows])
            column += rows
    return pyarrow.Array.from_buffers(pyarrow.uint32(), len(order), [None, pyarrow.py_buffer(order)])


def row_texts(parts: Sequence[Any]) -> pyarrow.Array:
    """One text per row of texts and columns of texts; NULL if one of them is."""
    import pyarrow.compute as pc

    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, "")


def _plain(column: pyarrow.Array) -> pyarrow.Array:
    """The same values in one of the types that the rest of this module knows."""
    import pyarrow
    from pyarrow import types

    if isinstance(column, pyarrow.ExtensionArray):
        column = column.storage
    kind = column.type
    if types.is_dictionary(kind):
        column = column.dictionary_decode()
        kind = column.type
    if types.is_large_string(kind) or types.is_string_view(kind):
        return column.cast(pyarrow.string())
    if types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return column.cast(pyarrow.list_(kind.value_type))
    return column


def _json_texts(column: pyarrow.Array) -> list[Any]:
    """JSON of the values that are not NULL, in parts to be joined."""
    import pyarrow.compute as pc
    from pyarrow import types

    kind = column.type
    if types.is_nested(kind):
        return [_nested_texts(column)]
    if types.is_string(kind):
        return ['"', _escaped(column), '"']
    texts = _scalar_texts(column)
    if types.is_integer(kind) or types.is_boolean(kind):
        return texts
    if types.is_floating(kind):
        is_finite = pc.is_finite(column)
        if pc.all(is_finite).as_py():
            return texts
        return [pc.if_else(is_finite, row_texts(texts), row_texts(['"', *texts, '"']))]
    return ['"', *texts, '"']


def _nested_texts(column: pyarrow.Array) -> pyarrow.Array:
    """JSON of lists, maps and structs."""
    import pyarrow
    import pyarrow.compute as pc
    from pyarrow import types

    kind = column.type
    if types.is_list(kind):
        return _list_texts(column, row_texts(json_parts(column.flatten())), "[]")
    if types.is_map(kind):
        entry = pyarrow.struct([("key", kind.key_type), ("value", kind.item_type)])
        entries = column.cast(pyarrow.list_(entry))
        keys, items = entries.flatten().flatten()
        pairs = pc.binary_join_element_wise(_key_texts(_plain(keys)), row_texts(json_parts(items)), ": ")
        return _list_texts(entries, pairs, "{}")
    if types.is_struct(kind):
        names = [kind.field(place).name for place in range(kind.num_fields)]
        return row_texts(json_objects(names, column.flatten()))
    return _one_by_one(column, lambda value: json.dumps(jsonable(value), ensure_ascii=False))


def _scalar_texts(column: pyarrow.Array) -> list[Any]:
    """Values that are neither nested nor text, without quotes, in parts to be joined: a column, and what all rows have after it."""
    import pyarrow
    import pyarrow.compute as pc
    from pyarrow import types

    kind = column.type
    if types.is_floating(kind):
        return _float_texts(column)
    if types.is_decimal(kind):
        return [_decimal_texts(column)]
    if types.is_timestamp(kind) or types.is_time(kind):
        if types.is_timestamp(kind) and kind.tz:
            column = column.cast(pyarrow.timestamp(kind.unit, "UTC"))
        texts = pc.replace_substring(column.cast(pyarrow.string()), " ", "T", max_replacements=1)
        digits = {"s": 0, "ms": 3, "us": 6, "ns": 9}[kind.unit]
        return [pc.replace_substring(texts, "." + "0" * digits, "") if digits else texts]
    if types.is_integer(kind) or types.is_boolean(kind) or types.is_date(kind):
        return [column.cast(pyarrow.string())]
    return [_one_by_one(column, lambda value: str(jsonable(value)))]


def _float_texts(column: pyarrow.Array) -> list[Any]:
    """The shortest text that reads back as the same number of its size; always recognizable as a float."""
    import pyarrow
    import pyarrow.compute as pc

    is_whole = pc.equal(pc.floor(column), column)
    if pc.all(is_whole).as_py() and pc.max(pc.abs(column)).as_py() < _PLAIN_FLOATS and not _has_negative_zero(column):
        return [column.cast(pyarrow.int32()).cast(pyarrow.string()), ".0"]  # a fifth of the time of a float
    texts = column.cast(pyarrow.string())
    if not pc.any(is_whole).as_py():
        return [texts]
    lacks_point = pc.match_substring_regex(texts, r"^-?[0-9]+$")
    return [pc.if_else(lacks_point, row_texts([texts, ".0"]), texts)]


def _has_negative_zero(column: pyarrow.Array) -> bool:
    """Whether a float is -0.0, which an integer does not tell from 0."""
    import pyarrow
    import pyarrow.compute as pc

    width = column.type.bit_width
    bits = column.view({16: pyarrow.int16(), 32: pyarrow.int32(), 64: pyarrow.int64()}[width])
    return bool(pc.any(pc.equal(bits, -(1 << (width - 1)))).as_py())


def _decimal_texts(column: pyarrow.Array) -> pyarrow.Array:
    """All digits of the scale, without an exponent."""
    import pyarrow
    import pyarrow.compute as pc

    texts = column.cast(pyarrow.string())
    if 0 <= column.type.scale <= _PLAIN_SCALE:
        return texts
    has_exponent = pc.fill_null(pc.match_substring(texts, "E"), False)
    if not pc.any(has_exponent).as_py():
        return texts
    rewritten = [format(Decimal(text), "f") for text in texts.filter(has_exponent).to_pylist()]
    return pc.replace_with_mask(texts, has_exponent, pyarrow.array(rewritten, pyarrow.string()))


def _escaped(column: pyarrow.Array) -> pyarrow.Array:
    """Text as strings of JSON, without their quotes."""
    import pyarrow
    import pyarrow.compute as pc

    if _has_any(column, _ESCAPED):
        rare = pc.fill_null(pc.match_substring_regex(column, r"[\x00-\x08\x0b\x0c\x0e-\x1f]"), False)
        escaped = [json.dumps(text, ensure_ascii=False)[1:-1] for text in column.filter(rare).to_pylist()]
        for character, escape in _ESCAPES:
            column = pc.replace_substring(column, character, escape)
        if escaped:
            column = pc.replace_with_mask(column, rare, pyarrow.array(escaped, pyarrow.string()))
    return column


def _has_any(column: pyarrow.Array, characters: bytes) -> bool:
    """Whether some of these ASCII characters may be in a text: all texts are searched as one, which is many times faster."""
    offsets, data = column.buffers()[1:]
    if data is None or not len(column):
        return False
    places = memoryview(offsets).cast("i")
    content = bytes(memoryview(data)[places[column.offset] : places[column.offset + len(column)]])
    return len(content.translate(None, characters)) < len(content)


def _list_texts(column: pyarrow.Array, values: pyarrow.Array, brackets: str) -> pyarrow.Array:
    """Lists of values that are text already."""
    import pyarrow
    import pyarrow.compute as pc

    lengths = pc.fill_null(pc.list_value_length(column), 0)
    offsets = pyarrow.concat_arrays([pyarrow.array([0], pyarrow.int32()), pc.cumulative_sum(lengths)])
    lists = pyarrow.ListArray.from_arrays(offsets.cast(pyarrow.int32()), values)
    return row_texts([brackets[0], pc.binary_join(lists, ", "), brackets[1]])


def _key_texts(keys: pyarrow.Array) -> pyarrow.Array:
    """Keys of objects, which are always strings."""
    from pyarrow import types

    if not types.is_string(keys.type):
        keys = _nested_texts(keys) if types.is_nested(keys.type) else row_texts(_scalar_texts(keys))
    return row_texts(['"', _escaped(keys), '"'])


def _one_by_one(column: pyarrow.Array, write: Callable[[Any], str]) -> pyarrow.Array:
    """Types for which Arrow has no function: binary, intervals, and those that are rare."""
    import pyarrow

    texts = [None if value is None else write(value) for value in column.to_pylist()]
    return pyarrow.array(texts, pyarrow.string())
