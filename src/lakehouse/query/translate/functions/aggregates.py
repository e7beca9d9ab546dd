"""Aggregates and window functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lakehouse.query.sql import ast
from lakehouse.query.translate.casts import cast_sql, last_bits
from lakehouse.query.translate.operators import scaled, shown, unscaled
from lakehouse.query.translate.rules import Rule, coerce, rule
from lakehouse.query.translate.scope import ExpressionTranslator, Special
from lakehouse.query.translate.types import BIGINT, DOUBLE, STRING, TINYINT, NotTranslatedError, Type, decimal
from lakehouse.query.translate.values import Value, let, literal_int, needs_spark


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


def _aggregate(function: str, arguments: str, result: str, sql: str) -> Rule:
    return rule(function, arguments, result, sql, kind="aggregate")


def _averages(function: str) -> list[Rule]:
    return [
        rule(function, "integer", "double", "avg({d}{0}){tail}", kind="aggregate"),
        rule(function, "fraction", "double", "avg({d}CAST({0} AS DOUBLE)){tail}", kind="aggregate"),
        rule(function, "decimal", _average_type, _average, kind="aggregate", takes_stored=True),
        rule(function, "double", "double", "avg({d}{0}){tail}", kind="aggregate"),
    ]


def _moments() -> list[Rule]:
    """Of one column: DuckDB computes them by Welford's method, as Spark does."""
    same = {name: name for name in "stddev_samp stddev_pop var_samp var_pop".split()}
    same |= {"stddev": "stddev_samp", "std": "stddev_samp", "variance": "var_samp"}
    rules = []
    for name, own in same.items():
        rules.append(_aggregate(name, "integer", "double", f"{own}({{d}}{{0}}){{tail}}"))
        rules.append(_aggregate(name, "double", "double", _finite(own, least=2 if own.endswith("samp") else 1)))
    return rules


def _finite(function: str, least: int) -> str:
    """An aggregate of numbers that DuckDB takes for out of range: Spark's answer with NaN or infinity is NaN."""
    small = "abs({0}) < 1e150"
    return (
        f"CASE WHEN count(CASE WHEN NOT isfinite({{0}}) THEN 1 END){{tail}} > 0"
        f" THEN CASE WHEN count({{0}}){{tail}} >= {least} THEN 'NaN'::DOUBLE END"
        f" WHEN count(CASE WHEN NOT {small} THEN 1 END){{tail}} > 0 THEN {needs_spark('DOUBLE')}"
        f" ELSE {function}({{d}}CASE WHEN {small} THEN {{0}} END){{tail}} END"
    )


def _regressions() -> list[Rule]:
    """Of two columns, by the rows in which both are given; Spark has no number where DuckDB divides by zero."""
    same = "covar_pop covar_samp regr_sxx regr_syy regr_sxy regr_intercept regr_r2".split()
    either = "(regr_sxx({0}, {1}){tail} = 0 OR regr_syy({0}, {1}){tail} = 0)"
    averages = {"regr_avgx": ("number integer", "number fraction"), "regr_avgy": ("integer number", "fraction number")}
    infinite = "count(CASE WHEN NOT (isfinite({0}) AND isfinite({1})) THEN 1 END){tail} > 0"
    guard = f"CASE WHEN {infinite} THEN {needs_spark('DOUBLE')}"
    return [
        *(_aggregate(name, "double double", "double", f"{guard} ELSE {name}({{0}}, {{1}}){{tail}} END") for name in same),
        *(_aggregate(name, kinds, "double", f"{name}({{0}}, {{1}}){{tail}}") for name, pairs in averages.items() for kinds in pairs),
        _aggregate("corr", "double double", "double", f"{guard} WHEN {either} THEN NULL ELSE corr({{0}}, {{1}}){{tail}} END"),
        _aggregate("regr_slope", "double double", "double", f"{guard} WHEN regr_sxx({{0}}, {{1}}){{tail}} = 0 THEN NULL ELSE regr_slope({{0}}, {{1}}){{tail}} END"),
        _aggregate("regr_count", "number number", "bigint", "CAST(count(CASE WHEN {0} IS NOT NULL THEN {1} END){tail} AS BIGINT)"),
    ]  # fmt: skip


