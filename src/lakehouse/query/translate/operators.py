"""Operators: arithmetic, comparisons, boolean logic and LIKE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from lakehouse.query.translate.intervals import add_interval
from lakehouse.query.translate.literals import decimal_of
from lakehouse.query.translate.rules import coerce
from lakehouse.query.translate.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    STRING,
    NotTranslatedError,
    Type,
    adjusted_decimal,
    as_decimal,
    common_number,
    common_type,
    compared_type,
)
from lakehouse.query.translate.values import Value, needs_spark, string


def shown(template: str, *values: Value) -> str:
    """The name of an expression in Spark; empty if that of a part is not known."""
    names = [value.name for value in values]
    return template.format(*names) if all(names) else ""


# ---- arithmetic --------------------------------------------------------------------------------------------------


def arithmetic(operator: str, left: Value, right: Value) -> Value:
    """`+ - * / % div` of numbers, dates and intervals."""
    name = shown(f"({{}} {operator} {{}})", left, right)
    if left.type.is_time or right.type.is_time or "interval" in (left.type.kind, right.type.kind):
        return _with_time(operator, left, right)
    is_null = "void" in (left.type.kind, right.type.kind)
    left, right = _numbers(left, right, operator)
    if operator == "/" and (is_null or not _is_exact(left, right)):
        left, right = coerce(left, DOUBLE), coerce(right, DOUBLE)
        return Value(f"({left.sql} / nullif({right.sql}, 0))", DOUBLE, name)
    if "decimal" in (left.type.kind, right.type.kind) and not (left.type.is_fraction or right.type.is_fraction):
        return _decimals(operator, _as_decimal(left, right), _as_decimal(right, left)).named(name)
    if operator == "div":
        if not (left.type.is_integer and right.type.is_integer):
            raise NotTranslatedError(f"div of {left.type} and {right.type}")
        left, right = coerce(left, BIGINT), coerce(right, BIGINT)
        return Value(f"({left.sql} // nullif({right.sql}, 0))", BIGINT, name)
    common = common_number(left.type, right.type)
    left, right = coerce(left, common), coerce(right, common)
    divisor = f"nullif({right.sql}, 0)" if operator == "%" else right.sql
    return Value(f"({left.sql} {operator} {divisor})", common, name)


def _numbers(left: Value, right: Value, operator: str) -> tuple[Value, Value]:
    """Text counts as a double; NULL has the type of the other side."""
    pair = []
    for value, other in ((left, right), (right, left)):
        if value.type.kind == "void" and other.type.is_numeric:
            pair.append(coerce(value, other.type))
        elif value.type == STRING and operator != "div":
            pair.append(coerce(value, DOUBLE))
        elif value.type.is_numeric:
            # Only decimals keep a wider type of DuckDB: integers would not overflow where Spark's do.
            pair.append(value if value.type.kind == "decimal" else value.settled())
        else:
            raise NotTranslatedError(f"{operator} of {left.type} and {right.type}")
    return pair[0], pair[1]


def _is_exact(left: Value, right: Value) -> bool:
    kinds = (left.type, right.type)
    return any(kind.kind == "decimal" for kind in kinds) and not any(kind.is_fraction for kind in kinds)


def _as_decimal(value: Value, other: Value) -> Value:
    """A number beside a decimal: an integer literal takes as many digits as it has."""
    if value.type.kind == "decimal":
        return value
    if value.is_literal and isinstance(value.constant, int):
        kind = decimal_of(value.constant)
        return Value(f"CAST({value.constant} AS {kind.duckdb})", kind, value.name, value.constant, is_literal=True)
    assert other.type.kind == "decimal"
    return coerce(value, as_decimal(value.type))


def _decimals(operator: str, left: Value, right: Value) -> Value:
    p1, s1, p2, s2 = left.type.precision, left.type.scale, right.type.precision, right.type.scale
    whole, scale = max(p1 - s1, p2 - s2), max(s1, s2)
    match operator:
        case "+" | "-":
            kind, exact = adjusted_decimal(whole + scale + 1, scale), scale
        case "*":
            kind, exact = adjusted_decimal(p1 + p2 + 1, s1 + s2), s1 + s2
        case "%":
            kind = adjusted_decimal(min(p1 - s1, p2 - s2) + scale, scale)
            return Value(_remainder(left.sql, right.sql, scale, kind), kind, "")
        case "/":
            scale = max(6, s1 + p2 + 1)
            kind = adjusted_decimal(p1 - s1 + s2 + scale, scale)
            return Value(divided(left.sql, s1, right.sql, s2, kind), kind, "")
        case _:
            raise NotTranslatedError(f"{operator} of decimals")
    if exact > 38:
        raise NotTranslatedError(f"{operator} of {left.type} and {right.type}")
    value = Value(f"({left.sql} {operator} {right.sql})", kind, "", is_stored_otherwise=True)
    # DuckDB's result has the exact scale; where Spark keeps fewer digits it rounds half up, as DuckDB's cast does.
    return value if exact == kind.scale else value.settled()


def _remainder(left: str, right: str, scale: int, kind: Type) -> str:
    """The remainder by integers: DuckDB's own of two decimals of different types is that of doubles."""
    if kind.scale != scale:
        raise NotTranslatedError(f"% with the type {kind}")
    return scaled(f"({unscaled(left, scale)} % nullif({unscaled(right, scale)}, 0))", kind)


