"""Arrays, maps and structs. Functions of them that take other functions are in `lambdas`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lakehouse.core.quoting import text as quoted_text
from lakehouse.query.sql import ast
from lakehouse.query.translate import operators
from lakehouse.query.translate.casts import cast_sql, utc
from lakehouse.query.translate.intervals import Interval
from lakehouse.query.translate.operators import shown
from lakehouse.query.translate.rules import Build, rule
from lakehouse.query.translate.scope import ExpressionTranslator, Special
from lakehouse.query.translate.types import DATE, INT, STRING, NotTranslatedError, Type
from lakehouse.query.translate.values import Value, literal_text, needs_spark

#: Longer arrays than these are left to Spark, so that no number in the data takes all of the memory.
_MOST_ELEMENTS = 1_000_000

# The variables of lambda functions here are `e` and `n`; those of the user have other names.


def array_of(element: Type) -> Type:
    return Type("array", parts=(element,))


def element_type(values: Sequence[Value]) -> Type:
    return values[0].type.parts[0]


def _given(count: int) -> str:
    """A condition: the first arguments are not NULL."""
    return " AND ".join(f"{{{place}}} IS NOT NULL" for place in range(count))


def _has_null(place: int = 0) -> str:
    return f"len({{{place}}}) > list_count({{{place}}})"


def _comparing(template: str, result: Callable[[Sequence[Value]], Type] | None = None) -> Build:
    """An expression that tells elements apart or sorts them.

    Spark holds both zeros for different elements of a set, and for equal ones to sort, which keeps their order; DuckDB does
    neither. Nested elements may have NULLs in them, which DuckDB sorts last.
    """

    def build(values: Sequence[Value]) -> str:
        element = element_type(values)
        if element.is_nested:
            raise NotTranslatedError(f"a comparison of elements of {values[0].type}")
        if not element.is_fraction:
            return template
        kind = result(values) if result else values[0].type
        arrays = [place for place, value in enumerate(values) if value.type.kind == "array"]
        zeros = " OR ".join(f"len(list_filter({{{n}}}, lambda e: e = 0 AND signbit(e))) > 0" for n in arrays)
        return f"CASE WHEN {zeros} THEN {needs_spark(kind.duckdb)} ELSE {template} END"

    return build


def _equating(template: str) -> Build:
    """An expression that looks for elements that equal a value: both zeros do, and NULLs within elements."""

    def build(values: Sequence[Value]) -> str:
        if element_type(values).holds("map"):
            raise NotTranslatedError(f"a comparison of elements of {values[0].type}")
        return template

    return build


def _boolean(_values: Sequence[Value]) -> Type:
    return Type("boolean")


_DISTINCT = "list_filter({0}, lambda e, n: list_position({0}, e) = n)"
_BOTH = "list_concat({0}, {1})"
_UNION = _DISTINCT.replace("{0}", _BOTH)
_IN_SECOND = "list_position({1}, e) IS NOT NULL"
_KEPT = "CASE WHEN {1} IS NOT NULL THEN list_filter({0}, lambda e, n: list_position({0}, e) = n AND %s) END"
_OVERLAP = (
    "CASE WHEN len(list_filter({0}, lambda e: e IS NOT NULL AND list_contains({1}, e))) > 0 THEN TRUE"
    f" WHEN ({_has_null()} OR {_has_null(1)}) AND len({{0}}) > 0 AND len({{1}}) > 0 THEN NULL"
    f" WHEN {_given(2)} THEN FALSE END"
)
_CONTAINS = (
    "CASE WHEN {1} IS NULL THEN NULL WHEN list_contains({0}, {1}) THEN TRUE"
    f" WHEN {_has_null()} THEN NULL WHEN {{0}} IS NOT NULL THEN FALSE END"
)
_SIZE = "CASE WHEN {0} IS NULL THEN -1 ELSE %s({0}) END"
_SORTED_NAME = (
    "array_sort({0}, lambdafunction((IF(((namedlambdavariable() IS NULL) AND (namedlambdavariable() IS NULL)), 0,"
    " (IF((namedlambdavariable() IS NULL), 1, (IF((namedlambdavariable() IS NULL), -1,"
    " (IF((namedlambdavariable() < namedlambdavariable()), -1, (IF((namedlambdavariable() > namedlambdavariable()), 1, 0"
    ")))))))))), namedlambdavariable(), namedlambdavariable()))"
)


def _element_at(values: Sequence[Value]) -> str:
    if values[1].type.kind == "bigint":
        raise NotTranslatedError("element_at of a bigint")
    element = element_type(values).duckdb
    return f"CASE WHEN {{1}} = 0 THEN {needs_spark(element)} WHEN {{1}} IS NOT NULL THEN ({{0}})[{{1}}] END"


def _with_key(template: str) -> Build:
    """An expression of a map and a key, which must have its type: Spark would cast the map."""

    def build(values: Sequence[Value]) -> str:
        key = values[0].type.parts[0]
        if values[1].type != key:
            raise NotTranslatedError(f"a key of {values[1].type} in a map of {key}")
        return template

    return build


def _slice(values: Sequence[Value]) -> str:
    start = "CASE WHEN {1} > 0 THEN {1}::BIGINT ELSE len({0}) + {1} + 1 END"
    kind = values[0].type.duckdb
    return (
        f"CASE WHEN {{1}} = 0 OR {{2}} < 0 THEN {needs_spark(kind)}"
        f" WHEN {_given(3)} THEN CASE WHEN {start} < 1 THEN CAST([] AS {kind})"
        f" ELSE list_slice({{0}}, {start}, {start} + {{2}} - 1) END END"
    )


def _inserted(values: Sequence[Value]) -> str:
    """NULLs fill the gap behind the end; a position from the end counts the new element too."""
    if values[1].type.kind == "bigint":
        raise NotTranslatedError("array_insert at a bigint")
    place = "CASE WHEN {1} > 0 THEN {1}::BIGINT ELSE len({0}) + {1} + 2 END"
    return (
        f"CASE WHEN {{1}} = 0 OR {{1}} > {_MOST_ELEMENTS} OR {place} < 1 THEN {needs_spark(values[0].type.duckdb)}"
        f" WHEN {_given(2)} THEN list_concat(list_resize({{0}}, {place} - 1), [{{2}}],"
        f" list_slice({{0}}, {place}, len({{0}}))) END"
    )


def _joined(values: Sequence[Value]) -> str:
    text = cast_sql("{0}", values[0].type, array_of(STRING))
    if element_type(values).is_nested or element_type(values).kind == "binary":
        raise NotTranslatedError(f"array_join of {values[0].type}")
    if len(values) == 3:
        text = f"CASE WHEN {{2}} IS NOT NULL THEN list_transform({text}, lambda e: coalesce(e, {{2}})) END"
    # DuckDB gives NULL for an array of NULLs.
    return f"CASE WHEN {{1}} IS NOT NULL AND {text} IS NOT NULL THEN coalesce(array_to_string({text}, {{1}}), '') END"


def _repeated(values: Sequence[Value]) -> str:
    kind = array_of(values[0].type).duckdb
    return (
        f"CASE WHEN {{1}} > {_MOST_ELEMENTS} THEN {needs_spark(kind)}"
        " WHEN {1} IS NOT NULL THEN list_transform(range(greatest({1}, 0)), lambda e: {0}) END"
    )


def _sorted(values: Sequence[Value]) -> str:
    if len(values) == 1:
        return _comparing("list_sort({0}, 'ASC', 'NULLS FIRST')")(values)
    if values[1].sql not in ("TRUE", "FALSE"):
        raise NotTranslatedError("sort_array in an order that is no literal")
    order = "'ASC', 'NULLS FIRST'" if values[1].sql == "TRUE" else "'DESC', 'NULLS LAST'"
    return _comparing(f"list_sort({{0}}, {order})")(values)


def _flat_type(values: Sequence[Value]) -> Type:
    if element_type(values).kind != "array":
        raise NotTranslatedError(f"flatten of {values[0].type}")
    return element_type(values)


def _entry_type(values: Sequence[Value]) -> Type:
    return array_of(Type("struct", parts=values[0].type.parts, names=("key", "value")))


def map_type(key: Type, value: Type) -> Type:
    """The type of a map that is made. What DuckDB takes for the same key must be so in Spark."""
    if key.is_nested or key.is_fraction or key.kind in ("void", "interval"):
        raise NotTranslatedError(f"a map with keys of {key}")
    return Type("map", parts=(key, value))


def _from_arrays(values: Sequence[Value]) -> Type:
    return map_type(element_type(values), values[1].type.parts[0])


def _from_entries(values: Sequence[Value]) -> Type:
    entry = element_type(values)
    if entry.kind != "struct" or len(entry.parts) != 2:
        raise NotTranslatedError(f"map_from_entries of {values[0].type}")
    return map_type(*entry.parts)


def _map_of_entries(values: Sequence[Value]) -> str:
    _from_entries(values)
    fields = [quoted_text(name) for name in element_type(values).names]
    parts = [f"list_transform({{0}}, lambda e: struct_extract(e, {field}))" for field in fields]
    return f"CASE WHEN len({{0}}) = list_count({{0}}) THEN map({', '.join(parts)}) END"


def _all_keys(values: Sequence[Value]) -> str:
    """A key that several maps have ends the statement, in Spark too."""
    if len({value.type for value in values}) > 1:
        raise NotTranslatedError("map_concat of different types")
    map_type(*values[0].type.parts)
    keys, contents = (", ".join(f"{part}({{{n}}})" for n in range(len(values))) for part in ("map_keys", "map_values"))
    return f"CASE WHEN {_given(len(values))} THEN map(list_concat({keys}), list_concat({contents})) END"


#: Characters that mean themselves in a regular expression.
_PLAIN = set(" ,:;=&_/@#~!%<>\"'-") | set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")


def _pairs_of_text(values: Sequence[Value]) -> str:
    delimiters = [literal_text(value, "str_to_map with a delimiter") for value in values[1:]]
    if not all(delimiters) or not set("".join(delimiters)) <= _PLAIN:
        raise NotTranslatedError("str_to_map with a regular expression")
    between, within = (f"{{{n}}}" if n < len(values) else f"'{',:'[n - 1]}'" for n in (1, 2))
    pieces = f"string_split({{0}}, {between})"
    value = f"CASE WHEN contains(e, {within}) THEN substring(e, strpos(e, {within}) + length({within})) END"
    return f"map(list_transform({pieces}, lambda e: string_split(e, {within})[1]), list_transform({pieces}, lambda e: {value}))"


def _sequence_type(values: Sequence[Value]) -> Type:
    return array_of(values[0].type)


def _sequence(values: Sequence[Value]) -> str:
    """From one integer to another. A step in the wrong direction ends the statement, in Spark too."""
    kind = values[0].type
    if not kind.is_integer:
        raise NotTranslatedError(f"sequence of {kind}")
    first, last = "{0}::BIGINT", "{1}::BIGINT"
    step = "{2}::BIGINT" if len(values) == 3 else f"CASE WHEN {first} <= {last} THEN 1 ELSE -1 END"
    # The first two conditions also keep the number of elements from an overflow.
    large = f"abs({first}::HUGEINT - {last}::HUGEINT) // abs({step}) > {_MOST_ELEMENTS}"
    wrong = f"({step} = 0 OR ({step} > 0 AND {first} > {last}) OR ({step} < 0 AND {first} < {last}))"
    return (
        f"CASE WHEN {wrong} OR {large} THEN {needs_spark(array_of(kind).duckdb)}"
        f" WHEN {_given(len(values))} THEN CAST(generate_series({first}, {last}, {step}) AS {array_of(kind).duckdb}) END"
    )


_DAYS = (
    f"CASE WHEN abs({{1}} - {{0}}) > {_MOST_ELEMENTS} THEN {needs_spark('DATE[]')} WHEN {_given(2)} THEN"
    " list_transform(generate_series(0, {1} - {0}, CASE WHEN {0} <= {1} THEN 1 ELSE -1 END), lambda e: {0} + CAST(e AS INTEGER)) END"
)

RULES = [
    rule("size", "array", "int", _SIZE % "len", stored=True),
    rule("size", "map", "int", _SIZE % "cardinality", stored=True),
    rule("cardinality", "array", "int", _SIZE % "len", stored=True),
    rule("cardinality", "map", "int", _SIZE % "cardinality", stored=True),
    rule("array_size", "array", "int", "len({0})", stored=True),
    rule("array_append", "array<T> T", "0", "CASE WHEN {0} IS NOT NULL THEN list_concat({0}, [{1}]) END"),
    rule("array_prepend", "array<T> T", "0", "CASE WHEN {0} IS NOT NULL THEN list_concat([{1}], {0}) END"),
    rule("array_insert", "array<T> integer T", "0", _inserted),
    rule("array_compact", "array", "0", "list_filter({0}, lambda e: e IS NOT NULL)"),
    rule("array_contains", "array<T> T!", "boolean", _equating(_CONTAINS)),
    rule("array_position", "array<T> T!", "bigint", _equating(f"CASE WHEN {_given(2)} THEN coalesce(list_position({{0}}, {{1}}), 0) END"), stored=True),
    rule("array_remove", "array<T> T!", "0", _equating("CASE WHEN {1} IS NOT NULL THEN list_filter({0}, lambda e: e IS NULL OR e <> {1}) END")),
    rule("array_distinct", "array", "0", _comparing(_DISTINCT)),
    rule("array_union", "array<T> array<T>", "0", _comparing(f"CASE WHEN {_given(2)} THEN {_UNION} END")),
    rule("array_intersect", "array<T> array<T>", "0", _comparing(_KEPT % _IN_SECOND)),
    rule("array_except", "array<T> array<T>", "0", _comparing(_KEPT % f"NOT {_IN_SECOND}")),
    rule("arrays_overlap", "array<T> array<T>", "boolean", _comparing(_OVERLAP, _boolean)),
    rule("array_join", "array string!", "string", _joined),
    rule("array_join", "array string! string!", "string", _joined),
    rule("array_max", "array", element_type, _comparing("list_max({0})", element_type)),
    rule("array_min", "array", element_type, _comparing("list_min({0})", element_type)),
    rule("array_repeat", "any int!", lambda values: array_of(values[0].type), _repeated),
    rule("array_sort", "array", "0", _comparing("list_sort({0}, 'ASC', 'NULLS LAST')"), shown=_SORTED_NAME),
    rule("sort_array", "array", "0", _sorted, shown="sort_array({0}, true)"),
    rule("sort_array", "array boolean!", "0", _sorted),
    rule("element_at", "array integer", element_type, _element_at),
    rule("element_at", "map any", lambda values: values[0].type.parts[1], _with_key("map_extract_value({0}, {1})")),
    rule("try_element_at", "array integer", element_type, _element_at),
    rule("try_element_at", "map any", lambda values: values[0].type.parts[1], _with_key("map_extract_value({0}, {1})")),
    rule("get", "array integer", element_type, "CASE WHEN {1} >= 0 THEN ({0})[{1} + 1] END"),
    rule("slice", "array int int", "0", _slice),
    rule("flatten", "array", _flat_type, "CASE WHEN len({0}) = list_count({0}) THEN flatten({0}) END"),
    rule("sequence", "date! date!", "array<date>", _DAYS),
    rule("sequence", "T T", _sequence_type, _sequence),
    rule("sequence", "T T T", _sequence_type, _sequence),
    rule("map_keys", "map", lambda values: array_of(values[0].type.parts[0]), "map_keys({0})"),
    rule("map_values", "map", lambda values: array_of(values[0].type.parts[1]), "map_values({0})"),
    rule("map_entries", "map", _entry_type, "map_entries({0})"),
    rule("map_contains_key", "map any", "boolean", _with_key("CASE WHEN {1} IS NOT NULL THEN list_contains(map_keys({0}), {1}) END")),
    rule("map_from_arrays", "array array", _from_arrays, f"CASE WHEN {_given(2)} THEN map({{0}}, {{1}}) END"),
    rule("map_from_entries", "array", _from_entries, _map_of_entries),
    rule("map_concat", "map map map...", "0", _all_keys),
    rule("str_to_map", "string!", "map<string,string>", _pairs_of_text, shown="str_to_map({0}, ,, :)"),
    rule("str_to_map", "string! string!", "map<string,string>", _pairs_of_text, shown="str_to_map({0}, {1}, :)"),
    rule("str_to_map", "string! string! string!", "map<string,string>", _pairs_of_text),
]  # fmt: skip


def _sequence_call(expressions: ExpressionTranslator, node: ast.Call) -> Value:
    values = _values(expressions, node)
    if len(values) != 3 or values[2].type.kind != "interval":
        return expressions.call_rules("sequence", values)
    first, last, step = values
    if first.type != last.type or not first.type.is_time:
        raise NotTranslatedError(f"sequence of {first.type} and {last.type}")
    interval: Interval = step.constant
    kind = array_of(first.type)
    moments = [utc(value.sql, value.type) for value in (first, last)]
    length = interval.months or interval.micros
    if length <= 0 or (first.type == DATE and interval.last not in ("year", "month", "day")):
        raise NotTranslatedError("sequence with this step")
    distance, unit = f"(epoch_us({moments[1]}) - epoch_us({moments[0]}))", "to_microseconds(e)"
    if interval.months:
        distance, unit = f"datediff('month', {moments[0]}, {moments[1]})", "to_months(CAST(e AS INTEGER))"
    # Each is so many steps from the first: the end of a month does not wear off.
    listed = f"list_transform(range(0, {distance} + 1, {length}), lambda e: {moments[0]} + {unit})"
    kept = f"list_filter({listed}, lambda e: e <= {moments[1]})"
    sql = (
        f"CASE WHEN {moments[0]} > {moments[1]} OR {distance} // {length} > {_MOST_ELEMENTS}"
        f" THEN {needs_spark(kind.duckdb)} WHEN {first.sql} IS NOT NULL AND {last.sql} IS NOT NULL"
        f" THEN CAST({kept} AS {kind.duckdb}) END"
    )
    return Value(sql, kind, call_name("sequence", values))


# ---- literals of nested values -----------------------------------------------------------------------------------


def call_name(function: str, values: Sequence[Value]) -> str:
    return shown(f"{function}({', '.join(['{}'] * len(values))})", *values)


def element_sql(value: Value) -> str:
    """A value within a nested one, where NULL needs a type."""
    if value.type.kind == "interval":
        raise NotTranslatedError("an interval within a nested value")
    return f"CAST(NULL AS {INT.duckdb})" if value.sql == "NULL" else value.settled().sql


def _values(expressions: ExpressionTranslator, node: ast.Call) -> list[Value]:
    if node.distinct or node.where or node.over or node.within:
        raise NotTranslatedError(f"{node.name} in this place")
    return [expressions.translate(argument) for argument in node.arguments]


def _list(values: Sequence[Value]) -> Value:
    """A list of values in their common type."""
    elements = operators.unified(values)
    listed = ", ".join(element_sql(element) for element in elements)
    return Value(f"[{listed}]", array_of(elements[0].type), "")


def _array(expressions: ExpressionTranslator, node: ast.Call) -> Value:
    values = _values(expressions, node)
    if not values:
        return Value(f"CAST([] AS {INT.duckdb}[])", array_of(Type("void")), "array()")
    return _list(values).named(call_name("array", values))


def _map(expressions: ExpressionTranslator, node: ast.Call) -> Value:
    values = _values(expressions, node)
    if not values or len(values) % 2:
        raise NotTranslatedError(f"map of {len(values)} values")
    keys, contents = _list(values[::2]), _list(values[1::2])
    kind = map_type(keys.type.parts[0], contents.type.parts[0])
    return Value(f"map({keys.sql}, {contents.sql})", kind, call_name("map", values))


def struct_of(names: Sequence[str], values: Sequence[Value]) -> Value:
    if not names or not all(names) or len({name.lower() for name in names}) < len(names):
        raise NotTranslatedError("a struct whose fields have no names of their own")
    fields = ", ".join(f"{quoted_text(name)}: {element_sql(value)}" for name, value in zip(names, values, strict=True))
    return Value(f"{{{fields}}}", Type("struct", parts=tuple(value.type for value in values), names=tuple(names)), "")


def _field_name(argument: ast.Expression, place: int) -> str:
    """The name that a field gets from its expression; empty where that is not certain."""
    match argument:
        case ast.Alias():
            return argument.name
        case ast.Name():
            return argument.parts[-1]
        case ast.Field() | ast.Star():
            return ""
    return f"col{place}"


def _struct(expressions: ExpressionTranslator, node: ast.Call) -> Value:
    values = _values(expressions, node)
    names = [_field_name(argument, place) for place, argument in enumerate(node.arguments, start=1)]
    listed = [
        value.named(shown(f"{{}} AS {argument.name}", expressions.translate(argument.operand)))
        if isinstance(argument, ast.Alias)
        else value
        for value, argument in zip(values, node.arguments, strict=True)
    ]
    return struct_of(names, values).named(call_name("struct", listed))


def _row(expressions: ExpressionTranslator, node: ast.Call) -> Value:
    """`(a, b)`, which Spark shows as a call of `named_struct`."""
    struct = _struct(expressions, node)
    values = _values(expressions, node)
    parts = [f"{name}, {value.name}" for name, value in zip(struct.type.names, values, strict=True)]
    is_certain = struct.name and not any(isinstance(argument, ast.Alias) for argument in node.arguments)
    return struct.named(f"named_struct({', '.join(parts)})" if is_certain else "")


def _named_struct(expressions: ExpressionTranslator, node: ast.Call) -> Value:
    values = _values(expressions, node)
    if len(values) % 2:
        raise NotTranslatedError("named_struct of an odd number of values")
    names = [literal_text(value, "a field with a name") for value in values[::2]]
    return struct_of(names, values[1::2]).named(call_name("named_struct", values))


def _arrays_zip(expressions: ExpressionTranslator, node: ast.Call) -> Value:
    values = [value.settled() for value in _values(expressions, node)]
    if not values or any(value.type.kind != "array" for value in values):
        raise NotTranslatedError("arrays_zip of other than arrays")
    names = [
        argument.parts[-1] if isinstance(argument, ast.Name) else str(place)
        for place, argument in enumerate(node.arguments)
    ]
    return zipped(names, values).named(call_name("arrays_zip", values))


def zipped(names: Sequence[str], arrays: Sequence[Value]) -> Value:
    """An array of structs with the elements of arrays; NULLs fill the shorter ones."""
    elements = [Value(f"({array.sql})[n + 1]", array.type.parts[0], "") for array in arrays]
    struct = struct_of(names, elements)
    given = " AND ".join(f"{array.sql} IS NOT NULL" for array in arrays)
    length = f"greatest({', '.join(f'len({array.sql})' for array in arrays)})"
    return Value(
        f"CASE WHEN {given} THEN list_transform(range({length}), lambda n: {struct.sql}) END", array_of(struct.type), ""
    )


SPECIAL: dict[str, Special] = {
    "array": _array,
    "map": _map,
    "struct": _struct,
    "named_struct": _named_struct,
    "(row)": _row,
    "arrays_zip": _arrays_zip,
    "sequence": _sequence_call,
}