#: Spark's is of the whole population. DuckDB's own adds up powers of the values, which cancel each other out for large ones.
_DEVIATIONS = "list_transform(l, lambda x: x - list_avg(l))"
_SKEWNESS = "sqrt(len(d)) * list_sum(list_transform(d, lambda x: x * x * x)) / sqrt(m * m * m)"
_KURTOSIS = "len(d) * list_sum(list_transform(d, lambda x: x * x * x * x)) / (m * m) - 3.0"


def _moment(result: str) -> str:
    squares = "list_sum(list_transform(d, lambda x: x * x))"
    infinite = f"CASE WHEN list_bool_and(list_transform(l, lambda x: isfinite(x))) THEN {needs_spark('DOUBLE')} ELSE 'NaN'::DOUBLE END"
    guarded = f"CASE WHEN isfinite(m) THEN {result} WHEN m IS NOT NULL THEN {infinite} END"
    value = let("m", f"nullif({squares}, 0)", guarded)
    return let("l", _given("{d}{0}"), let("d", _DEVIATIONS, value))


def _given(argument: str) -> str:
    """The values of a group as a list, without NULLs."""
    return f"list_filter(list({argument}){{tail}}, lambda x: x IS NOT NULL)"


def _mode(values: Sequence[Value]) -> str:
    """The most frequent value; Spark does not determine which, if there are several."""
    value = "{0} + 0" if values[0].type.is_fraction else "{0}"
    counts = f"map_values(histogram({value}){{tail}})"
    several = let("c", counts, "len(list_filter(c, lambda x: x = list_max(c))) > 1")
    return f"CASE WHEN {several} THEN {needs_spark(values[0].type.duckdb)} ELSE mode({value}){{tail}} END"


RULES = [
    _aggregate("sum", "integer", "bigint", last_bits("sum({d}{0}){tail}", BIGINT)),
    rule("sum", "fraction", "double", "sum({d}CAST({0} AS DOUBLE)){tail}", kind="aggregate"),
    rule("sum", "decimal", _sum_type, "sum({d}{0}){tail}", kind="aggregate", stored=True, takes_stored=True),
    rule("sum", "double", "double", "sum({d}{0}){tail}", kind="aggregate"),
    *(
        rule("try_sum", kind, "bigint", "sum({d}{0}){tail}", kind="aggregate", stored=True)
        for kind in ("tinyint!", "smallint!", "int!")
    ),
    rule("try_sum", "bigint!", "bigint", lambda values: _try_sum_of_bigint(values), kind="aggregate"),
    rule("try_sum", "fraction", "double", "sum({d}CAST({0} AS DOUBLE)){tail}", kind="aggregate"),
    rule("try_sum", "decimal", _sum_type, "sum({d}{0}){tail}", kind="aggregate", stored=True, takes_stored=True),
    rule("try_sum", "double", "double", "sum({d}{0}){tail}", kind="aggregate"),
    *_averages("avg"),
    *_averages("mean"),
    *_averages("try_avg"),
    *_moments(),
    *_regressions(),
    _aggregate("skewness", "double", "double", _moment(_SKEWNESS)),
    _aggregate("kurtosis", "double", "double", _moment(_KURTOSIS)),
    rule("mode", "atomic", "0", _mode, kind="aggregate"),
    _aggregate("min", "atomic", "0", "min({0}){tail}"),
    _aggregate("max", "atomic", "0", "max({0}){tail}"),
    rule("max_by", "any atomic", "0", lambda values: _by("max", values), kind="aggregate"),
    rule("min_by", "any atomic", "0", lambda values: _by("min", values), kind="aggregate"),
    _aggregate("count_if", "boolean", "bigint", "count({d}CASE WHEN {0} THEN 1 END){tail}"),
    *(_aggregate(name, "boolean!", "boolean", "bool_and({0}){tail}") for name in ("bool_and", "every")),
    *(_aggregate(name, "boolean!", "boolean", "bool_or({0}){tail}") for name in ("bool_or", "some", "any")),
    *(_aggregate(name, "integer", "0", f"{name}({{0}}){{tail}}") for name in ("bit_and", "bit_or", "bit_xor")),
    rule("row_number", "", "int", "row_number(){tail}", kind="window", stored=True),
    # Their arguments have no meaning.
    rule("rank", "atomic...", "int", "rank(){tail}", kind="window", stored=True, shown="RANK()"),
    rule("dense_rank", "atomic...", "int", "dense_rank(){tail}", kind="window", stored=True, shown="DENSE_RANK()"),
    rule("percent_rank", "atomic...", "double", "percent_rank(){tail}", kind="window", shown="PERCENT_RANK()"),
    rule("cume_dist", "", "double", "cume_dist(){tail}", kind="window range"),
    rule("ntile", "int", "int", lambda values: _buckets(values), kind="window", stored=True),
]