def unscaled(sql: str, scale: int) -> str:
    """The digits of a decimal as an integer."""
    if scale == 0:
        return f"CAST({sql} AS HUGEINT)"
    return f"CAST(CAST({sql} AS DECIMAL(38, {scale})) * CAST({10**scale} AS DECIMAL({scale + 1}, 0)) AS HUGEINT)"


def divided(left: str, left_scale: int, right: str, right_scale: int, kind: Type) -> str:
    """The quotient of two decimals in a decimal type, rounded half up: DuckDB itself divides decimals as doubles."""
    shift = kind.scale - left_scale + right_scale
    dividend, divisor = unscaled(left, left_scale), unscaled(right, right_scale)
    if shift > 0:
        dividend = f"({dividend} * {10**shift}::HUGEINT)"
    else:
        divisor = f"({divisor} * {10**-shift}::HUGEINT)"
    quotient = f"((2 * abs({dividend}) + abs({divisor})) // nullif(2 * abs({divisor}), 0))"
    # Spark rounds to 38 digits behind the point before; that shows only for divisors of more digits than these.
    signed = f"CASE WHEN abs({divisor}) > {10**18} THEN {needs_spark('HUGEINT')}"
    signed += f" WHEN ({dividend} < 0) = ({divisor} < 0) THEN {quotient} ELSE -{quotient} END"
    return scaled(signed, kind)


def scaled(digits: str, kind: Type) -> str:
    """A decimal of its digits as an integer."""
    if kind.scale == 0:
        return f"CAST({digits} AS {kind.duckdb})"
    unit = f"CAST('{10**-kind.scale:.{kind.scale}f}' AS DECIMAL({kind.scale + 1}, {kind.scale}))"
    return f"CAST(CAST({digits} AS DECIMAL(38, 0)) * {unit} AS {kind.duckdb})"


def _with_time(operator: str, left: Value, right: Value) -> Value:
    if operator == "+" and left.type.kind == "interval":
        left, right = right, left
    if right.type.kind == "interval" and left.type.is_time and operator in "+-":
        template = f"{{}} {operator} {{}}"
        if left.type == DATE and right.constant.last == "day":
            days = "extractansiintervaldays({})"
            template = f"date_add({{}}, {days if operator == '+' else f'(- {days})'})"
        return add_interval(left, right, operator, shown(template, left, right))
    if operator == "+" and right.type == DATE:
        left, right = right, left
    if left.type == DATE and operator in "+-" and right.type.kind in ("tinyint", "smallint", "int"):
        function = "date_add" if operator == "+" else "date_sub"
        return Value(
            f"({left.sql} {operator} {right.settled().sql})", DATE, shown(f"{function}({{}}, {{}})", left, right)
        )
    raise NotTranslatedError(f"{operator} of {left.type} and {right.type}")


def negated(value: Value) -> Value:
    if value.type.kind == "string":
        value = coerce(value, DOUBLE)
    if not value.type.is_numeric:
        raise NotTranslatedError(f"- of {value.type}")
    value = value if value.type.kind == "decimal" else value.settled()
    return Value(f"(-{value.sql})", value.type, shown("(- {})", value), is_stored_otherwise=value.is_stored_otherwise)


def bitwise(operator: str, left: Value, right: Value) -> Value:
    if not (left.type.is_integer and right.type.is_integer):
        raise NotTranslatedError(f"{operator} of {left.type} and {right.type}")
    common = common_number(left.type, right.type)
    left, right = coerce(left, common), coerce(right, common)
    sql = f"xor({left.sql}, {right.sql})" if operator == "^" else f"({left.sql} {operator} {right.sql})"
    return Value(sql, common, shown(f"({{}} {operator} {{}})", left, right))


