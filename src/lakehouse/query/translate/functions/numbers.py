"""Functions of numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

from lakehouse.query.sql import ast
from lakehouse.query.translate import operators
from lakehouse.query.translate.casts import DIGITS, cast_sql, double_as_decimal
from lakehouse.query.translate.operators import scaled, shown, unscaled
from lakehouse.query.translate.rules import Rule, coerce, rule
from lakehouse.query.translate.scope import ExpressionTranslator, Special
from lakehouse.query.translate.types import BIGINT, DOUBLE, NotTranslatedError, Type, common_number, decimal
from lakehouse.query.translate.values import Value, let, literal_int, needs_spark

# ---- rounding ----------------------------------------------------------------------------------------------------


def _scale(values: Sequence[Value]) -> int:
    scale = literal_int(values[1], "round to a number of digits") if len(values) > 1 else 0
    if abs(scale) > 17:
        raise NotTranslatedError("round to more than 17 digits")
    return scale


def _rounded_type(values: Sequence[Value]) -> Type:
    kind, scale = values[0].type, _scale(values)
    whole = kind.precision - kind.scale + 1
    if scale < 0:
        return decimal(min(max(whole, 1 - scale), 38), 0)
    return decimal(min(whole + min(scale, kind.scale), 38), min(scale, kind.scale))


#: Whether the digits that remain (`q`) grow by one, by those that are left out (`r` of `p`).
_GROWS = {
    "round": "{r} >= {p} - {r}",
    "bround": "({r} > {p} - {r} OR ({r} = {p} - {r} AND {q} % 2 = 1))",
    "ceil": "({r} > 0 AND u > 0)",
    "floor": "({r} > 0 AND u < 0)",
}


def _by_digits(function: str) -> Callable[[Sequence[Value]], str]:
    """Rounding of decimals and integers by their digits; the result is a decimal, or of the integer's own type."""

    def build(values: Sequence[Value]) -> str:
        kind, to = values[0].type, _scale(values)
        result = _rounded_type(values) if kind.kind == "decimal" else kind
        left_out = kind.scale - to
        if left_out <= 0:
            return f"CAST({{0}} AS {result.duckdb})"
        if left_out > 38:
            raise NotTranslatedError(f"{function} of {kind} to {to} digits")
        p = f"{10**left_out}::HUGEINT"
        q, r = f"(abs(u) // {p})", f"(abs(u) % {p})"
        grown = f"({q} + CAST({_GROWS[function].format(p=p, q=q, r=r)} AS INTEGER))"
        digits = f"CASE WHEN u < 0 THEN -{grown} ELSE {grown} END * {10 ** max(-to, 0)}::HUGEINT"
        rounded = let("u", unscaled("{0}", kind.scale), digits)
        return scaled(rounded, result) if kind.kind == "decimal" else f"CAST({rounded} AS {result.duckdb})"

    return build


def _rounded_fraction(function: str) -> Callable[[Sequence[Value]], str]:
    """Spark rounds the decimal number that Java writes for a double.

    Java 17 writes some numbers with a digit more than needed. Where both neighbours of a double round to the same number, the
    double does so too, however it is written; a double of up to 15 digits is written in the same way by both.
    """

    def build(values: Sequence[Value]) -> str:
        kind, to = values[0].type, _scale(values)
        if to < 0:
            return _tens(function, kind, -to)
        target = decimal(38, to)
        below, above = (double_as_decimal(f"nextafter(x, '{end}'::DOUBLE)", target) for end in ("-inf", "inf"))
        as_float = double_as_decimal("CAST(x AS FLOAT)", target)
        same_as_float = f" AND {as_float} = {below}" if kind.kind == "float" else ""
        sql = (
            f"CASE WHEN NOT isfinite(x) OR x = trunc(x) THEN x + 0"
            f" WHEN {below} = {above}{same_as_float} THEN CAST(CAST({below} AS VARCHAR) AS {kind.duckdb})"
        )
        if kind.kind == "double":
            sql += f" WHEN {DIGITS.replace('{0}', 'x')} <= 15 THEN {_near_half(function, to)}"
        sql += f" WHEN x IS NOT NULL THEN {needs_spark('DOUBLE')} END"
        return f"CAST({let('x', 'CAST({0} AS DOUBLE)', sql)} AS {kind.duckdb})"

    return build


