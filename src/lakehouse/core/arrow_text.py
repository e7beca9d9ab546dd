"""Columns of Arrow as text, computed by Arrow: JSON values and fields of CSV, in the forms that core/jsonable.py gives single values."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from lakehouse.core.jsonable import jsonable

if TYPE_CHECKING:
    import pyarrow

#: Characters for which a text is escaped in JSON, and quoted in CSV (as is an empty text).
_ESCAPED, _QUOTED = bytes(range(32)) + b'"\\', b'",\r\n'
_IN_NEED_OF_QUOTES = r'^$|[",\r\n]'
#: Arrow writes smaller whole numbers without an exponent.
_PLAIN_FLOATS = 1e6
#: Replaced by Arrow; rows with other control characters are escaped one by one.
_ESCAPES = (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))


def json_column(column: pyarrow.Array) -> pyarrow.Array:
    """Each value as JSON; NULL is `null`."""
    import pyarrow
    import pyarrow.compute as pc

    if not len(column) or column.null_count == len(column):
        return pyarrow.array(["null"] * len(column), pyarrow.string())
    texts = _json_texts(_plain(column))
    return pc.if_else(column.is_valid(), texts, "null") if column.null_count else texts


def json_objects(names: Sequence[str], columns: Sequence[pyarrow.Array]) -> list[Any]:
    """The parts of one object per row, to be joined."""
    parts = ["{"]
    for place, (name, column) in enumerate(zip(names, columns, strict=True)):
        _extend(parts, [f"{', ' if place else ''}{json.dumps(name, ensure_ascii=False)}: ", *_json_parts(column)])
    return _extend(parts, ["}"])


def json_arrays(columns: Sequence[pyarrow.Array]) -> list[Any]:
    """The parts of one array per row, to be joined."""
    parts = ["["]
    for place, column in enumerate(columns):
        _extend(parts, [*([", "] if place else []), *_json_parts(column)])
    return _extend(parts, ["]"])


def _json_parts(column: pyarrow.Array) -> list[Any]:
    """Each value as JSON, in parts: quotes that every row has are not added to each text by itself."""
    plain = _plain(column)
    if plain.null_count or not len(plain):
        return [json_column(plain)]
    texts, has_quotes = _unquoted(plain)
    return ['"', texts, '"'] if has_quotes else [texts]


def _extend(parts: list[Any], more: Sequence[Any]) -> list[Any]:
    """Add parts; a text after a text becomes one with it."""
    for part in more:
        if isinstance(part, str) and parts and isinstance(parts[-1], str):
            parts[-1] += part
        else:
            parts.append(part)
    return parts


def csv_column(column: pyarrow.Array) -> pyarrow.Array:
    """Each value as a field of CSV, quoted where it has to be; NULL stays NULL."""
    import pyarrow
    import pyarrow.compute as pc
    from pyarrow import types

    if not len(column) or column.null_count == len(column):
        return pyarrow.nulls(len(column), pyarrow.string())
    column = _plain(column)
    kind = column.type
    if types.is_nested(kind):
        texts = pc.if_else(column.is_valid(), _json_texts(column), pyarrow.scalar(None, pyarrow.string()))
    else:
        texts = column if types.is_string(kind) else _scalar_texts(column)
    if types.is_primitive(kind):
        return texts  # numbers and times, which need no quotes
    if not _has_any(texts, _QUOTED) and pc.min(pc.binary_length(texts)).as_py():
        return texts
    need_quotes = pc.match_substring_regex(texts, _IN_NEED_OF_QUOTES)
    if not pc.any(need_quotes).as_py():
        return texts
    return pc.if_else(need_quotes, _wrapped(pc.replace_substring(texts, '"', '""'), '"', '"'), texts)


def joined(parts: Sequence[Any]) -> memoryview:
    """Texts and columns of texts, row by row one after the other; NULL is nothing."""
    import pyarrow.compute as pc

    rows = pc.binary_join_element_wise(*parts, "", null_handling="replace", null_replacement="")
    return memoryview(rows.buffers()[2])  # texts of a new column follow each other


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


def _json_texts(column: pyarrow.Array) -> pyarrow.Array:
    """JSON of the values that are not NULL."""
    import pyarrow
    import pyarrow.compute as pc
    from pyarrow import types

    kind = column.type
    if types.is_list(kind):
        return _list_texts(column, json_column(column.flatten()), "[]")
    if types.is_map(kind):
        entry = pyarrow.struct([("key", kind.key_type), ("value", kind.item_type)])
        entries = column.cast(pyarrow.list_(entry))
        keys, items = entries.flatten().flatten()
        pairs = pc.binary_join_element_wise(_key_texts(_plain(keys)), json_column(items), ": ")
        return _list_texts(entries, pairs, "{}")
    if types.is_struct(kind):
        names = [kind.field(place).name for place in range(kind.num_fields)]
        return pc.binary_join_element_wise(*json_objects(names, column.flatten()), "")
    texts, has_quotes = _unquoted(column)
    return _wrapped(texts, '"', '"') if has_quotes else texts


def _unquoted(column: pyarrow.Array) -> tuple[pyarrow.Array, bool]:
    """JSON of the values that are not NULL without the quotes, if all of them have quotes; and whether that is so."""
    import pyarrow.compute as pc
    from pyarrow import types

    kind = column.type
    if types.is_nested(kind):
        return _json_texts(column), False
    if types.is_string(kind):
        return _escaped(column), True
    if types.is_integer(kind) or types.is_boolean(kind):
        return _scalar_texts(column), False
    if types.is_floating(kind):
        texts, finite = _scalar_texts(column), pc.is_finite(column)
        return texts if pc.all(finite).as_py() else pc.if_else(finite, texts, _wrapped(texts, '"', '"')), False
    if types.is_binary(kind) or types.is_temporal(kind) or types.is_decimal(kind):
        return _scalar_texts(column), True
    return _one_by_one(column, lambda value: json.dumps(jsonable(value), ensure_ascii=False)), False


def _scalar_texts(column: pyarrow.Array) -> pyarrow.Array:
    """Values that are neither nested nor text, without quotes."""
    import pyarrow
    import pyarrow.compute as pc
    from pyarrow import types

    kind = column.type
    if types.is_floating(kind):
        return _float_texts(column)
    if types.is_decimal(kind):
        return _decimal_texts(column)
    if types.is_timestamp(kind) or types.is_time(kind):
        if types.is_timestamp(kind) and kind.tz:
            column = column.cast(pyarrow.timestamp(kind.unit, "UTC"))
        texts = pc.replace_substring(column.cast(pyarrow.string()), " ", "T", max_replacements=1)
        digits = {"s": 0, "ms": 3, "us": 6, "ns": 9}[kind.unit]
        return pc.replace_substring(texts, "." + "0" * digits, "") if digits else texts
    if types.is_integer(kind) or types.is_boolean(kind) or types.is_date(kind):
        return column.cast(pyarrow.string())
    return _one_by_one(column, lambda value: str(jsonable(value)))


def _float_texts(column: pyarrow.Array) -> pyarrow.Array:
    """The shortest text that reads back as the same number of its size; always recognizable as a float."""
    import pyarrow
    import pyarrow.compute as pc

    texts, is_whole = column.cast(pyarrow.string()), pc.equal(pc.floor(column), column)
    if not pc.any(is_whole).as_py():
        return texts
    if pc.all(is_whole).as_py() and pc.max(pc.abs(column)).as_py() < _PLAIN_FLOATS:
        return _wrapped(texts, "", ".0")
    lacks_point = pc.match_substring_regex(texts, r"^-?[0-9]+$")
    return pc.if_else(lacks_point, _wrapped(texts, "", ".0"), texts)


def _decimal_texts(column: pyarrow.Array) -> pyarrow.Array:
    """All digits of the scale, without an exponent."""
    import pyarrow
    import pyarrow.compute as pc

    texts = column.cast(pyarrow.string())
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
    return _wrapped(pc.binary_join(lists, ", "), brackets[0], brackets[1])


def _key_texts(keys: pyarrow.Array) -> pyarrow.Array:
    """Keys of objects, which are always strings."""
    from pyarrow import types

    if not types.is_string(keys.type):
        keys = _json_texts(keys) if types.is_nested(keys.type) else _scalar_texts(keys)
    return _wrapped(_escaped(keys), '"', '"')


def _wrapped(texts: pyarrow.Array, before: str, after: str) -> pyarrow.Array:
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(before, texts, after, "")


def _one_by_one(column: pyarrow.Array, write: Callable[[Any], str]) -> pyarrow.Array:
    """Types for which Arrow has no function: binary, intervals, and those that are rare."""
    import pyarrow

    texts = [None if value is None else write(value) for value in column.to_pylist()]
    return pyarrow.array(texts, pyarrow.string())
