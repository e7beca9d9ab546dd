"""Aggregates and window functions."""

from __future__ import annotations

from collections.abc import Sequence

from lakehouse.query.sql import ast
from lakehouse.query.translate.operators import scaled, shown, unscaled
from lakehouse.query.translate.rules import rule
from lakehouse.query.translate.scope import ExpressionTranslator, Special
from lakehouse.query.translate.types import BIGINT, NotTranslatedError, Type, decimal
from lakehouse.query.translate.values import Value


def _sum_type(values: Sequence[Value]) -> Type:
    kind = values[0].type
    return decimal(min(kind.precision + 10, 38), kind.scale)


def _average_type(values: Sequence[Value]) -> Type:
    kind = values[0].type
    if kind.precision + 4 > 38 or kind.scale + 4 > 37:
        raise NotTranslatedError(f"avg of {kind}")
    return decimal(kind.precision + 4, kind.scale + 4)


def _average(values: Sequence[Value]) -> str:
    """The sum divided by the count, rounded half up; DuckDB's own average of decimals is a double."""
    kind = _average_type(values)
    total = unscaled("sum({d}{0}){tail}", values[0].type.scale)
    number = "count({d}{0}){tail}"
    quotient = f"((2 * abs({total} * 10000) + {number}) // nullif(2 * {number}, 0)::HUGEINT)"
    return scaled(f"CASE WHEN {total} < 0 THEN -{quotient} ELSE {quotient} END", kind)


RULES = [
    rule("sum", "integer", "bigint", "sum({d}{0}){tail}", kind="aggregate", stored=True),
    rule("sum", "fraction", "double", "sum({d}CAST({0} AS DOUBLE)){tail}", kind="aggregate"),
    rule("sum", "decimal", _sum_type, "sum({d}{0}){tail}", kind="aggregate", stored=True),
    rule("avg", "integer", "double", "avg({d}{0}){tail}", kind="aggregate"),
    rule("avg", "fraction", "double", "avg({d}CAST({0} AS DOUBLE)){tail}", kind="aggregate"),
    rule("avg", "decimal", _average_type, _average, kind="aggregate"),
    rule("mean", "integer", "double", "avg({d}{0}){tail}", kind="aggregate"),
    rule("mean", "fraction", "double", "avg({d}CAST({0} AS DOUBLE)){tail}", kind="aggregate"),
    rule("min", "atomic", "0", "min({0}){tail}", kind="aggregate"),
    rule("max", "atomic", "0", "max({0}){tail}", kind="aggregate"),
    rule("first", "atomic", "0", "first({0}){tail}", kind="aggregate"),
    rule("last", "atomic", "0", "last({0}){tail}", kind="aggregate"),
    rule("count_if", "boolean", "bigint", "count({d}CASE WHEN {0} THEN 1 END){tail}", kind="aggregate"),
    rule("bool_and", "boolean!", "boolean", "bool_and({0}){tail}", kind="aggregate"),
    rule("every", "boolean!", "boolean", "bool_and({0}){tail}", kind="aggregate"),
    rule("bool_or", "boolean!", "boolean", "bool_or({0}){tail}", kind="aggregate"),
    rule("some", "boolean!", "boolean", "bool_or({0}){tail}", kind="aggregate"),
    rule("any", "boolean!", "boolean", "bool_or({0}){tail}", kind="aggregate"),
    rule("row_number", "", "int", "row_number(){tail}", kind="window", stored=True),
    rule("rank", "", "int", "rank(){tail}", kind="window", stored=True),
    rule("dense_rank", "", "int", "dense_rank(){tail}", kind="window", stored=True),
    rule("percent_rank", "", "double", "percent_rank(){tail}", kind="window"),
    rule("cume_dist", "", "double", "cume_dist(){tail}", kind="window range"),
]


def _count(expressions: ExpressionTranslator, node: ast.Call) -> Value:
    """`count(*)`, `count(a)`, `count(DISTINCT a)`; of several columns it counts rows in which none is NULL."""
    arguments = node.arguments
    if len(arguments) == 1 and isinstance(arguments[0], ast.Star) and not arguments[0].qualifier:
        if node.distinct:
            raise NotTranslatedError("count(DISTINCT *)")
        tail, name = expressions.tail(node, "count(1)", "aggregate")
        return Value(f"count(*){tail}", BIGINT, name)
    values = [expressions.translate(argument).settled() for argument in arguments]
    if not values or any(value.type.is_nested for value in values):
        raise NotTranslatedError("count of nested values")
    distinct = "DISTINCT " if node.distinct else ""
    name = shown(f"count({distinct}{', '.join(['{}'] * len(values))})", *values)
    tail, name = expressions.tail(node, name, "aggregate")
    if len(values) == 1:
        counted = values[0].sql
    else:
        given = " AND ".join(f"{value.sql} IS NOT NULL" for value in values)
        row = f"row({', '.join(value.sql for value in values)})" if node.distinct else "1"
        counted = f"CASE WHEN {given} THEN {row} END"
    return Value(f"count({distinct}{counted}){tail}", BIGINT, name)


SPECIAL: dict[str, Special] = {"count": _count}
