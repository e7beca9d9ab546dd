"""Literals: their values for DuckDB, and their names in Spark."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from decimal import Decimal

from lakehouse.query.sql import ast
from lakehouse.query.translate.types import BINARY, BOOLEAN, DATE, DOUBLE, FLOAT, STRING, VOID, NotTranslatedError, Type
from lakehouse.query.translate.types import decimal as decimal_type
from lakehouse.query.translate.values import Value, string

_DATE = re.compile(r"(\d{4})(?:-(\d\d?)(?:-(\d\d?)(?:[ T].*)?)?)?", re.ASCII | re.DOTALL)
_CLOCK = r"[ T](\d\d?)(?::(\d\d?)(?::(\d\d?)(?:\.(\d*))? ?(Z|UTC|[+-](?:0\d|1[0-7]):[0-5]\d)?)?)?"
_TIMESTAMP = re.compile(rf"(\d{{4}})(?:-(\d\d?)(?:-(\d\d?)(?:{_CLOCK})?)?)?", re.ASCII)
#: What Spark ignores around a date or timestamp.
_BLANKS = "".join(map(chr, range(33))) + "\x7f"


def literal_value(literal: ast.Literal) -> Value:  # noqa: C901 - one branch for each type
    """The value of a literal."""
    text = literal.value
    if text is None:
        return Value("NULL", VOID, "NULL", is_literal=True)
    if isinstance(text, bytes):
        blob = "".join(f"\\x{byte:02X}" for byte in text)
        return Value(f"'{blob}'::BLOB", BINARY, f"X'{text.hex().upper()}'", is_literal=True)
    match literal.type:
        case "string":
            return Value(string(text), STRING, text, text, is_literal=True)
        case "boolean":
            return Value(text.upper(), BOOLEAN, text, is_literal=True)
        case "decimal":
            return _decimal(text)
        case "double" | "float":
            kind = DOUBLE if literal.type == "double" else FLOAT
            return Value(f"'{text}'::{kind.duckdb}", kind, java_double(text, kind), is_literal=True)
        case "date":
            return _date(text)
        case "timestamp" | "timestamp_ntz":
            return _timestamp(text, Type(literal.type))
    kind = Type(literal.type)
    number = int(text)
    written = f"({number})" if number < 0 else str(number)
    return Value(
        written if literal.type == "int" else f"CAST({number} AS {kind.duckdb})",
        kind,
        str(number),
        number,
        is_literal=True,
    )


def _decimal(text: str) -> Value:
    number = Decimal(text)
    kind = decimal_of(number)
    shown = str(number) if number else str(abs(number))  # Java's decimals have no negative zero
    return Value(f"CAST('{number:f}' AS {kind.duckdb})", kind, shown, number, is_literal=True)


def decimal_of(number: Decimal | int) -> Type:
    """The smallest decimal type that holds a literal."""
    _, digits, exponent = Decimal(number).as_tuple()
    scale = max(-int(exponent), 0)
    return decimal_type(max(len(digits) + max(int(exponent), 0), scale, 1), scale)


def java_double(text: str, kind: Type) -> str:
    """A number as Java writes it; empty where that is not certain."""
    number = float(text)
    digits = repr(number)
    if kind == FLOAT or "e" in digits or not (number == 0 or 1e-3 <= abs(number) < 1e7) or len(digits) > 16:
        return ""
    return digits


def _date(text: str) -> Value:
    match = _DATE.fullmatch(text.strip(_BLANKS))
    try:
        day = date(*(int(part or 1) for part in match.groups())) if match else None
    except ValueError:
        day = None
    if day is None:
        raise NotTranslatedError(f"the literal DATE '{text}'")
    return Value(f"DATE '{day}'", DATE, f"DATE '{day}'", day, is_literal=True)


def _timestamp(text: str, kind: Type) -> Value:
    match = _TIMESTAMP.fullmatch(text.strip(_BLANKS))
    try:
        moment = _moment(match, kind) if match else None
    except (ValueError, OverflowError):
        moment = None
    if moment is None:
        raise NotTranslatedError(f"the literal {kind.kind.upper()} '{text}'")
    whole, point, fraction = moment.isoformat(sep=" ").partition(".")
    shown = f"{whole}{point}{fraction.rstrip('0')}"
    zone = "+00" if kind.kind == "timestamp" else ""
    return Value(f"{kind.duckdb} '{shown}{zone}'", kind, f"{kind.kind.upper()} '{shown}'", moment, is_literal=True)


def _moment(match: re.Match[str], kind: Type) -> datetime:
    """In UTC; a timestamp without zone ignores the one that is written."""
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    clock = (int(hour or 0), int(minute or 0), int(second or 0), int((fraction or "")[:6].ljust(6, "0")))
    moment = datetime(int(year), int(month or 1), int(day or 1), *clock)  # noqa: DTZ001 - DuckDB's literal has the zone
    if kind.kind == "timestamp" and zone not in (None, "Z", "UTC"):
        offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))
        return moment - offset if zone[0] == "+" else moment + offset
    return moment


_INTEGER = re.compile(r"[+-]?\d{1,18}")
_BOUNDS = {"tinyint": 2**7, "smallint": 2**15, "int": 2**31, "bigint": 2**63}


def folded(value: Value, to: Type) -> Value | None:
    """A string literal in a usual form, cast to another type; None for other values and forms.

    A constant of the column's own type lets DuckDB skip files and row groups.
    """
    text = value.constant
    if not value.is_literal or not isinstance(text, str) or value.type != STRING:
        return None
    try:
        if to == DATE:
            return _date(text).named(value.name)
        if to.kind in ("timestamp", "timestamp_ntz"):
            return _timestamp(text, to).named(value.name)
    except NotTranslatedError:
        return None
    if to.is_integer and _INTEGER.fullmatch(text) and -_BOUNDS[to.kind] <= int(text) < _BOUNDS[to.kind]:
        return literal_value(ast.Literal(to.kind, text)).named(value.name)
    return None
