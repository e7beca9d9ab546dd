"""Functions of dates and times."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from lakehouse.query.sql import ast
from lakehouse.query.translate.casts import utc
from lakehouse.query.translate.rules import Rule, coerce, rule
from lakehouse.query.translate.scope import ExpressionTranslator, Special
from lakehouse.query.translate.types import DATE, NotTranslatedError
from lakehouse.query.translate.values import Value, literal_text, needs_spark, string


def _part(expression: str) -> Callable[[Sequence[Value]], str]:
    """An expression of the moment in UTC, which is `{0}`."""
    return lambda values: expression.replace("{0}", utc(values[0].sql, values[0].type))


def _parts() -> list[Rule]:
    parts = {
        "year": "year({0})",
        "quarter": "quarter({0})",
        "month": "month({0})",
        "day": "day({0})",
        "dayofmonth": "day({0})",
        "dayofyear": "dayofyear({0})",
        "dayofweek": "(dayofweek({0}) + 1)",
        "weekday": "(isodow({0}) - 1)",
        "weekofyear": "weekofyear({0})",
    }
    return [rule(name, "date", "int", _part(sql), stored=True) for name, sql in parts.items()]


def _clock() -> list[Rule]:
    parts = {"hour": "hour({0})", "minute": "minute({0})", "second": "second({0})"}
    return [
        rule(name, kind, "int", _part(sql), stored=True)
        for name, sql in parts.items()
        for kind in ("timestamp_ntz!", "timestamp")
    ]


RULES = [
    *_parts(),
    *_clock(),
    rule("date_add", "date int", "date", "({0} + {1})"),
    rule("date_sub", "date int", "date", "({0} - {1})"),
    rule("datediff", "date date", "int", "({0} - {1})", stored=True),
    rule("date_diff", "date date", "int", "({0} - {1})", stored=True),
    rule("add_months", "date int", "date", "CAST(({0} + to_months({1})) AS DATE)"),
    rule("last_day", "date", "date", "last_day({0})"),
    rule("to_date", "date!", "date", "{0}"),
    rule("to_date", "timestamp!", "date", lambda values: coerce(values[0], DATE).sql),
    rule("to_date", "string!", "date", lambda values: coerce(values[0], DATE).sql),
    rule("unix_date", "date", "int", "({0} - DATE '1970-01-01')", stored=True),
]

_TRUNCATED = {"year": "year", "yyyy": "year", "yy": "year", "quarter": "quarter", "month": "month", "mm": "month"}
_TRUNCATED |= {"mon": "month", "week": "week", "day": "day", "dd": "day", "hour": "hour", "minute": "minute"}
_TRUNCATED |= {"second": "second", "millisecond": "millisecond", "microsecond": "microsecond"}


def _truncated(values: Sequence[Value]) -> str:
    unit = _TRUNCATED.get(literal_text(values[0], "date_trunc to a unit").lower())
    if unit is None:
        raise NotTranslatedError(f"date_trunc to {values[0].constant}")
    return f"CAST(date_trunc('{unit}', {utc(values[1].sql, values[1].type)}) AS {values[1].type.duckdb})"


#: Letters of Java's patterns whose text is the same in both for the years 1 to 9999.
_PATTERNS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S", "SSSSSS": "%f", "SSS": "%g"}


def _formatted(values: Sequence[Value]) -> str:
    pattern = literal_text(values[1], "date_format with a pattern")
    pieces = []
    for piece in re.findall(r"([A-Za-z])(\1*)|([^A-Za-z'\[\]{}#%]+)|(.)", pattern):
        letters, plain, other = piece[0] + piece[1], piece[2], piece[3]
        if other or (letters and letters not in _PATTERNS):
            raise NotTranslatedError(f"date_format with the pattern {pattern}")
        pieces.append(_PATTERNS[letters] if letters else plain)
    moment = utc(values[0].sql, values[0].type)
    return (
        f"CASE WHEN year({moment}) BETWEEN 1000 AND 9999 THEN strftime({moment}, {string(''.join(pieces))})"
        f" WHEN {values[0].sql} IS NOT NULL THEN {needs_spark('VARCHAR')} END"
    )


RULES += [
    rule("date_trunc", "string timestamp_ntz!", "timestamp_ntz", _truncated),
    rule("date_trunc", "string timestamp", "timestamp", _truncated),
    rule("date_format", "timestamp_ntz! string", "string", _formatted),
    rule("date_format", "timestamp string", "string", _formatted),
]

_EXTRACT = {"year": "year", "month": "month", "day": "day", "hour": "hour", "minute": "minute", "quarter": "quarter"}
_EXTRACT |= {"week": "weekofyear", "doy": "dayofyear", "dayofweek": "dayofweek", "dow": "dayofweek"}


def _extract(expressions: ExpressionTranslator, node: ast.Call) -> Value:
    unit, value = (expressions.translate(argument) for argument in node.arguments)
    text = literal_text(unit, "extract of a unit").lower()
    if text not in _EXTRACT:
        raise NotTranslatedError(f"extract of {text}")
    name = f"extract({unit.name} FROM {value.name})" if value.name else ""
    return expressions.call_rules(_EXTRACT[text], [value]).named(name)


SPECIAL: dict[str, Special] = {"extract": _extract}
