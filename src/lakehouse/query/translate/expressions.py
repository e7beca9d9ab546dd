"""Translate expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from lakehouse.query.sql import ast
from lakehouse.query.translate import operators
from lakehouse.query.translate.casts import cast_sql
from lakehouse.query.translate.functions import is_aggregate, rules_of, special_of
from lakehouse.query.translate.intervals import interval_value
from lakehouse.query.translate.literals import literal_value
from lakehouse.query.translate.operators import shown
from lakehouse.query.translate.rules import Rule, apply, coerce, fill, result_type, shown_call
from lakehouse.query.translate.scope import Scope, Subqueries, UnknownColumnError, struct_field
from lakehouse.query.translate.types import BOOLEAN, NotTranslatedError, Type, compared_type, parse_type
from lakehouse.query.translate.values import Value, literal_int

_COMPARISONS = {"=", "!=", "<", "<=", ">", ">=", "<=>"}


class Expressions:
    """Translates the expressions of one query."""

    def __init__(self, scope: Scope, queries: Subqueries) -> None:
        self.scope, self.queries = scope, queries

    def within(self, scope: Scope) -> Expressions:
        return Expressions(scope, self.queries)

    def translate(self, node: ast.Expression) -> Value:
        """Translate an expression.

        Raises:
            NotTranslatedError: a part of it has no rule.
            UnknownColumnError: a name in it is not known.
        """
        return _TRANSLATIONS[type(node)](self, node)

    def boolean(self, node: ast.Expression, what: str) -> Value:
        return operators.boolean(self.translate(node), what)

    def condition(self, node: ast.Expression, what: str, in_or: bool = False) -> Value:
        """Translate a condition of WHERE or HAVING, which keeps the rows for which it is true.

        Only there `a IN (query)` is the same: where NULLs make it NULL, Spark's value is false, or NULL, depending on its plan.
        """
        if isinstance(node, ast.Binary) and node.operator in ("and", "or"):
            # Once for the outermost OR, so that a long chain is not walked again for each of its parts.
            if node.operator == "or" and not in_or and len(_signs_of_in_queries(node)) > 1:
                # Spark takes `a IN (query) OR a NOT IN (query)` for true, also where a is NULL.
                raise NotTranslatedError("OR of IN and NOT IN of queries")
            in_or = in_or or node.operator == "or"
            left, right = (self.condition(part, what, in_or) for part in (node.left, node.right))
            return operators.logical(node.operator, left, right)
        inside = node.operand if isinstance(node, ast.Unary) and node.operator == "not" else node
        if not isinstance(inside, ast.In) or not isinstance(inside.options, ast.Query):
            return self.boolean(node, what)
        value = self._in_query(self.translate(inside.operand), inside.options)
        return operators.inverted(value) if inside.negated != (inside is not node) else value

    # ---- parts of expressions ------------------------------------------------------------------------------------

    def _name(self, node: ast.Name) -> Value:
        try:
            return self.scope.resolve(node)
        except UnknownColumnError:
            # Some functions need no parentheses, where no column has their name.
            function = node.parts[0].lower()
            if len(node.parts) > 1 or function not in _WITHOUT_PARENTHESES:
                raise
            if not rules_of(function):
                raise NotTranslatedError(function) from None
            return self.call_rules(function, [])

    def _unary(self, node: ast.Unary) -> Value:
        operand = self.translate(node.operand)
        match node.operator:
            case "not":
                return operators.inverted(operand)
            case "-":
                return operators.negated(operand)
            case "+" if operand.type.is_numeric:
                return operand.named(shown("(+ {})", operand))
            case "~" if operand.type.is_integer:
                operand = operand.settled()
                return Value(f"(~{operand.sql})", operand.type, shown("~{}", operand))
        raise NotTranslatedError(f"{node.operator} of {operand.type}")

    def _binary(self, node: ast.Binary) -> Value:
        left, right = self.translate(node.left), self.translate(node.right)
        if node.operator in ("and", "or"):
            return operators.logical(node.operator, left, right)
        if node.operator in _COMPARISONS:
            return operators.comparison(node.operator, left, right)
        if node.operator == "||":
            return operators.concatenated((left, right))
        if node.operator in ("&", "|", "^"):
            return operators.bitwise(node.operator, left, right)
        return operators.arithmetic(node.operator, left, right)

    def _is(self, node: ast.Is) -> Value:
        operand = self.translate(node.operand)
        no = "NOT " if node.negated else ""
        if node.what in ("null", "unknown"):
            if node.what == "unknown":
                operand = operators.boolean(operand, "IS UNKNOWN")
            return Value(f"({operand.sql} IS {no}NULL)", BOOLEAN, shown(f"({{}} IS {no}NULL)", operand))
        operand = operators.boolean(operand, f"IS {node.what.upper()}")
        sign = shown(f"({{}} <=> {node.what})", operand)
        name = f"(NOT {sign})" if node.negated and sign else sign
        return Value(f"({operand.sql} IS {no}{node.what.upper()})", BOOLEAN, name)

    def _between(self, node: ast.Between) -> Value:
        operand = self.translate(node.operand)
        low = operators.comparison(">=", operand, self.translate(node.low))
        high = operators.comparison("<=", operand, self.translate(node.high))
        both = operators.logical("and", low, high)
        return operators.inverted(both) if node.negated else both

    def _in(self, node: ast.In) -> Value:
        if isinstance(node.options, ast.Query):
            raise NotTranslatedError("IN of a query as a value")
        operand = self.translate(node.operand)
        value = operators.member(operand, [self.translate(option) for option in node.options])
        return operators.inverted(value) if node.negated else value

    def _in_query(self, operand: Value, query: ast.Query) -> Value:
        sql, columns = self._rows_of(query)
        if len(columns) != 1:
            raise NotTranslatedError("IN of a query with several columns")
        common = compared_type(operand.type, columns[0].type)
        if common is None or common.is_nested:
            raise NotTranslatedError(f"IN of {operand.type} and {columns[0].type}")
        if columns[0].type != common:
            if "string" in (operand.type.kind, columns[0].type.kind):
                raise NotTranslatedError(f"IN of {operand.type} and {columns[0].type}")
            sql = f"SELECT {coerce(replace(columns[0], sql='q.c1'), common).sql} FROM ({sql}) AS q"
        return Value(f"({coerce(operand, common).sql} IN ({sql}))", BOOLEAN, shown("({} IN (listquery()))", operand))

    def _like(self, node: ast.Like) -> Value:
        operand, pattern = self.translate(node.operand), self.translate(node.pattern)
        if node.operator == "like":
            value = operators.like(operand, pattern, node.escape)
        elif node.operator == "ilike":
            lower = [self.call_rules("lower", [argument]) for argument in (operand, pattern)]
            if pattern.is_literal:
                text = str(pattern.constant)
                lower[1] = literal_value(ast.Literal("string", text.lower()))
                if not text.isascii():
                    raise NotTranslatedError("ILIKE with letters beyond ASCII")
            value = operators.like(lower[0], lower[1], node.escape).named(shown("ilike({}, {})", operand, pattern))
        else:
            value = self.call_rules("rlike", [operand, pattern])
        return operators.inverted(value) if node.negated else value

    def _case(self, node: ast.Case) -> Value:
        operand = self.translate(node.operand) if node.operand is not None else None
        conditions = []
        for condition, _ in node.branches:
            value = self.translate(condition)
            conditions.append(
                operators.comparison("=", operand, value) if operand else operators.boolean(value, "WHEN")
            )
        values = [self.translate(result) for _, result in node.branches]
        if node.otherwise is not None:
            values.append(self.translate(node.otherwise))
        return operators.case(conditions, values)

    def _cast(self, node: ast.Cast) -> Value:
        operand = self.translate(node.operand)
        kind = parse_type(node.type)
        if node.is_try and (operand.type.kind, kind.kind) not in _SAME_TRY_CASTS and operand.type != kind:
            raise NotTranslatedError(f"try_cast of {operand.type} to {kind}")
        word = "TRY_CAST" if node.is_try else "CAST"
        name = shown(f"{word}({{}} AS {str(kind).upper()})", operand) if not kind.is_nested else ""
        if not node.is_try and operand.is_literal and isinstance(operand.constant, str):
            constant = coerce(operand, kind).named(name)
            # To Spark a cast is no literal, which has as many digits beside a decimal as it needs.
            return replace(constant, constant=None, is_literal=False) if kind.is_numeric else constant
        return Value(cast_sql(operand.settled().sql, operand.type, kind), kind, name)

    def _exists(self, node: ast.Exists) -> Value:
        return Value(f"EXISTS ({self._rows_of(node.query)[0]})", BOOLEAN, "")

    def _rows_of(self, query: ast.Query) -> tuple[str, Sequence[Value]]:
        """A query behind EXISTS or IN. Of one that aggregates, Spark loses the row of no rows where it uses names from around it."""
        sql, columns, is_correlated = self.queries.subquery(query, self.scope)
        if is_correlated and not _keeps_rows(query.body):
            raise NotTranslatedError("a subquery with names from around it that aggregates")
        return sql, columns

    def _subquery(self, node: ast.Subquery) -> Value:
        sql, columns, is_correlated = self.queries.subquery(node.query, self.scope)
        if len(columns) != 1:
            raise NotTranslatedError("a subquery with several columns")
        if is_correlated and not _is_one_row(node.query.body):
            raise NotTranslatedError("a subquery with names from around it that does not aggregate")
        # Spark shows the names from around a subquery.
        return Value(f"({sql})", columns[0].type, "" if is_correlated else "scalarsubquery()")

    def _subscript(self, node: ast.Subscript) -> Value:
        operand, index = self.translate(node.operand), self.translate(node.index)
        name = shown("{}[{}]", operand, index)
        operand = operand.settled()
        if operand.type.kind == "array" and index.type.is_integer:
            place = coerce(index, Type("bigint")).sql
            if index.is_literal:
                sql = f"({operand.sql})[{literal_int(index, 'index') + 1}]" if index.constant >= 0 else "NULL"
            else:
                sql = f"CASE WHEN {place} >= 0 THEN ({operand.sql})[{place} + 1] END"
            return Value(sql, operand.type.parts[0], name)
        if operand.type.kind == "map":
            key = coerce(index, operand.type.parts[0])
            return Value(f"map_extract_value({operand.sql}, {key.sql})", operand.type.parts[1], name)
        raise NotTranslatedError(f"an element of {operand.type}")

    def _field(self, node: ast.Field) -> Value:
        operand = self.translate(node.operand)
        return struct_field(operand, node.name).named(shown(f"{{}}.{node.name}", operand))

    def _alias(self, node: ast.Alias) -> Value:
        return self.translate(node.operand).named(node.name)

    def _unsupported(self, node: Any) -> Value:
        raise NotTranslatedError({"Star": "*", "Lambda": "a lambda function"}.get(type(node).__name__, "this"))

    # ---- functions -----------------------------------------------------------------------------------------------

    def _call(self, node: ast.Call) -> Value:
        name = node.name + (" ignore nulls" if node.ignore_nulls else "")
        special = special_of(name)
        if special is not None:
            return special(self, node)
        rules = rules_of(name)
        if not rules:
            raise NotTranslatedError(f"the function {name}")
        if node.within:
            raise NotTranslatedError(f"{name} WITHIN GROUP")
        return self.call_aggregate(node, rules, [self.translate(argument) for argument in node.arguments])

    def call_rules(self, function: str, values: Sequence[Value]) -> Value:
        """Call a scalar function by its rules."""
        rules = rules_of(function)
        if not rules:
            raise NotTranslatedError(f"the function {function}")
        rule, arguments = apply(rules, values)
        name = shown_call(rule, values)
        return Value(fill(rule, arguments), result_type(rule, arguments), name, is_stored_otherwise=rule.stored)

    def call_aggregate(self, node: ast.Call, rules: Sequence[Rule], values: Sequence[Value]) -> Value:
        """Call a function that may have DISTINCT, FILTER and OVER."""
        rule, arguments = apply(rules, values)
        is_plain = not (node.distinct or node.where or node.over)
        is_window = rule.kind.startswith("window")
        if (rule.kind == "scalar" and not is_plain) or (is_window and node.over is None):
            raise NotTranslatedError(f"{node.name} in this place")
        distinct = "DISTINCT " if node.distinct else ""
        name = shown_call(rule, values, distinct)
        tail, name = self.tail(node, name, rule.kind)
        sql = fill(rule, arguments, distinct, tail)
        return Value(sql, result_type(rule, arguments), name, is_stored_otherwise=rule.stored)

    def tail(self, node: ast.Call, name: str, kind: str) -> tuple[str, str]:
        """FILTER and OVER of a call as SQL, and the name with them."""
        tail = ""
        if node.where is not None:
            condition = self.boolean(node.where, "FILTER")
            tail = f" FILTER (WHERE {condition.sql})"
            name = f"{name} FILTER (WHERE {condition.name})" if name and condition.name else ""
        if node.over is not None:
            if node.distinct or node.where is not None:
                raise NotTranslatedError("DISTINCT or FILTER over a window")
            sql, shown_window = self._window(node.over, kind)
            tail += f" OVER ({sql})"
            name = f"{name} OVER ({shown_window})" if name and shown_window else ""
        return tail, name

    def _window(self, window: ast.Window, kind: str) -> tuple[str, str]:
        if window.base:
            base = self.scope.windows.get(window.base)
            if base is None or window.partition_by or window.order_by or window.frame:
                raise NotTranslatedError(f"the window {window.base}")
            window = base
        partition = [self.translate(expression) for expression in window.partition_by]
        keys = [(self.translate(key.expression), key) for key in window.order_by]
        for value in partition:
            check_groupable(value.type, "a window")
        for value, _ in keys:
            if value.type.is_nested:
                raise NotTranslatedError(f"a window by {value.type}")
        frame, shown_frame = self._frame(window, kind)
        parts = [
            "PARTITION BY " + ", ".join(group_key(value) for value in partition) if partition else "",
            "ORDER BY " + ", ".join(sort_key(value.settled().sql, key) for value, key in keys) if keys else "",
            frame,
        ]
        shown_parts = [
            "PARTITION BY " + ", ".join(value.name for value in partition) if partition else "",
            "ORDER BY " + ", ".join(sort_key(value.name, key) for value, key in keys) if keys else "",
            shown_frame,
        ]
        names = [*(value.name for value in partition), *(value.name for value, _ in keys)]
        return " ".join(filter(None, parts)), " ".join(filter(None, shown_parts)) if all(names) else ""

    def _frame(self, window: ast.Window, kind: str) -> tuple[str, str]:
        """The frame for DuckDB, and as Spark shows it, also where none is written."""
        if kind.startswith("window"):
            if window.frame is not None or not window.order_by:
                raise NotTranslatedError("a frame of a ranking function")
            if kind.startswith("window at "):
                bound = f"{kind.removeprefix('window at ')} FOLLOWING"
                return "", f"ROWS BETWEEN {bound} AND {bound}"
            return "", f"{'RANGE' if kind == 'window range' else 'ROWS'} BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
        if window.frame is None:
            if window.order_by:
                return "", "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
            return "", "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
        bounds = [self._bound(bound, window.frame.unit) for bound in (window.frame.start, window.frame.end)]
        text = f"{window.frame.unit.upper()} BETWEEN {bounds[0]} AND {bounds[1]}"
        if window.frame.unit == "range" and not window.order_by:
            raise NotTranslatedError("RANGE without ORDER BY")
        return text, text

    def _bound(self, bound: tuple[str, ast.Expression | None], unit: str) -> str:
        direction, offset = bound
        if offset is None:
            return direction.upper()
        count = self.translate(offset)
        if unit != "rows" or direction not in ("preceding", "following"):
            raise NotTranslatedError("RANGE with an offset")
        number = literal_int(count, "a frame")
        if number < 0:
            raise NotTranslatedError("a frame with a negative offset")
        return f"{number} {direction.upper()}"


def _signs_of_in_queries(node: ast.Expression, negated: bool = False) -> set[bool]:
    """Whether the `IN (query)` of a condition are negated: one of them, both, or none."""
    match node:
        case ast.Binary(operator="and" | "or"):
            return _signs_of_in_queries(node.left, negated) | _signs_of_in_queries(node.right, negated)
        case ast.Unary(operator="not"):
            return _signs_of_in_queries(node.operand, not negated)
        case ast.In(options=ast.Query()):
            return {node.negated != negated}
    return set()


def _is_one_row(body: ast.Body) -> bool:
    """Whether a query gives one row because it aggregates all; Spark refuses most others as correlated values."""
    return isinstance(body, ast.Select) and body.group is None and any(map(_aggregates, body.items))


def _keeps_rows(body: ast.Body) -> bool:
    """Whether a query gives a row for each row that it reads."""
    if not isinstance(body, ast.Select) or body.group is not None or body.having is not None:
        return False
    return not any(map(_aggregates, body.items))


def _aggregates(node: object) -> bool:
    """Whether an expression has an aggregate function, other than over a window."""
    if isinstance(node, ast.Call) and node.over is None and is_aggregate(node.name):
        return True
    if isinstance(node, tuple):
        return any(map(_aggregates, node))
    if not is_dataclass(node) or isinstance(node, ast.Query):
        return False
    return any(_aggregates(getattr(node, field.name)) for field in fields(node))


def sort_key(sql: str, key: ast.SortKey) -> str:
    """A sort key with its direction and its order of NULLs, always written out."""
    return f"{sql} {'DESC' if key.descending else 'ASC'} NULLS {'FIRST' if key.nulls_first else 'LAST'}"


def check_groupable(kind: Type, what: str) -> None:
    """Nested values belong together if their parts do, except for numbers with two zeros; Spark does not group maps."""
    if kind.is_nested and kind.holds("map", "float", "double"):
        raise NotTranslatedError(f"{what} of {kind}")


def group_key(value: Value) -> str:
    """A key of rows that belong together. Spark takes both zeros for one, and shows the positive."""
    return f"({value.settled().sql} + 0)" if value.type.is_fraction else value.settled().sql


_WITHOUT_PARENTHESES = {"current_date", "current_timestamp", "current_user", "user"}
#: Where `try_cast`, which follows ANSI mode, and `cast` give the same.
_SAME_TRY_CASTS = {
    *((kind, "string") for kind in ("boolean", "tinyint", "smallint", "int", "bigint", "date", "timestamp")),
    ("tinyint", "int"),
    ("smallint", "int"),
    ("int", "bigint"),
    ("int", "double"),
    ("date", "timestamp"),
    ("timestamp", "date"),
}
_TRANSLATIONS: Mapping[type, Callable[[Expressions, Any], Value]] = {
    ast.Name: Expressions._name,
    ast.Literal: lambda _, node: literal_value(node),
    ast.Parameter: lambda self, node: self.queries.parameter(node.name),
    ast.IntervalLiteral: lambda _, node: interval_value(node.parts),
    ast.Call: Expressions._call,
    ast.Unary: Expressions._unary,
    ast.Binary: Expressions._binary,
    ast.Is: Expressions._is,
    ast.Between: Expressions._between,
    ast.In: Expressions._in,
    ast.Like: Expressions._like,
    ast.Case: Expressions._case,
    ast.Cast: Expressions._cast,
    ast.Exists: Expressions._exists,
    ast.Subquery: Expressions._subquery,
    ast.Subscript: Expressions._subscript,
    ast.Field: Expressions._field,
    ast.Alias: Expressions._alias,
    ast.Star: Expressions._unsupported,
    ast.Lambda: Expressions._unsupported,
}
