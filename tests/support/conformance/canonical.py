"""One form for results of both engines, and their comparison."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

from lakehouse.core.result import Result
from lakehouse.core.tables import split_arguments

#: What the order of rows may change in a floating-point aggregate, as a share of the value.
CLOSE = 1e-11
_EXACT = Context(prec=60)

Canonical = Any
"""A value in JSON: NULL, booleans and integers as such, everything else as text, nested values as lists."""


@dataclass(frozen=True)
class Answer:
    """Columns and rows of a result in canonical form."""

    columns: list[list[str]]
    """Name and type, in Spark's words."""
    rows: list[list[Canonical]]


def answer_of(result: Result) -> Answer:
    """The answer of an engine; fetches the rows."""
    columns = [[column.name, column.type] for column in result.columns]
    return Answer(columns, [canonical_row([kind for _, kind in columns], row) for row in result.rows()])


def canonical_row(types: Sequence[str], row: Sequence[Any]) -> list[Canonical]:
    return [canonical(value, kind) for value, kind in zip(row, types, strict=True)]


def canonical(value: Any, kind: str) -> Canonical:
    """A value of a type. One whose Python class does not fit the type is marked, so that it equals no other."""
    if value is None:
        return None
    outer, _, inside = kind.partition("<")
    if inside:
        return _nested(value, outer, split_arguments(inside.removesuffix(">")))
    writes = _SCALARS.get(kind.partition("(")[0].partition(" ")[0])
    if writes is None:
        return repr(value)
    classes, write = writes
    if not isinstance(value, classes) or (isinstance(value, bool) and bool not in classes):
        return f"!{type(value).__name__} {value!r}"
    return write(value)


_INTEGER = ((int,), lambda value: value)
_FLOAT = ((float,), lambda value: "NaN" if math.isnan(value) else repr(value))
_SCALARS: dict[str, tuple[tuple[type, ...], Any]] = {
    "boolean": ((bool,), lambda value: value),
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), _INTEGER),
    **dict.fromkeys(("float", "double"), _FLOAT),
    "decimal": ((Decimal,), lambda value: format(value, "f")),
    "string": ((str,), str),
    "binary": ((bytes, bytearray), lambda value: value.hex()),
    "date": ((date,), lambda value: value.isoformat()),
    "timestamp": ((datetime,), lambda value: _utc(value).isoformat(timespec="microseconds")),
    "timestamp_ntz": ((datetime,), lambda value: value.replace(tzinfo=None).isoformat(timespec="microseconds")),
    "interval": ((timedelta, int), lambda value: _units(value)),
    "void": ((), str),
}


def _units(value: timedelta | int) -> str:
    """An interval of days as microseconds, one of years as months, as PySpark reads it."""
    return f"{value} months" if isinstance(value, int) else f"{value // timedelta(microseconds=1)} us"


def _utc(value: datetime) -> datetime:
    """The time in UTC, without a mark of it. PySpark's nested timestamps are naive local times."""
    return (value if value.tzinfo is None else value.astimezone(UTC)).replace(tzinfo=None)


def _nested(value: Any, outer: str, parts: Sequence[str]) -> Canonical:
    if outer == "array":
        return [canonical(item, parts[0]) for item in value]
    if outer == "map":
        pairs = _pairs(value)
        return sorted(([canonical(key, parts[0]), canonical(item, parts[1])] for key, item in pairs), key=json.dumps)
    fields = [part.partition(":") for part in parts]
    items = value.asDict().values() if hasattr(value, "asDict") else value.values()
    return [[name, canonical(item, kind.strip())] for (name, _, kind), item in zip(fields, items, strict=True)]


def _pairs(value: Any) -> Iterable[tuple[Any, Any]]:
    """The entries of a map: Arrow has a list of them, DuckDB two lists if Python cannot hash the keys."""
    if isinstance(value, list):
        return value
    if list(value) == ["key", "value"] and isinstance(value["key"], list):
        return zip(value["key"], value["value"], strict=True)
    return value.items()


def difference(
    expected: Answer, got: Answer, close: bool = False, ordered: bool = False, sets: bool = False, zeros: bool = False
) -> str:
    """How an answer differs from the expected one; empty if it does not.

    Args:
        close: floating-point values may differ by `CLOSE`.
        ordered: the statement determines the order of rows.
        sets: the engine does not determine the order of elements in arrays.
        zeros: the statement does not determine which of 0.0 and -0.0 is a row of the answer.
    """
    if expected.columns != got.columns:
        same_kinds = [kind for _, kind in expected.columns] == [kind for _, kind in got.columns]
        return f"{'names' if same_kinds else 'types'}: expected {expected.columns}, got {got.columns}"
    kinds = [kind for _, kind in expected.columns]
    left, right = (_with_scales(rows, kinds) for rows in (expected.rows, got.rows))
    if sets:
        left, right = _with_sorted_arrays(left), _with_sorted_arrays(right)
    if zeros:
        left, right = _with_equal_zeros(left), _with_equal_zeros(right)
    if not ordered:
        left, right = sorted(left, key=json.dumps), sorted(right, key=json.dumps)
    if len(left) != len(right):
        return f"rows: expected {len(left)}, got {len(right)}"
    for wanted, row in zip(left, right, strict=True):
        if wanted != row and not (close and _is_close(wanted, row)):
            return f"value: expected {_short(wanted)}, got {_short(row)}"
    return ""


def _with_scales(rows: list[Any], kinds: list[str]) -> list[Any]:
    """Decimals with the scale of their column: Spark hands some quotients out with more zeros than the type has."""
    scales = {
        place: int(kind.partition(",")[2].rstrip(")"))
        for place, kind in enumerate(kinds)
        if kind.startswith("decimal(")
    }
    if not scales:
        return rows
    return [
        [_with_scale(value, scales[place]) if place in scales else value for place, value in enumerate(row)]
        for row in rows
    ]


def _with_scale(value: Any, scale: int) -> Any:
    return value if value is None else str(_EXACT.quantize(Decimal(value), Decimal(1).scaleb(-scale)))


def _with_equal_zeros(rows: list[Any]) -> list[Any]:
    return [["0.0" if value == "-0.0" else value for value in row] for row in rows]


def _with_sorted_arrays(rows: list[Any]) -> list[Any]:
    return [[sorted(value, key=json.dumps) if isinstance(value, list) else value for value in row] for row in rows]


def _is_close(expected: Any, got: Any) -> bool:
    if isinstance(expected, list) and isinstance(got, list):
        return len(expected) == len(got) and all(map(_is_close, expected, got))
    if expected == got:
        return True
    try:
        return math.isclose(float(expected), float(got), rel_tol=CLOSE, abs_tol=CLOSE)
    except (TypeError, ValueError):
        return False


def _short(row: Any, longest: int = 300) -> str:
    text = json.dumps(row, ensure_ascii=False)
    return text if len(text) <= longest else text[:longest] + "…"
