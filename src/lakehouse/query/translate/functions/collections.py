"""Arrays, maps and structs."""

from __future__ import annotations

from lakehouse.query.sql import ast
from lakehouse.query.translate import operators
from lakehouse.query.translate.operators import shown
from lakehouse.query.translate.rules import rule
from lakehouse.query.translate.scope import ExpressionTranslator, Special
from lakehouse.query.translate.types import NotTranslatedError, Type
from lakehouse.query.translate.values import Value

RULES = [
    rule("size", "array", "int", "CASE WHEN {0} IS NULL THEN -1 ELSE len({0}) END", stored=True),
    rule("cardinality", "array", "int", "CASE WHEN {0} IS NULL THEN -1 ELSE len({0}) END", stored=True),
    rule("array_size", "array", "int", "len({0})", stored=True),
]


def _array(expressions: ExpressionTranslator, node: ast.Call) -> Value:
    values = [expressions.translate(argument) for argument in node.arguments]
    if not values:
        raise NotTranslatedError("array()")
    name = shown(f"array({', '.join(['{}'] * len(values))})", *values)
    elements = [value.settled() for value in operators.unified(values)]
    if elements[0].type.kind in ("void", "interval"):
        raise NotTranslatedError(f"an array of {elements[0].type}")
    return Value(f"[{', '.join(element.sql for element in elements)}]", Type("array", parts=(elements[0].type,)), name)


SPECIAL: dict[str, Special] = {"array": _array}
