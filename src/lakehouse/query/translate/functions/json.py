"""Functions of JSON in text. Spark also reads text that is not valid to its end; there, it answers itself."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lakehouse.query.translate.rules import rule, written
from lakehouse.query.translate.scope import Special
from lakehouse.query.translate.types import NotTranslatedError
from lakehouse.query.translate.values import Value, literal_text, needs_spark

_PATH = re.compile(r"\$((?:\.[A-Za-z_]\w*|\[\d{1,9}\])+)", re.ASCII)
_STEP = re.compile(r"\.[A-Za-z_]\w*|\[\d+\]", re.ASCII)


def _whole(start: str, end: str, sql: str, kind: str) -> str:
    """Of an array or an object; NULL for other values, and for text that cannot be complete."""
    return (
        f"CASE WHEN NOT regexp_matches({{0}}, '\\A[ \\t\\r\\n]*\\{start}') OR NOT contains({{0}}, '{end}') THEN NULL"
        f" WHEN json_valid({{0}}) THEN {sql} WHEN {{0}} IS NOT NULL THEN {needs_spark(kind)} END"
    )


def _object(values: Sequence[Value]) -> str:
    """A text, an integer or a boolean at a path. Spark writes other values anew, and looks at every key of the same name."""
    path = literal_text(values[1], "get_json_object with a path")
    if not _PATH.fullmatch(path):
        raise NotTranslatedError(f"get_json_object with the path {path}")
    steps = _STEP.findall(path[1:])
    parents = [f"json_keys({{0}}, {written('$' + ''.join(steps[:count]))})" for count in range(len(steps))]
    unique = " AND ".join(f"coalesce(len({keys}) = list_unique({keys}), TRUE)" for keys in parents)
    kind = f"json_type({{0}}, {written(path)})"
    simple = f"coalesce({kind} IN ('VARCHAR', 'BIGINT', 'UBIGINT', 'BOOLEAN', 'NULL'), TRUE)"
    value = f"CASE WHEN {unique} AND {simple} THEN json_extract_string({{0}}, {written(path)})"
    return (
        f"CASE WHEN json_valid({{0}}) THEN {value} ELSE {needs_spark('VARCHAR')} END"
        f" WHEN {{0}} IS NOT NULL THEN {needs_spark('VARCHAR')} END"
    )


RULES = [
    rule("json_array_length", "string!", "int", _whole("[", "]", "json_array_length({0})", "INTEGER"), stored=True),
    rule("json_object_keys", "string!", "array<string>", _whole("{", "}", "json_keys({0})", "VARCHAR[]")),
    rule("get_json_object", "string! string!", "string", _object),
]
SPECIAL: dict[str, Special] = {}