def _near_half(function: str, to: int) -> str:
    """A double whose decimal number is about in the middle between two results."""
    upwards = f"CAST(CAST({double_as_decimal('x', decimal(38, to))} AS VARCHAR) AS DOUBLE)"
    if function == "round":
        return upwards
    middle = double_as_decimal("x", decimal(38, to + 1))
    digits = f"(abs({unscaled(middle, to + 1)}) // 10)"
    even = scaled(f"({digits} + {digits} % 2)", decimal(38, to))
    is_half = f"CAST(CAST({middle} AS VARCHAR) AS DOUBLE) = x AND abs({unscaled(middle, to + 1)}) % 10 = 5"
    return f"CASE WHEN {is_half} THEN sign(x) * CAST({even}::VARCHAR AS DOUBLE) + 0 ELSE {upwards} END"


def _tens(function: str, kind: Type, zeros: int) -> str:
    """To tens or hundreds: digits behind the point do not matter, except for a number right behind a half."""
    p = 10**zeros
    q, r = f"(trunc(abs(x))::BIGINT // {p})", f"(trunc(abs(x))::BIGINT % {p})"
    grows = f"{r} >= {p // 2}"
    if function == "bround":
        grows = f"({r} > {p // 2} OR ({r} = {p // 2} AND (abs(x) > trunc(abs(x)) OR {q} % 2 = 1)))"
    number = f"(({q} + CAST({grows} AS INTEGER)) * {p})::DOUBLE"
    # Beyond, the number that Java writes is not exactly the double.
    sql = (
        f"CASE WHEN NOT isfinite(x) THEN x WHEN abs(x) < {2**53} THEN CASE WHEN x < 0 THEN 0 - {number} ELSE {number} END"
        f" WHEN x IS NOT NULL THEN {needs_spark('DOUBLE')} END"
    )
    return f"CAST({let('x', 'CAST({0} AS DOUBLE)', sql)} AS {kind.duckdb})"


def _whole_type(values: Sequence[Value]) -> Type:
    """The type of `ceil` and `floor` of a decimal."""
    kind = values[0].type
    return decimal(min(kind.precision - kind.scale + 1, 38), 0)


def _roundings() -> list[Rule]:
    rules = []
    for name in ("round", "bround"):
        for more, shown_text in (("", f"{name}({{0}}, 0)"), (" int!", "")):
            rules += [
                rule(name, f"integer{more}", "0", _by_digits(name), shown=shown_text),
                rule(name, f"decimal{more}", _rounded_type, _by_digits(name), shown=shown_text),
                rule(name, f"fraction{more}", "0", _rounded_fraction(name), shown=shown_text),
            ]
    for name, own, shown_name in (
        ("ceil", "ceil", "CEIL"),
        ("ceiling", "ceil", "ceiling"),
        ("floor", "floor", "FLOOR"),
    ):
        rules += [
            rule(name, "integer", "bigint", "CAST({0} AS BIGINT)", shown=shown_name),
            rule(name, "decimal", _whole_type, f"CAST({own}({{0}}) AS DECIMAL(38, 0))", stored=True, shown=shown_name),
            rule(name, "fraction", "bigint", cast_sql(f"{own}({{0}}::DOUBLE)", DOUBLE, BIGINT), shown=shown_name),
            rule(name, "decimal int!", _rounded_type, _by_digits(own)),
        ]
    return rules


# ---- functions with a curve --------------------------------------------------------------------------------------