def concatenated(values: Sequence[Value]) -> Value:
    """`||` and `concat`: NULL if any is NULL."""
    if not values:
        raise NotTranslatedError("concat of nothing")
    names = shown(f"concat({', '.join(['{}'] * len(values))})", *values)
    if all(value.type.kind == "array" for value in values):
        common = reduce(_common, (value.type for value in values[1:]), values[0].type)
        lists = [coerce(value, common).sql for value in values]
        return (
            Value(reduce(lambda left, right: f"list_concat({left}, {right})", lists), common, names)
            if (len(lists) == 1)
            else Value(f"CASE WHEN {_all_given(lists)} THEN list_concat({', '.join(lists)}) END", common, names)
        )
    if any(value.type.kind in ("binary", "array", "map", "struct") for value in values):
        raise NotTranslatedError("concat of " + ", ".join(str(value.type) for value in values))
    if any(value.type.kind == "void" for value in values):
        return Value("CAST(NULL AS VARCHAR)", STRING, names)
    texts = [coerce(value, STRING).sql for value in values]
    return Value(f"({' || '.join(texts)})", STRING, names)


def _all_given(sqls: Sequence[str]) -> str:
    return " AND ".join(f"{sql} IS NOT NULL" for sql in sqls)


# ---- comparisons and logic ---------------------------------------------------------------------------------------


def _common(left: Type, right: Type) -> Type:
    common = common_type(left, right)
    if common is None:
        raise NotTranslatedError(f"values of {left} and {right} together")
    return common


def comparison(operator: str, left: Value, right: Value) -> Value:
    if {_is_decimal_literal(left), _is_decimal_literal(right)} == {True, False} and (
        left.type.is_integer or right.type.is_integer
    ):
        left = left.named("")  # Spark compares with the next integer, and shows that
    if left.type.is_nested or right.type.is_nested:
        return _nested_comparison(operator, left, right)
    left, right = map(_kept_together, comparable(left, right))
    match operator:
        case "!=":
            return Value(f"({left.sql} <> {right.sql})", BOOLEAN, shown("(NOT ({} = {}))", left, right))
        case "<=>":
            return Value(f"({left.sql} IS NOT DISTINCT FROM {right.sql})", BOOLEAN, shown("({} <=> {})", left, right))
    return Value(f"({left.sql} {operator} {right.sql})", BOOLEAN, shown(f"({{}} {operator} {{}})", left, right))


def _nested_comparison(operator: str, left: Value, right: Value) -> Value:
    """A comparison of arrays or structs, in which NULLs are equal to each other. Spark sorts them first, DuckDB last."""
    left, right = (
        coerce(side, other.type) if side.type.kind == "void" else side for side, other in ((left, right), (right, left))
    )
    if left.type != right.type or left.type.holds("map", "float", "double"):
        raise NotTranslatedError(f"a comparison of {left.type} with {right.type}")
    left, right = left.settled(), right.settled()
    name = shown("(NOT ({} = {}))" if operator == "!=" else f"({{}} {operator} {{}})", left, right)
    if operator in ("=", "!=", "<=>"):
        word = {"!=": "<>", "<=>": "IS NOT DISTINCT FROM"}.get(operator, operator)
        return Value(f"({left.sql} {word} {right.sql})", BOOLEAN, name)
    if left.type.kind != "array" or left.type.parts[0].is_nested:
        raise NotTranslatedError(f"the order of {left.type}")
    nulls = " OR ".join(f"len({side.sql}) > list_count({side.sql})" for side in (left, right))
    sql = f"CASE WHEN {nulls} THEN {needs_spark('BOOLEAN')} ELSE ({left.sql} {operator} {right.sql}) END"
    return Value(sql, BOOLEAN, name)


def _kept_together(value: Value) -> Value:
    """DuckDB turns `a + 1 > 0` into `a > -1`, in which nothing overflows. It does not look into a function."""
    is_computed = value.type.is_integer and not value.is_literal and any(sign in value.sql for sign in "+-*")
    return replace(value, sql=f"greatest({value.sql})") if is_computed else value


def _is_decimal_literal(value: Value) -> bool:
    return value.is_literal and value.type.kind == "decimal"


def comparable(left: Value, right: Value) -> tuple[Value, Value]:
    """Two values in the type in which Spark compares them."""
    if left.type.kind == "decimal" and right.type.is_integer:
        right = _as_decimal(right, left)
    elif right.type.kind == "decimal" and left.type.is_integer:
        left = _as_decimal(left, right)
    common = compared_type(left.type, right.type)
    if common is not None and common.kind == "void":
        common = BOOLEAN
    if common is None or common.is_nested or common.kind == "interval":
        raise NotTranslatedError(f"a comparison of {left.type} with {right.type}")
    if common.kind == "decimal":
        # DuckDB compares decimals of any two types exactly; a literal gets the other's type, to skip files by it.
        return _literal_as(left, right, common), _literal_as(right, left, common)
    return coerce(left, common), coerce(right, common)


