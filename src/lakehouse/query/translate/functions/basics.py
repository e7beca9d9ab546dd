"""Conditions, NULLs and casts in the form of functions."""

from __future__ import annotations

from lakehouse.query.sql import ast
from lakehouse.query.translate import operators
from lakehouse.query.translate.casts import cast_sql
from lakehouse.query.translate.operators import shown
from lakehouse.query.translate.rules import rule
from lakehouse.query.translate.scope import ExpressionTranslator, Special
from lakehouse.query.translate.types import STRING, VOID, NotTranslatedError, parse_type
from lakehouse.query.translate.values import Value

RULES = [
    rule("isnan", "fraction", "boolean", "coalesce(isnan({0}), FALSE)"),
    rule("isnan", "double", "boolean", "coalesce(isnan({0}), FALSE)"),
    rule("nanvl", "float! float!", "float", "CASE WHEN isnan({0}) THEN {1} ELSE {0} END"),
    rule("nanvl", "double double", "double", "CASE WHEN isnan({0}) THEN {1} ELSE {0} END"),
    rule("isnull", "any", "boolean", "({0} IS NULL)", shown="({0} IS NULL)"),
    rule("isnotnull", "any", "boolean", "({0} IS NOT NULL)", shown="({0} IS NOT NULL)"),
    rule("typeof", "any", "string", lambda values: f"'{values[0].type}'"),
    rule("current_date", "", "date", "CAST(make_timestamp(epoch_us(now())) AS DATE)"),
    rule("current_timestamp", "", "timestamp", "now()"),
    rule("now", "", "timestamp", "now()"),
]


def _values(expressions: ExpressionTranslator, node: ast.Call, count: int | None = None) -> list[Value]:
    """The arguments of a scalar function, which takes this number of them."""
    if node.distinct or node.where or node.over or node.within:
        raise NotTranslatedError(f"{node.name} in this place")
    if count is not None and len(node.arguments) != count:
        raise NotTranslatedError(f"{node.name} with {len(node.arguments)} arguments")
    return [expressions.translate(argument) for argument in node.arguments]


def _coalesce(expressions: ExpressionTranslator, node: ast.Call) -> Value:
    values = _values(expressions, node, None if node.name == "coalesce" else 2)
    if not values:
        raise NotTranslatedError("coalesce of nothing")
    name = shown(f"{node.name}({', '.join(['{}'] * len(values))})", *values)
    branches = [value.settled() for value in operators.unified(values)]
    if branches[0].type.kind == "void":
        raise NotTranslatedError("coalesce of NULLs")
    return Value(f"coalesce({', '.join(branch.sql for branch in branches)})", branches[0].type, name)


def _if(expressions: ExpressionTranslator, node: ast.Call) -> Value:
    values = _values(expressions, node, 3)
    condition = operators.boolean(values[0], "if")
    return operators.case([condition], values[1:]).named(shown("(IF({}, {}, {}))", *values))


def _nvl2(expressions: ExpressionTranslator, node: ast.Call) -> Value:
    first, second, third = _values(expressions, node, 3)
    yes, no = (value.settled() for value in operators.unified([second, third]))
    sql = f"CASE WHEN {first.sql} IS NOT NULL THEN {yes.sql} ELSE {no.sql} END"
    return Value(sql, yes.type, shown("nvl2({}, {}, {})", first, second, third))


def _nullif(expressions: ExpressionTranslator, node: ast.Call) -> Value:
    left, right = _values(expressions, node, 2)
    same = operators.comparison("=", left, right)
    left = left.settled()
    sql = f"CASE WHEN {same.sql} THEN NULL ELSE {left.sql} END"
    return Value(sql, left.type, shown("nullif({}, {})", left, right))


def _extreme(expressions: ExpressionTranslator, node: ast.Call) -> Value:
    """`greatest` and `least`, which skip NULLs."""
    values = _values(expressions, node)
    branches = [value.settled() for value in operators.unified(values)]
    if branches[0].type == STRING and any(value.type not in (STRING, VOID) for value in values):
        raise NotTranslatedError(f"{node.name} of text and other values")
    if len(branches) < 2 or branches[0].type.is_nested or branches[0].type.kind == "void":
        raise NotTranslatedError(f"{node.name} of {branches[0].type}")
    name = shown(f"{node.name}({', '.join(['{}'] * len(values))})", *values)
    if (
        branches[0].type.kind == "float"
    ):  # of FLOAT, DuckDB makes -0.0 to 0.0; of DOUBLE it keeps the first zero, as Spark does
        doubles = ", ".join(f"CAST({branch.sql} AS DOUBLE)" for branch in branches)
        return Value(f"CAST({node.name}({doubles}) AS FLOAT)", branches[0].type, name)
    return Value(f"{node.name}({', '.join(branch.sql for branch in branches)})", branches[0].type, name)


def _concat(expressions: ExpressionTranslator, node: ast.Call) -> Value:
    return operators.concatenated(_values(expressions, node))


def _cast_function(kind: str) -> Special:
    """`int(x)` is a cast."""

    def translate(expressions: ExpressionTranslator, node: ast.Call) -> Value:
        (value,) = _values(expressions, node, 1)
        to = parse_type(kind)
        return Value(cast_sql(value.settled().sql, value.type, to), to, value.name)

    return translate


def _equal_null(expressions: ExpressionTranslator, node: ast.Call) -> Value:
    left, right = _values(expressions, node, 2)
    return operators.comparison("<=>", left, right).named(shown("equal_null({}, {})", left, right))


CAST_FUNCTIONS = "boolean tinyint smallint int bigint float double string binary date timestamp".split()
SPECIAL: dict[str, Special] = {
    "coalesce": _coalesce,
    "nvl": _coalesce,
    "ifnull": _coalesce,
    "if": _if,
    "nvl2": _nvl2,
    "nullif": _nullif,
    "greatest": _extreme,
    "least": _extreme,
    "concat": _concat,
    "equal_null": _equal_null,
    **{kind: _cast_function(kind) for kind in CAST_FUNCTIONS},
}