_TENS = {Decimal(10) ** power for power in range(23)}
#: Java and DuckDB compute these by different approximations, which differ in the last digit. These results are exact in both.
_POINTS: dict[str, Callable[[Decimal], float | str | None]] = {
    "exp": lambda x: 1.0 if x == 0 else None,
    "expm1": lambda x: 0.0 if x == 0 else None,
    "ln": lambda x: "NULL" if x <= 0 else 0.0 if x == 1 else None,
    "log10": lambda x: "NULL" if x <= 0 else float(x.adjusted()) if x in _TENS else None,
    "log1p": lambda x: "NULL" if x <= -1 else 0.0 if x == 0 else None,
    "log2": lambda x: "NULL" if x <= 0 else float(x == 2) if x in (1, 2) else None,
    **dict.fromkeys(("sin", "tan", "asinh", "atan", "sinh", "tanh"), lambda x: 0.0 if x == 0 else None),
    **dict.fromkeys(("cos", "cosh", "sec"), lambda x: 1.0 if x == 0 else None),
    "asin": lambda x: "NaN" if abs(x) > 1 else 0.0 if x == 0 else None,
    "acos": lambda x: "NaN" if abs(x) > 1 else 0.0 if x == 1 else None,
    "acosh": lambda x: "NaN" if x < 1 else 0.0 if x == 1 else None,
    "atanh": lambda x: "NaN" if abs(x) > 1 else 0.0 if x == 0 else None,
}


def _points(function: str) -> Rule:
    def build(values: Sequence[Value]) -> str:
        constant = values[0].constant
        known = _POINTS[function](Decimal(constant)) if isinstance(constant, int | Decimal) else None
        if known is None:
            raise NotTranslatedError(f"{function} of other values than the exact ones")
        return "CAST(NULL AS DOUBLE)" if known == "NULL" else f"'{known}'::DOUBLE"

    return rule(function, "double", "double", build, shown="ln" if function == "ln" else function.upper())


_WHOLE = "{0} = trunc({0}) AND {1} = trunc({1})"
#: Java squares for the exponent 2; a whole result is exact in both.
_POWER = (
    "CASE WHEN {1} = 0 THEN 1 WHEN {1} = 1 THEN {0} WHEN {1} = 2 THEN {0} * {0} WHEN {1} = 0.5 AND {0} >= 0 THEN sqrt({0} + 0)"
    f" WHEN {_WHOLE} AND {{1}} > 0 AND abs({{0}}) <= {2**53} AND abs(pow({{0}}, {{1}})) <= {2**53} THEN pow({{0}}, {{1}})"
    f" WHEN {{0}} IS NOT NULL AND {{1}} IS NOT NULL THEN {needs_spark('DOUBLE')} END"
)
#: The roots of cubes, and the lengths of whole triangles, all of which Java was asked for.
_CUBE_ROOT = (
    "CASE WHEN NOT isfinite({0}) OR {0} = 0 THEN {0}"
    f" WHEN abs({{0}}) < {2**53} AND round(cbrt({{0}})) * round(cbrt({{0}})) * round(cbrt({{0}})) = {{0}} THEN round(cbrt({{0}}))"
    f" WHEN {{0}} IS NOT NULL THEN {needs_spark('DOUBLE')} END"
)
_LENGTH = "sqrt({0} * {0} + {1} * {1})"
_HYPOTENUSE = (
    f"CASE WHEN {_WHOLE} AND abs({{0}}) <= 6000 AND abs({{1}}) <= 6000 AND {_LENGTH} = trunc({_LENGTH}) THEN {_LENGTH}"
    f" WHEN {{0}} IS NOT NULL AND {{1}} IS NOT NULL THEN {needs_spark('DOUBLE')} END"
)
#: Adding 2^52 leaves no room for digits behind the point; the sign of a zero stays.
_NEAREST = (
    f"CASE WHEN NOT abs({{0}}) < {2**52} THEN {{0}} WHEN abs({{0}}) <= 0.5 THEN {{0}} * 0::DOUBLE"
    f" WHEN {{0}} > 0 THEN ({{0}} + {2**52}::DOUBLE) - {2**52}::DOUBLE ELSE ({{0}} - {2**52}::DOUBLE) + {2**52}::DOUBLE END"
)
_SIGN = "CASE WHEN isnan({0}) OR {0} = 0 THEN {0} ELSE CAST(sign({0}) AS DOUBLE) END"