def _by(extreme: str, values: Sequence[Value]) -> str:
    """The value beside the largest key, also if it is NULL; of several rows with that key Spark does not determine which."""
    several = let("k", f"{extreme}({{1}}, 2){{tail}}", "len(k) = 2 AND k[1] = k[2]")
    own = f"arg_{extreme}_null({{0}}, {{1}}){{tail}}"
    return f"CASE WHEN {several} THEN {needs_spark(values[0].type.duckdb)} ELSE {own} END"


def _try_sum_of_bigint(_values: Sequence[Value]) -> str:
    """Whether it overflows on the way depends on the order of rows; of shorter integers it never does."""
    raise NotTranslatedError("try_sum of bigint")


def _buckets(values: Sequence[Value]) -> str:
    if literal_int(values[0], "ntile") < 1:
        raise NotTranslatedError("ntile of no rows")
    return "ntile({0}){tail}"


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


# ---- one of the rows ---------------------------------------------------------------------------------------------


def _first_or_last(expressions: ExpressionTranslator, node: ast.Call) -> Value:
    """`first(a)`, `last(a, true)`, `any_value(a) IGNORE NULLS`, of a group or over a window."""
    values = [expressions.translate(argument).settled() for argument in node.arguments]
    if not 1 <= len(values) <= 2 or values[0].type.kind == "void" or node.distinct:
        raise NotTranslatedError(f"{node.name} in this place")
    if len(values) == 2 and values[1].sql not in ("TRUE", "FALSE"):
        raise NotTranslatedError(f"{node.name} with an argument that is no literal")
    skips_nulls = node.ignore_nulls or values[-1].sql == "TRUE"
    function = "last" if node.name.startswith("last") else "first"
    name = shown(f"{node.name}({{}})", values[0]) if not node.ignore_nulls else ""
    if node.over is not None:
        tail, name = expressions.tail(node, name, "aggregate")
        nulls = " IGNORE NULLS" if skips_nulls else ""
        return Value(f"{function}_value({values[0].sql}{nulls}){tail}", values[0].type, name)
    tail, name = expressions.tail(node, name, "aggregate")
    if skips_nulls:
        given = ast.Is(node.arguments[0], "null", negated=True)
        where = ast.Binary("and", node.where, given) if node.where is not None else given
        tail, _ = expressions.tail(replace(node, where=where), "", "aggregate")
    return Value(f"{function}({values[0].sql}){tail}", values[0].type, name)


def _nth_value(expressions: ExpressionTranslator, node: ast.Call) -> Value:
    values = [expressions.translate(argument).settled() for argument in node.arguments]
    if len(values) != 2 or node.over is None or node.distinct or node.where is not None:
        raise NotTranslatedError("nth_value in this place")
    if literal_int(values[1], "nth_value") < 1:
        raise NotTranslatedError("nth_value before the first")
    nulls = " IGNORE NULLS" if node.ignore_nulls else ""
    name = shown("nth_value({}, {})", *values) if not nulls else ""
    tail, name = expressions.tail(node, name, "aggregate")
    return Value(f"nth_value({values[0].sql}, {values[1].sql}{nulls}){tail}", values[0].type, name)


