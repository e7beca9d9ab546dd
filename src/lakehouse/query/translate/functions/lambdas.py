"""Functions that take a lambda function."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from lakehouse.core.dataclass import dataclass
from lakehouse.query.sql import ast
from lakehouse.query.translate.functions.collections import array_of, call_name, element_sql, map_type, zipped
from lakehouse.query.translate.operators import boolean
from lakehouse.query.translate.rules import Rule
from lakehouse.query.translate.scope import ExpressionTranslator, Special
from lakehouse.query.translate.types import INT, NotTranslatedError, Type
from lakehouse.query.translate.values import Value

_VARIABLE = "namedlambdavariable()"

RULES: list[Rule] = []


@dataclass(frozen=True)
class Body:
    """The body of a lambda function, translated for its variables."""

    value: Value
    name: str
    """The whole function as Spark shows it."""

    @property
    def sql(self) -> str:
        return element_sql(self.value)


def variable(expressions: ExpressionTranslator, place: int = 1) -> str:
    """A name for a variable that no function around has."""
    around = " ".join(value.sql for value in expressions.scope.lambdas.values())
    last = max(map(int, re.findall(r"\bl(\d+)", around)), default=0)
    return f"l{last + place}"


def body_of(
    expressions: ExpressionTranslator, node: ast.Expression, variables: Sequence[tuple[str, Type]], optional: int = 0
) -> Body:
    """Translate a lambda function for variables with this SQL and these types; it may leave out the optional ones."""
    count = len(node.parameters) if isinstance(node, ast.Lambda) else 0
    if not isinstance(node, ast.Lambda) or not len(variables) - optional <= count <= len(variables):
        raise NotTranslatedError("a lambda function with these parameters")
    names = [name.lower() for name in node.parameters]
    if len(set(names)) < len(names):
        raise NotTranslatedError("a lambda function with the same parameter twice")
    given = {name: Value(sql, kind, _VARIABLE) for name, (sql, kind) in zip(names, variables, strict=False)}
    value = expressions.within(expressions.scope.with_lambdas(given)).translate(node.body)
    parts = ", ".join([value.name, *[_VARIABLE] * len(names)])
    return Body(value, f"lambdafunction({parts})" if value.name else "")


def _argument(expressions: ExpressionTranslator, node: ast.Call, kind: str, place: int = 0) -> Value:
    """The argument at a place, if it is an array or a map, as `kind` says."""
    value = expressions.translate(node.arguments[place]).settled()
    if value.type.kind != kind:
        raise NotTranslatedError(f"{node.name} of {value.type}")
    return value


def _check_count(node: ast.Call, *counts: int) -> None:
    if len(node.arguments) not in counts or node.distinct or node.where or node.over:
        raise NotTranslatedError(f"{node.name} in this place")


def _named(node: ast.Call, *parts: Value | Body) -> str:
    return call_name(node.name, [Value("", INT, part.name) for part in parts])


# ---- arrays ------------------------------------------------------------------------------------------------------


def _over_elements(expressions: ExpressionTranslator, node: ast.Call) -> tuple[Value, str, Body]:
    """The array, the variables in DuckDB and the body of a function of an element and its place, which counts from 0."""
    _check_count(node, 2)
    array = _argument(expressions, node, "array")
    element, place = variable(expressions), variable(expressions, 2)
    known = [(element, array.type.parts[0]), (f"CAST({place} - 1 AS INTEGER)", INT)]
    return array, f"{element}, {place}", body_of(expressions, node.arguments[1], known, optional=1)


def _transform(expressions: ExpressionTranslator, node: ast.Call) -> Value:
    array, variables, body = _over_elements(expressions, node)
    sql = f"list_transform({array.sql}, lambda {variables}: {body.sql})"
    return Value(sql, array_of(body.value.type), _named(node, array, body))


def _filter(expressions: ExpressionTranslator, node: ast.Call) -> Value:
    array, variables, body = _over_elements(expressions, node)
    condition = boolean(body.value, "filter").sql
    return Value(f"list_filter({array.sql}, lambda {variables}: {condition})", array.type, _named(node, array, body))


def _quantified(decisive: str, otherwise: str) -> Special:
    """`exists` and `forall`: one answer decides, else one that is unknown."""

    def translate(expressions: ExpressionTranslator, node: ast.Call) -> Value:
        _check_count(node, 2)
        array = _argument(expressions, node, "array")
        element = variable(expressions)
        body = body_of(expressions, node.arguments[1], [(element, array.type.parts[0])])
        answers = f"list_transform({array.sql}, lambda {element}: {boolean(body.value, node.name).sql})"
        sql = (
            f"CASE WHEN list_contains({answers}, {decisive}) THEN {decisive}"
            f" WHEN len({answers}) > list_count({answers}) THEN NULL"
            f" WHEN {array.sql} IS NOT NULL THEN {otherwise} END"
        )
        return Value(sql, Type("boolean"), _named(node, array, body))

    return translate


def _aggregate(expressions: ExpressionTranslator, node: ast.Call) -> Value:
    _check_count(node, 3, 4)
    array, start = _argument(expressions, node, "array"), expressions.translate(node.arguments[1]).settled()
    total, element = variable(expressions), variable(expressions, 2)
    kinds = start.type, array.type.parts[0]
    if start.type.kind == "void":
        raise NotTranslatedError(f"{node.name} that starts with NULL")
    # DuckDB's reduction has one type for both, so the total and the element are fields of a struct.
    merged = body_of(
        expressions,
        node.arguments[2],
        [(f"struct_extract({total}, 'a')", kinds[0]), (f"struct_extract({element}, 'e')", kinds[1])],
    )
    if merged.value.type != start.type:
        raise NotTranslatedError(f"{node.name} from {start.type} to {merged.value.type}")
    nothing = f"CAST(NULL AS {kinds[1].duckdb})"
    pairs = f"list_transform({array.sql}, lambda e: {{'a': CAST(NULL AS {kinds[0].duckdb}), 'e': e}})"
    step = f"lambda {total}, {element}: {{'a': {merged.sql}, 'e': {nothing}}}"
    sql = f"struct_extract(list_reduce({pairs}, {step}, {{'a': {start.sql}, 'e': {nothing}}}), 'a')"
    if len(node.arguments) == 3:
        name = _named(node, array, start, merged, Value("", INT, f"lambdafunction({_VARIABLE}, {_VARIABLE})"))
        return Value(sql, start.type, name)
    # A list of one element gives the total a name, so that the last function may use it several times.
    finished = body_of(expressions, node.arguments[3], [(total, start.type)])
    last = f"(list_transform([{sql}], lambda {total}: {finished.sql}))[1]"
    last = f"CASE WHEN {array.sql} IS NOT NULL THEN {last} END"
    return Value(last, finished.value.type, _named(node, array, start, merged, finished))


def _zip_with(expressions: ExpressionTranslator, node: ast.Call) -> Value:
    _check_count(node, 3)
    arrays = [_argument(expressions, node, "array", place) for place in (0, 1)]
    pair = variable(expressions)
    known = [(f"struct_extract({pair}, '{name}')", arrays[n].type.parts[0]) for n, name in enumerate("xy")]
    body = body_of(expressions, node.arguments[2], known)
    sql = f"list_transform({zipped(('x', 'y'), arrays).sql}, lambda {pair}: {body.sql})"
    return Value(sql, array_of(body.value.type), _named(node, *arrays, body))


# ---- maps --------------------------------------------------------------------------------------------------------


def _over_entries(write: Callable[[Value, str, Body], tuple[str, Type]]) -> Special:
    """A function of the key and the value of each entry."""

    def translate(expressions: ExpressionTranslator, node: ast.Call) -> Value:
        _check_count(node, 2)
        entries = _argument(expressions, node, "map")
        entry = variable(expressions)
        key, content = entries.type.parts
        known = [(f"struct_extract({entry}, 'key')", key), (f"struct_extract({entry}, 'value')", content)]
        body = body_of(expressions, node.arguments[1], known)
        sql, kind = write(entries, entry, body)
        return Value(sql, kind, _named(node, entries, body))

    return translate


def _map_filter(entries: Value, entry: str, body: Body) -> tuple[str, Type]:
    condition = boolean(body.value, "map_filter").sql
    kept = f"list_filter(map_entries({entries.sql}), lambda {entry}: {condition})"
    return f"map_from_entries({kept})", entries.type


def _transform_keys(entries: Value, entry: str, body: Body) -> tuple[str, Type]:
    kind = map_type(body.value.type, entries.type.parts[1])
    keys = f"list_transform(map_entries({entries.sql}), lambda {entry}: {body.sql})"
    return f"map({keys}, map_values({entries.sql}))", kind


def _transform_values(entries: Value, entry: str, body: Body) -> tuple[str, Type]:
    contents = f"list_transform(map_entries({entries.sql}), lambda {entry}: {body.sql})"
    kind = Type("map", parts=(entries.type.parts[0], body.value.type))
    return f"map(map_keys({entries.sql}), {contents})", kind


def _map_zip_with(expressions: ExpressionTranslator, node: ast.Call) -> Value:
    _check_count(node, 3)
    left, right = (_argument(expressions, node, "map", place) for place in (0, 1))
    key = left.type.parts[0]
    if right.type.parts[0] != key:
        raise NotTranslatedError("map_zip_with of different keys")
    kind = variable(expressions)
    known = [(kind, key)]
    known += [(f"map_extract_value({side.sql}, {kind})", side.type.parts[1]) for side in (left, right)]
    body = body_of(expressions, node.arguments[2], known)
    added = f"list_filter(map_keys({right.sql}), lambda e: NOT list_contains(map_keys({left.sql}), e))"
    keys = f"list_concat(map_keys({left.sql}), {added})"
    sql = f"map({keys}, list_transform({keys}, lambda {kind}: {body.sql}))"
    given = f"{left.sql} IS NOT NULL AND {right.sql} IS NOT NULL"
    result = map_type(key, body.value.type)
    return Value(f"CASE WHEN {given} THEN {sql} END", result, _named(node, left, right, body))


SPECIAL: dict[str, Special] = {
    "transform": _transform,
    "filter": _filter,
    "exists": _quantified("TRUE", "FALSE"),
    "forall": _quantified("FALSE", "TRUE"),
    "aggregate": _aggregate,
    "reduce": _aggregate,
    "zip_with": _zip_with,
    "map_filter": _over_entries(_map_filter),
    "transform_keys": _over_entries(_transform_keys),
    "transform_values": _over_entries(_transform_values),
    "map_zip_with": _map_zip_with,
}