# ---- bits --------------------------------------------------------------------------------------------------------


def _shifts() -> list[Rule]:
    """Java shifts by the last five or six bits of the number of places, and lets the highest bits fall."""
    rules = []
    # Text and other numbers count as int.
    for kind, given, bits in (("bigint", "bigint!", 64), ("int", "int", 32)):
        places = f"({{1}} & {bits - 1})"
        mask, top = f"{2**bits - 1}::HUGEINT", f"{2 ** (bits - 1)}::HUGEINT"
        to = Type(kind).duckdb
        left = f"({{0}}::HUGEINT * (1::HUGEINT << {places}))"
        unsigned = f"(({{0}}::HUGEINT & {mask}) >> {places})"
        for name, sql in {"shiftleft": left, "shiftrightunsigned": unsigned}.items():
            rules.append(rule(name, f"{given} int", kind, f"CAST(xor({sql} & {mask}, {top}) - {top} AS {to})"))
        rules.append(rule("shiftright", f"{given} int", kind, f"({{0}} >> {places})"))
    return rules


def _bit(values: Sequence[Value]) -> str:
    bits = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}[values[0].type.kind]
    return (
        f"CASE WHEN {{1}} >= 0 AND {{1}} < {bits} THEN CAST(({{0}}::BIGINT >> {{1}}) & 1 AS TINYINT)"
        f" WHEN {{0}} IS NOT NULL AND {{1}} IS NOT NULL THEN {needs_spark('TINYINT')} END"
    )


_BASES = {2: ("0b", "[01]{1,60}"), 10: ("", "[0-9]{1,18}"), 16: ("0x", "[0-9A-Fa-f]{1,15}")}


def _converted(values: Sequence[Value]) -> str:
    given, to = (literal_int(value, "conv with a base") for value in values[1:])
    if given not in _BASES or not 2 <= to <= 36:
        raise NotTranslatedError(f"conv from {given} to {to}")
    prefix, digits = _BASES[given]
    return (
        f"CASE WHEN regexp_full_match({{0}}, '{digits}') THEN to_base(CAST('{prefix}' || {{0}} AS BIGINT), {to})"
        f" WHEN {{0}} <> '' THEN {needs_spark('VARCHAR')} END"
    )


_WIDTH_BUCKET = (
    "CASE WHEN {3} <= 0 OR isnan({0}) OR {1} = {2} OR NOT isfinite({1}) OR NOT isfinite({2}) THEN NULL"
    " WHEN {1} < {2} THEN CASE WHEN {0} < {1} THEN 0 WHEN {0} >= {2} THEN {3} + 1"
    " ELSE CAST(trunc({3}::DOUBLE * ({0} - {1}) / ({2} - {1})) AS BIGINT) + 1 END"
    " ELSE CASE WHEN {0} > {1} THEN 0 WHEN {0} <= {2} THEN {3} + 1"
    " ELSE CAST(trunc({3}::DOUBLE * ({1} - {0}) / ({1} - {2})) AS BIGINT) + 1 END END"
)

