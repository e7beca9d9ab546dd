"""Functions of numbers."""

from __future__ import annotations

from collections.abc import Sequence

from lakehouse.query.translate.rules import rule
from lakehouse.query.translate.scope import Special
from lakehouse.query.translate.types import NotTranslatedError, Type, decimal
from lakehouse.query.translate.values import Value, literal_int


def _scale(values: Sequence[Value]) -> int:
    return literal_int(values[1], "round to a number of digits") if len(values) > 1 else 0


def _rounded_type(values: Sequence[Value]) -> Type:
    kind, scale = values[0].type, _scale(values)
    if scale < 0:
        raise NotTranslatedError("round to tens")
    scale = min(kind.scale, scale)
    return decimal(min(kind.precision - kind.scale + scale + 1, 38), scale)


def _rounded(values: Sequence[Value]) -> str:
    return f"CAST(round({{0}}, {min(_scale(values), values[0].type.scale)}) AS {_rounded_type(values).duckdb})"


def _whole_type(values: Sequence[Value]) -> Type:
    """The type of `ceil` and `floor` of a decimal."""
    kind = values[0].type
    return decimal(min(kind.precision - kind.scale + 1, 38), 0)


def _positive_scale(values: Sequence[Value]) -> str:
    if _scale(values) < 0:
        raise NotTranslatedError("round to tens")
    return "{0}"


RULES = [
    rule("abs", "integer", "0", "abs({0})"),
    rule("abs", "fraction", "0", "abs({0})"),
    rule("abs", "decimal", "0", "abs({0})"),
    rule("sign", "double", "double", "CASE WHEN isnan({0}) THEN {0} ELSE CAST(sign({0}) AS DOUBLE) END"),
    rule(
        "signum", "double", "double", "CASE WHEN isnan({0}) THEN {0} ELSE CAST(sign({0}) AS DOUBLE) END", shown="SIGNUM"
    ),
    rule("round", "integer", "0", "{0}"),
    rule("round", "decimal", _rounded_type, _rounded),
    rule("round", "decimal int!", _rounded_type, _rounded),
    rule("round", "integer int!", "0", _positive_scale),
    rule("ceil", "integer", "bigint", "CAST({0} AS BIGINT)", shown="CEIL"),
    rule("floor", "integer", "bigint", "CAST({0} AS BIGINT)", shown="FLOOR"),
    rule("ceil", "decimal", _whole_type, "CAST(ceil({0}) AS DECIMAL(38, 0))", stored=True, shown="CEIL"),
    rule("floor", "decimal", _whole_type, "CAST(floor({0}) AS DECIMAL(38, 0))", stored=True, shown="FLOOR"),
    rule("ceil", "fraction", "bigint", "CAST(ceil({0}) AS BIGINT)", shown="CEIL"),
    rule("floor", "fraction", "bigint", "CAST(floor({0}) AS BIGINT)", shown="FLOOR"),
    rule("sqrt", "double", "double", "CASE WHEN {0} < 0 THEN 'NaN'::DOUBLE ELSE sqrt({0}) END", shown="SQRT"),
    rule("positive", "number", "0", "{0}", shown="(+ {0})"),
    rule("pmod", "integer integer", "0", lambda values: _pmod(values)),
]


def _pmod(values: Sequence[Value]) -> str:
    if values[0].type != values[1].type:
        raise NotTranslatedError("pmod of different types")
    return "CASE WHEN {0} % nullif({1}, 0) < 0 THEN ({0} % {1} + {1}) % {1} ELSE {0} % nullif({1}, 0) END"


SPECIAL: dict[str, Special] = {}
