"""Values of engines as Python's.

Dates and times before the year 1 or after 9999, which Python's classes cannot hold, are text as Spark writes it.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from lakehouse.core.tables import Column, split_arguments

if TYPE_CHECKING:
    import pyarrow

#: The calendar repeats itself after this many years and days.
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097
_DAY_US = 86_400_000_000
_EPOCH = date(1970, 1, 1)
_UNIT_US = {"s": 1_000_000, "ms": 1000, "us": 1}
#: What DuckDB returns for a value that Python cannot hold: `0001-12-31 (BC) 00:00:00+00`.
_FAR_OF_DUCKDB = re.compile(r"(\d{4,})(-\d\d-\d\d)( \(BC\))?( [\d:.]+)?(\+00)?")


def values_of(column: pyarrow.ChunkedArray) -> list[Any]:
    """The values of a column; a map is a dict, unless two of its keys are equal or a key is nested, which a dict cannot hold."""
    try:
        return _pylist(column)
    except (OverflowError, ValueError):
        convert = _converter(column.type)
        return [convert(value) for value in _pylist(column.cast(_as_integers(column.type)))]


def with_short_floats(columns: Sequence[Column], rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows; a float of four bytes has no more digits than it needs, 0.1 instead of 0.10000000149011612."""
    floats = {place: _shortener(column.type) for place, column in enumerate(columns) if "float" in column.type}
    if not floats:
        return rows
    return [
        tuple(floats[place](value) if place in floats else value for place, value in enumerate(row)) for row in rows
    ]


def _shortener(kind: str) -> Callable[[Any], Any]:
    outer, _, inside = kind.partition("<")
    parts = split_arguments(inside.removesuffix(">"))
    if kind == "float":
        return lambda value: value if value is None else _short(value)
    if outer == "array":
        item = _shortener(parts[0])
        return lambda values: values and [item(value) for value in values]
    if outer == "map":
        item = _shortener(parts[1])  # keys stay as they are
        return lambda values: {k: item(v) for k, v in values.items()} if isinstance(values, dict) else values
    if outer == "struct":
        fields = [_shortener(part.partition(":")[2].strip()) for part in parts]
        return lambda values: (
            values and {name: write(value) for (name, value), write in zip(values.items(), fields, strict=True)}
        )
    return lambda value: value


def _short(value: float) -> float:
    if not math.isfinite(value):
        return value
    shorter = (float(f"{value:.{digits}g}") for digits in range(1, 10))
    return next((near for near in shorter if struct.unpack("f", struct.pack("f", near))[0] == value), value)


def far_time(text: str) -> str:
    """The text for a date or time from DuckDB's text for it."""
    parts = _FAR_OF_DUCKDB.fullmatch(text)
    if parts is None:
        return text
    year = 1 - int(parts[1]) if parts[3] else int(parts[1])
    return f"{_year(year)}{parts[2]}{parts[4] or ''}{'Z' if parts[5] else ''}"


def _pylist(column: pyarrow.ChunkedArray) -> list[Any]:
    try:
        return list(column.to_pylist(maps_as_pydicts="strict"))
    except (KeyError, TypeError):
        return list(column.to_pylist())


def _as_integers(kind: pyarrow.DataType) -> pyarrow.DataType:
    """The type with integers in place of dates and times."""
    import pyarrow
    from pyarrow import types

    if types.is_date32(kind):
        return pyarrow.int32()
    if types.is_timestamp(kind):
        return pyarrow.int64()
    if types.is_list(kind):
        return pyarrow.list_(_as_integers(kind.value_type))
    if types.is_map(kind):
        return pyarrow.map_(_as_integers(kind.key_type), _as_integers(kind.item_type))
    if types.is_struct(kind):
        return pyarrow.struct([field.with_type(_as_integers(field.type)) for field in kind])
    return kind


def _converter(kind: pyarrow.DataType) -> Callable[[Any], Any]:
    """What makes a value of a type from one of `_as_integers`."""
    convert = _converter_of_values(kind)
    return lambda value: None if value is None else convert(value)


def _converter_of_values(kind: pyarrow.DataType) -> Callable[[Any], Any]:
    from pyarrow import types

    if types.is_date32(kind):
        return _date
    if types.is_timestamp(kind):
        return lambda value: _time(value * _UNIT_US[kind.unit], kind.tz is not None)
    if types.is_list(kind):
        item = _converter(kind.value_type)
        return lambda values: [item(value) for value in values]
    if types.is_map(kind):
        key, item = _converter(kind.key_type), _converter(kind.item_type)
        # What is no dict has entries that a dict cannot hold.
        return lambda values: (
            {key(name): item(value) for name, value in values.items()}
            if isinstance(values, dict)
            else [(key(name), item(value)) for name, value in values]
        )
    if types.is_struct(kind):
        fields = {field.name: _converter(field.type) for field in kind}
        return lambda values: {name: fields[name](value) for name, value in values.items()}
    return lambda value: value


def _date(days: int) -> date | str:
    cycles, days = divmod(days, _CYCLE_DAYS)
    day = _EPOCH + timedelta(days)
    year = day.year + cycles * _CYCLE_YEARS
    return day.replace(year=year) if 1 <= year <= 9999 else f"{_year(year)}-{day:%m-%d}"


def _time(micros: int, is_zoned: bool) -> datetime | str:
    days, micros = divmod(micros, _DAY_US)
    day, clock = _date(days), datetime.min + timedelta(microseconds=micros)
    if isinstance(day, date):
        return datetime.combine(day, clock.time(), UTC if is_zoned else None)
    fraction = f"{clock:.%f}".rstrip("0") if clock.microsecond else ""
    return f"{day} {clock:%H:%M:%S}{fraction}{'Z' if is_zoned else ''}"


def _year(year: int) -> str:
    return f"{year:04d}" if 0 <= year <= 9999 else f"{year:+05d}"
