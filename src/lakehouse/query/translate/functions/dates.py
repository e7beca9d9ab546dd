"""Functions of dates and times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from lakehouse.query.translate.casts import utc
from lakehouse.query.translate.rules import Rule, coerce, rule
from lakehouse.query.translate.types import DATE, NotTranslatedError
from lakehouse.query.translate.values import Value, literal_text

if TYPE_CHECKING:
    from lakehouse.query.sql import ast
    from lakehouse.query.translate.expressions import Expressions


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

_EXTRACT = {"year": "year", "month": "month", "day": "day", "hour": "hour", "minute": "minute", "quarter": "quarter"}
_EXTRACT |= {"week": "weekofyear", "doy": "dayofyear", "dayofweek": "dayofweek", "dow": "dayofweek"}


def _extract(expressions: Expressions, node: ast.Call) -> Value:
    unit, value = (expressions.translate(argument) for argument in node.arguments)
    text = literal_text(unit, "extract of a unit").lower()
    if text not in _EXTRACT:
        raise NotTranslatedError(f"extract of {text}")
    name = f"extract({unit.name} FROM {value.name})" if value.name else ""
    return expressions.call_rules(_EXTRACT[text], [value]).named(name)


SPECIAL: dict[str, Callable[[Expressions, ast.Call], Value]] = {"extract": _extract}