def _literal_as(value: Value, other: Value, common: Type) -> Value:
    if value.type.kind == "decimal" and not value.is_literal:
        return value
    return coerce(value, common if other.is_literal else other.type if other.type == common else common)


def boolean(value: Value, what: str) -> Value:
    if value.type.kind == "void":
        return coerce(value, BOOLEAN)
    if value.type != BOOLEAN:
        raise NotTranslatedError(f"{what} of {value.type}")
    return value


def logical(operator: str, left: Value, right: Value) -> Value:
    left, right = boolean(left, operator.upper()), boolean(right, operator.upper())
    word = operator.upper()
    return Value(f"({left.sql} {word} {right.sql})", BOOLEAN, shown(f"({{}} {word} {{}})", left, right))


def inverted(value: Value) -> Value:
    value = boolean(value, "NOT")
    return Value(f"(NOT {value.sql})", BOOLEAN, shown("(NOT {})", value))


def unified(values: Sequence[Value]) -> list[Value]:
    """Values in the type that they have in common, as branches of CASE."""
    common = reduce(_common, (value.type for value in values[1:]), values[0].type)
    return [_widened(value, common) for value in values]


def case(conditions: Sequence[Value], values: Sequence[Value]) -> Value:
    """CASE with its branches in one type."""
    branches = unified(values)
    if branches[0].type.kind == "void":
        raise NotTranslatedError("CASE of NULLs")
    if any(branch.is_stored_otherwise and branch.type.kind != "decimal" for branch in branches):
        branches = [branch.settled() for branch in branches]
    pairs = list(zip(conditions, branches, strict=False))
    sql = " ".join(f"WHEN {condition.sql} THEN {branch.sql}" for condition, branch in pairs)
    name = " ".join(f"WHEN {condition.name} THEN {branch.name}" for condition, branch in pairs)
    is_named = all(value.name for value in (*conditions, *values))
    if len(branches) > len(conditions):
        sql, name = f"{sql} ELSE {branches[-1].sql}", f"{name} ELSE {branches[-1].name}"
    stored = any(branch.is_stored_otherwise for branch in branches)
    return Value(
        f"CASE {sql} END", branches[0].type, f"CASE {name} END" if is_named else "", is_stored_otherwise=stored
    )


def _widened(value: Value, to: Type) -> Value:
    """A decimal of the same scale stays as DuckDB holds it."""
    if value.type.kind == to.kind == "decimal" and value.type.scale == to.scale and not value.is_literal:
        return replace(value, type=to, is_stored_otherwise=True)
    return coerce(value, to)


def member(operand: Value, options: Sequence[Value]) -> Value:
    """`IN (…)`."""
    names = shown(f"({{}} IN ({', '.join(['{}'] * len(options))}))", operand, *options)
    if operand.type.is_nested:
        # As comparisons, in which NULLs within are equal.
        same = [comparison("=", operand, _renamed(option, operand.type)).sql for option in options]
        return Value(f"({' OR '.join(same)})", BOOLEAN, names)
    first, *rest = [_kept_together(value.settled()) for value in unified([operand, *options])]
    if first.type.is_nested or first.type.kind == "void":
        raise NotTranslatedError(f"IN of {first.type}")
    return Value(f"({first.sql} IN ({', '.join(value.sql for value in rest)}))", BOOLEAN, names)


def _renamed(value: Value, kind: Type) -> Value:
    """A struct with the names of another, as in `(a, b) IN ((1, 2))`: Spark looks only at the types."""
    if value.type.kind == kind.kind == "struct" and value.type.parts == kind.parts:
        return coerce(value, kind)
    return value


def like(operand: Value, pattern: Value, escape: str) -> Value:
    operand, pattern = coerce(operand, STRING), coerce(pattern, STRING)
    name = shown("{} LIKE {}", operand, pattern)
    if len(escape) != 1 or (escape != "\\" and not pattern.is_literal):
        raise NotTranslatedError("LIKE with an escape character")
    if escape != "\\":
        name = ""
    if not pattern.is_literal:
        plain = f"CASE WHEN contains({pattern.sql}, '\\') THEN {needs_spark('VARCHAR')} ELSE {pattern.sql} END"
        return Value(f"({operand.sql} LIKE {plain})", BOOLEAN, name)
    text = str(pattern.constant)
    if escape not in text:
        return Value(f"({operand.sql} LIKE {pattern.sql})", BOOLEAN, name)
    position = 0
    while (position := text.find(escape, position)) >= 0:
        if text[position + 1 : position + 2] not in ("_", "%", escape):
            raise NotTranslatedError("LIKE with an invalid escape")
        position += 2
    return Value(f"({operand.sql} LIKE {pattern.sql} ESCAPE {string(escape)})", BOOLEAN, name)
