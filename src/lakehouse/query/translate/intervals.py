"""Intervals: literals, what they add to dates and timestamps, and their parts. DuckDB has no type with the values of Spark's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from lakehouse.query.sql import ast
from lakehouse.query.translate.casts import utc
from lakehouse.query.translate.types import DATE, TIMESTAMP, NotTranslatedError, Type, parse_type
from lakehouse.query.translate.values import Value, needs_spark

INTERVAL = Type("interval")
_MONTHS = {"year": 12, "month": 1}
_MICROS = {"day": 86_400_000_000, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}
#: Units that Spark counts as another one.
_PARTS_OF = {"week": ("day", Decimal(7)), "millisecond": ("second", Decimal("0.001"))}
_PARTS_OF |= {"microsecond": ("second", Decimal("0.000001"))}


class Interval(NamedTuple):
    """Months, or microseconds: Spark has no type for both."""

    months: int
    micros: int
    first: str
    """The largest unit that is written."""
    last: str


def interval_value(parts: Sequence[tuple[ast.Expression, str]]) -> Value:
    """The literal `INTERVAL 1 DAY 2 HOURS`, or `INTERVAL '1-2' YEAR TO MONTH`."""
    counts: dict[str, Decimal] = {}
    for value, written in _split(*parts[0]) if " to " in parts[0][1] else parts:
        unit, size = _PARTS_OF.get(written, (written, Decimal(1)))
        counts[unit] = counts.get(unit, Decimal(0)) + _count(value, is_whole=written != "second") * size
    units = [unit for unit in (*_MONTHS, *_MICROS) if unit in counts]
    if len(units) < len(counts) or not units or (units[0] in _MONTHS) != (units[-1] in _MONTHS):
        raise NotTranslatedError(f"an interval of {' and '.join(counts)}")
    total = int(sum(counts[unit] * (_MONTHS | _MICROS)[unit] for unit in units))
    is_months = units[0] in _MONTHS
    interval = Interval(total if is_months else 0, 0 if is_months else total, units[0], units[-1])
    if total.bit_length() >= (32 if is_months else 64):
        raise NotTranslatedError("an interval that is too large")
    return Value(needs_spark(), INTERVAL, _shown(interval), interval, is_literal=True)


#: How the units behind the first are written.
_FOLLOWING = {"month": r"-(\d|1[01])", "hour": r" ([01]?\d|2[0-3])", "minute": r":([0-5]?\d)"}
_FOLLOWING |= {"second": r":([0-5]?\d(?:\.\d{1,6})?)"}


def _split(value: ast.Expression, unit: str) -> list[tuple[ast.Expression, str]]:
    """The parts of `'1 02:03:04' DAY TO SECOND`."""
    first, _, last = unit.partition(" to ")
    sign = "-" if isinstance(value, ast.Unary) and value.operator == "-" else ""
    literal = value.operand if isinstance(value, ast.Unary) else value
    names = [name for family in (_MONTHS, _MICROS) for name in family if first in family and last in family]
    if names and isinstance(literal, ast.Literal) and literal.type == "string" and isinstance(literal.value, str):
        names = names[names.index(first) : names.index(last) + 1]
        form = r"(-?)(\d{1,9})" + "".join(_FOLLOWING[name] for name in names[1:])
        if len(names) > 1 and (match := re.fullmatch(form, literal.value, re.ASCII)):
            sign = "-" if (match[1] != sign) else ""
            return [
                (ast.Literal("string", sign + text), name) for text, name in zip(match.groups()[1:], names, strict=True)
            ]
    raise NotTranslatedError(f"this interval {unit}")


def _count(value: ast.Expression, *, is_whole: bool) -> Decimal:
    if isinstance(value, ast.Unary) and value.operator == "-":
        return -_count(value.operand, is_whole=is_whole)
    if isinstance(value, ast.Literal) and isinstance(value.value, str) and value.type in ("int", "string", "decimal"):
        whole, _, fraction = value.value.strip().lstrip("+-").partition(".")
        if whole.isdecimal() and whole.isascii() and (not fraction or (not is_whole and fraction.isdecimal())):
            return Decimal(value.value.strip())
    raise NotTranslatedError("an interval whose value is no plain number")


def _shown(interval: Interval) -> str:
    """As Spark writes it."""
    size = abs(interval.months or interval.micros)
    sign = "-" if interval.months < 0 or interval.micros < 0 else ""
    to = interval.last.upper()
    fields = interval.first.upper() if interval.first == interval.last else f"{interval.first.upper()} TO {to}"
    if interval.first in _MONTHS:
        month_text = {"YEAR": f"{size // 12}", "MONTH": f"{size}"}.get(fields, f"{size // 12}-{size % 12}")
        return f"INTERVAL '{sign}{month_text}' {fields}"
    units = list(_MICROS)
    texts = []
    for unit in units[units.index(interval.first) : units.index(interval.last) + 1]:
        count, size = divmod(size, _MICROS[unit])
        texts.append(f"{count}" if unit == "day" else f"{count:02}")
    if size:
        texts[-1] += f".{size:06}".rstrip("0")
    text = f"{texts[0]} {':'.join(texts[1:])}".strip() if interval.first == "day" else ":".join(texts)
    return f"INTERVAL '{sign}{text}' {fields}"


def add_interval(moment: Value, interval: Value, operator: str, name: str) -> Value:
    """A date or timestamp plus or minus an interval."""
    months, micros, _, last = interval.constant
    kind = moment.type
    if kind == DATE and last == "day":
        return Value(f"({moment.sql} {operator} {micros // _MICROS['day']})", DATE, name)
    result = TIMESTAMP if kind == DATE and interval.constant.first not in _MONTHS else kind
    span = f"to_months({months})" if interval.constant.first in _MONTHS else f"to_microseconds({micros})"
    return Value(f"CAST(({utc(moment.sql, kind)} {operator} {span}) AS {result.duckdb})", result, name)


#: The types of the parts of an interval.
_PART_TYPES = {"year": "int", "month": "tinyint", "day": "int", "hour": "tinyint", "minute": "tinyint"}


def extracted(part: str, value: Value) -> Value:
    """A part of a literal interval, by the name of the function that gives it for a moment."""
    interval: Interval = value.constant
    total = interval.months if interval.first in _MONTHS else interval.micros
    size, sign = abs(total), -1 if total < 0 else 1
    units = _MONTHS if interval.first in _MONTHS else _MICROS
    unit = part.removeprefix("extract ")
    names = list(units)
    if unit not in names[names.index(interval.first) : names.index(interval.last) + 1]:
        raise NotTranslatedError(f"extract of {unit} from an interval")
    if unit == "second":
        seconds = Decimal(sign * (size % _MICROS["minute"])).scaleb(-6)
        return Value(f"CAST('{seconds:.6f}' AS DECIMAL(8, 6))", parse_type("decimal(8,6)"), "")
    above = {"month": 12, "hour": 24, "minute": 60}.get(unit)
    count = size // units[unit]
    kind = parse_type(_PART_TYPES[unit])
    return Value(f"CAST({sign * (count % above if above else count)} AS {kind.duckdb})", kind, "")