def _neighbour(expressions: ExpressionTranslator, node: ast.Call) -> Value:
    """`lead(a, offset, default)` and `lag`."""
    values = [expressions.translate(argument).settled() for argument in node.arguments]
    if not 1 <= len(values) <= 3 or node.over is None or node.distinct or node.where is not None:
        raise NotTranslatedError(f"{node.name} in this place")
    offset = literal_int(values[1], f"{node.name} with an offset") if len(values) > 1 else 1
    default = values[2] if len(values) > 2 else None
    if default is not None and default.type.kind != "void" and default.type != values[0].type:
        if not (default.type.is_numeric and values[0].type.is_numeric):
            raise NotTranslatedError(f"{node.name} with a default of another type")
        default = coerce(default, values[0].type)
    named = [values[0].name, str(offset), default.name if default is not None else "NULL"]
    nulls = " IGNORE NULLS" if node.ignore_nulls else ""
    name = f"{node.name}({', '.join(named)})" if all(named) and offset > 0 and not nulls else ""
    tail, name = expressions.tail(node, name, f"window at {offset if node.name == 'lead' else -offset}")
    given = [values[0].sql, str(offset), *([default.sql] if default is not None else [])]
    return Value(f"{node.name}({', '.join(given)}{nulls}){tail}", values[0].type, name)


# ---- percentiles -------------------------------------------------------------------------------------------------


def _percentages(expressions: ExpressionTranslator, node: ast.Expression) -> tuple[list[float], bool]:
    """The percentages of an argument, and whether they are an array."""
    is_array = isinstance(node, ast.Call) and node.name == "array"
    parts = node.arguments if isinstance(node, ast.Call) and is_array else (node,)
    numbers = []
    for part in parts:
        value = expressions.translate(part)
        text = part.value if isinstance(part, ast.Literal) else None
        if not value.type.is_numeric or not value.is_literal or not isinstance(text, str):
            raise NotTranslatedError("a percentage that is no literal")
        numbers.append(float(text))
    if not numbers or not all(0 <= number <= 1 for number in numbers):
        raise NotTranslatedError("a percentage that is not from 0 to 1")
    return numbers, is_array


def _of_sorted(items: str, results: Sequence[str], kind: Type, is_array: bool, order: str = "") -> tuple[str, Type]:
    """Expressions of the sorted list `l` of the values of a group; NULL if there are none."""
    result = f"[{', '.join(results)}]" if is_array else results[0]
    sql = let("l", f"list_sort({items}{order})", f"CASE WHEN len(l) > 0 THEN {result} END")
    return sql, Type("array", parts=(kind,)) if is_array else kind


def _interpolated(percentage: float, kind: Type) -> str:
    """Between the two values around a position, in Spark's order of operations."""
    at = f"((len(l) - 1) * {percentage!r}::DOUBLE)"
    low, high = f"l[floor({at})::BIGINT + 1]", f"l[ceil({at})::BIGINT + 1]"
    lower, higher = (cast_sql(side, kind, DOUBLE) for side in (low, high))
    between = f"(ceil({at}) - {at}) * {lower} + ({at} - floor({at})) * {higher}"
    return f"CASE WHEN floor({at}) = ceil({at}) OR {low} = {high} THEN {lower} ELSE {between} END"


def _listed(expressions: ExpressionTranslator, node: ast.Call, value: Value, times: Value | None = None) -> str:
    """The values of a group as a list, without NULLs, each as often as a frequency says."""
    tail, _ = expressions.tail(node, "", "aggregate")
    distinct = "DISTINCT " if node.distinct else ""
    if times is None:
        return _given("{d}{0}").replace("{tail}", tail).replace("{d}{0}", distinct + value.sql)
    if node.distinct:
        raise NotTranslatedError(f"{node.name}(DISTINCT …) with a frequency")
    copies = (
        f"CASE WHEN {value.sql} IS NULL OR {times.sql} IS NULL THEN [] WHEN {times.sql} BETWEEN 0 AND 1000"
        f" THEN list_resize([{value.sql}], {times.sql}, {value.sql}) ELSE {needs_spark(value.type.duckdb + '[]')} END"
    )
    return f"flatten(list({copies}){tail})"


def _ordered_number(expressions: ExpressionTranslator, node: ast.Expression, function: str) -> Value:
    value = expressions.translate(node).settled()
    if value.type == STRING:
        value = coerce(value, DOUBLE)
    if not value.type.is_numeric:
        raise NotTranslatedError(f"{function} of {value.type}")
    return value