RULES = [
    rule("abs", "integer", "0", "abs({0})"),
    rule("abs", "fraction", "0", "abs({0})"),
    rule("abs", "decimal", "0", "abs({0})"),
    rule("abs", "double", "double", "abs({0})"),
    rule("sign", "double", "double", _SIGN),
    rule("signum", "double", "double", _SIGN, shown="SIGNUM"),
    *_roundings(),
    rule("rint", "double", "double", _NEAREST),
    rule("sqrt", "double", "double", "CASE WHEN {0} < 0 THEN 'NaN'::DOUBLE ELSE sqrt({0}) END", shown="SQRT"),
    rule("cbrt", "double", "double", _CUBE_ROOT, shown="CBRT"),
    rule("hypot", "double double", "double", _HYPOTENUSE, shown="HYPOT"),
    rule("pow", "double double", "double", _POWER),
    rule("power", "double double", "double", _POWER, shown="POWER"),
    rule("degrees", "double", "double", "({0} * 57.29577951308232::DOUBLE)", shown="DEGREES"),
    rule("radians", "double", "double", "({0} * 0.017453292519943295::DOUBLE)", shown="RADIANS"),
    rule("e", "", "double", "2.718281828459045::DOUBLE", shown="E"),
    rule("pi", "", "double", "3.141592653589793::DOUBLE", shown="PI"),
    *(_points(function) for function in _POINTS),
    rule("factorial", "int", "bigint", "CASE WHEN {0} BETWEEN 0 AND 20 THEN CAST(factorial({0}) AS BIGINT) END"),
    rule("width_bucket", "double double double bigint", "bigint", _WIDTH_BUCKET),
    rule("bin", "bigint", "string", "bin({0})"),
    rule("conv", "string int! int!", "string", _converted),
    rule("bit_count", "integer", "int", "bit_count({0}::BIGINT)", stored=True),
    rule("bit_count", "boolean!", "int", "CAST({0} AS INTEGER)"),
    rule("bit_get", "integer int", "tinyint", _bit),
    rule("getbit", "integer int", "tinyint", _bit),
    *_shifts(),
    rule("positive", "number", "0", "{0}", shown="(+ {0})"),
]

# ---- operators in the form of functions --------------------------------------------------------------------------


def _two(expressions: ExpressionTranslator, node: ast.Call) -> tuple[Value, Value]:
    if len(node.arguments) != 2 or node.distinct or node.where or node.over or node.within:
        raise NotTranslatedError(f"{node.name} in this place")
    left, right = (expressions.translate(argument) for argument in node.arguments)
    return left, right


def _mod(expressions: ExpressionTranslator, node: ast.Call) -> Value:
    left, right = _two(expressions, node)
    return operators.arithmetic("%", left, right).named(shown("mod({}, {})", left, right))


def _pmod(expressions: ExpressionTranslator, node: ast.Call) -> Value:
    """The remainder that is not negative, for a positive divisor."""
    left, right = _two(expressions, node)
    if not (left.type.is_numeric and right.type.is_numeric) or "decimal" in (left.type.kind, right.type.kind):
        raise NotTranslatedError(f"pmod of {left.type} and {right.type}")
    kind = common_number(left.type, right.type)
    a, n = coerce(left, kind).sql, f"nullif({coerce(right, kind).sql}, 0)"
    sql = f"CASE WHEN {a} % {n} < 0 THEN ({a} % {n} + {n}) % {n} ELSE {a} % {n} END"
    return Value(sql, kind, shown("pmod({}, {})", left, right))


_TRY = {"try_add": "+", "try_subtract": "-", "try_multiply": "*", "try_divide": "/"}


def _try(expressions: ExpressionTranslator, node: ast.Call) -> Value:
    """Arithmetic whose overflow is NULL."""
    left, right = _two(expressions, node)
    operator = _TRY[node.name]
    name = shown(f"{node.name}({{}}, {{}})", left, right)
    if operator != "/" and left.type.is_integer and right.type.is_integer:
        kind = common_number(left.type, right.type)
        wide = f"({left.settled().sql}::HUGEINT {operator} {right.settled().sql}::HUGEINT)"
        return Value(f"TRY_CAST({wide} AS {kind.duckdb})", kind, name)
    value = operators.arithmetic(operator, left, right)
    if value.type.kind == "decimal" and value.type.precision == 38:
        raise NotTranslatedError(f"{node.name} of {left.type} and {right.type}")
    return value.named(name)


def _negative(expressions: ExpressionTranslator, node: ast.Call) -> Value:
    if len(node.arguments) != 1:
        raise NotTranslatedError("negative in this place")
    value = expressions.translate(node.arguments[0])
    return operators.negated(value).named(shown("negative({})", value))


SPECIAL: dict[str, Special] = {
    "mod": _mod,
    "pmod": _pmod,
    "negative": _negative,
    **dict.fromkeys(_TRY, _try),
}