def _percentile(expressions: ExpressionTranslator, node: ast.Call) -> Value:
    """`percentile(a, 0.5)`, `percentile(a, array(0.25, 0.75), frequency)` and `median(a)`."""
    if node.within or not 1 <= len(node.arguments) <= 3 or (node.name == "median") != (len(node.arguments) == 1):
        raise NotTranslatedError(f"{node.name} in this place")
    value = _ordered_number(expressions, node.arguments[0], node.name)
    if node.name == "median":
        percentages, is_array, name = [0.5], False, shown("median({})", value) if not node.distinct else ""
    else:
        percentages, is_array = _percentages(expressions, node.arguments[1])
        distinct = "DISTINCT " if node.distinct else ""
        name = shown(f"percentile({distinct}{{}}, {{}}, ", value, expressions.translate(node.arguments[1]))
    times = expressions.translate(node.arguments[2]).settled() if len(node.arguments) == 3 else None
    if times is not None and not times.type.is_integer:
        raise NotTranslatedError(f"a frequency of {times.type}")
    if name and node.name == "percentile":
        frequency = times.name if times is not None else "1"
        name = f"{name}{frequency})" if frequency else ""
    results = [_interpolated(percentage, value.type) for percentage in percentages]
    sql, kind = _of_sorted(_listed(expressions, node, value, times), results, DOUBLE, is_array)
    return Value(sql, kind, expressions.tail(node, name, "aggregate")[1])


def _percentile_within(expressions: ExpressionTranslator, node: ast.Call) -> Value:
    """`percentile_cont(0.5) WITHIN GROUP (ORDER BY a)`, and `percentile_disc`, which is one of the values."""
    if len(node.within) != 1 or len(node.arguments) != 1 or node.distinct:
        raise NotTranslatedError(f"{node.name} in this place")
    key = node.within[0]
    value = _ordered_number(expressions, key.expression, node.name)
    percentages, is_array = _percentages(expressions, node.arguments[0])
    if node.name == "percentile_cont":
        results = [_interpolated(percentage, value.type) for percentage in percentages]
    else:
        at = [f"greatest(ceil(len(l) * {percentage!r}::DOUBLE)::BIGINT, 1)" for percentage in percentages]
        results = [cast_sql(f"l[{place}]", value.type, DOUBLE) for place in at]
    order = ", 'DESC', 'NULLS LAST'" if key.descending else ""
    descending = " DESC" if key.descending else ""
    fraction = expressions.translate(node.arguments[0])
    name = shown(f"{node.name}({{}}) WITHIN GROUP (ORDER BY {{}}{descending})", fraction, value)
    sql, kind = _of_sorted(_listed(expressions, node, value), results, DOUBLE, is_array, order)
    return Value(sql, kind, expressions.tail(node, name, "aggregate")[1])


# ---- grouping sets -----------------------------------------------------------------------------------------------


def _grouping(expressions: ExpressionTranslator, node: ast.Call) -> Value:
    """`grouping(a)`: whether a row is a total over a key; `grouping_id()`: the same of all keys, as bits."""
    keys = list(dict.fromkeys(expressions.translate(key).sql for key in expressions.scope.grouped))
    values = [expressions.translate(argument) for argument in node.arguments]
    if node.over is not None or node.where is not None or not keys:
        raise NotTranslatedError(f"{node.name} in this place")
    name = shown(f"{node.name}({', '.join(['{}'] * len(values))})", *values) if values else f"{node.name}()"
    if node.name == "grouping":
        if len(values) != 1 or values[0].sql not in keys:
            raise NotTranslatedError("grouping of an expression that is no key")
        return Value(f"CAST(grouping({values[0].sql}) AS TINYINT)", TINYINT, name)
    if values and [value.sql for value in values] != keys:
        raise NotTranslatedError("grouping_id of other expressions than the keys")
    return Value(f"grouping({', '.join(keys)})", BIGINT, name)


SPECIAL: dict[str, Special] = {
    "count": _count,
    **{
        f"{name}{nulls}": _first_or_last
        for name in ("first", "first_value", "last", "last_value", "any_value")
        for nulls in ("", " ignore nulls")
    },
    **dict.fromkeys(("nth_value", "nth_value ignore nulls"), _nth_value),
    **dict.fromkeys(("lead", "lag", "lead ignore nulls", "lag ignore nulls"), _neighbour),
    **dict.fromkeys(("percentile", "median"), _percentile),
    **dict.fromkeys(("percentile_cont", "percentile_disc"), _percentile_within),
    **dict.fromkeys(("grouping", "grouping_id"), _grouping),
}
