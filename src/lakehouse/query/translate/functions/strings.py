"""Functions of text."""

from __future__ import annotations

from collections.abc import Sequence

from lakehouse.query.translate.rules import rule
from lakehouse.query.translate.scope import Special
from lakehouse.query.translate.values import Value, needs_spark

#: Only ASCII letters change case in the same way in both: Java knows letters that become two, or depend on the next one.
_IS_ASCII = "strlen({0}) = length({0})"


def _by_case(function: str) -> str:
    return f"CASE WHEN {_IS_ASCII} THEN {function}({{0}}) WHEN {{0}} IS NOT NULL THEN {needs_spark('VARCHAR')} END"


#: Spark counts position 0 as 1, and from the end for a negative one; a start before the text shortens the result.
_START = "CASE WHEN {1} > 0 THEN {1}::BIGINT WHEN {1} = 0 THEN 1 ELSE length({0}) + {1}::BIGINT + 1 END"


def _substring(values: Sequence[Value]) -> str:
    start = _START
    if len(values) == 2:
        return f"CASE WHEN {{1}} IS NOT NULL THEN substring({{0}}, greatest({start}, 1)) END"
    end = f"({start} + {{2}}::BIGINT)"
    return (
        f"CASE WHEN {{2}} > 0 AND {{1}} IS NOT NULL THEN substring({{0}}, greatest({start}, 1), greatest({end} - greatest({start}, 1), 0))"
        " WHEN {0} IS NOT NULL AND {1} IS NOT NULL AND {2} IS NOT NULL THEN '' END"
    )


RULES = [
    rule("upper", "string", "string", _by_case("upper")),
    rule("ucase", "string", "string", _by_case("upper")),
    rule("lower", "string", "string", _by_case("lower")),
    rule("lcase", "string", "string", _by_case("lower")),
    rule("length", "string", "int", "length({0})", stored=True),
    rule("char_length", "string", "int", "length({0})", stored=True),
    rule("character_length", "string", "int", "length({0})", stored=True),
    rule("trim", "string", "string", "trim({0}, ' ')"),
    rule("ltrim", "string", "string", "ltrim({0}, ' ')"),
    rule("rtrim", "string", "string", "rtrim({0}, ' ')"),
    rule("substring", "string int", "string", _substring, shown="substring({0}, {1}, 2147483647)"),
    rule("substring", "string int int", "string", _substring),
    rule("substr", "string int", "string", _substring, shown="substr({0}, {1}, 2147483647)"),
    rule("substr", "string int int", "string", _substring),
    rule("replace", "string string string", "string", "CASE WHEN {1} = '' THEN {0} ELSE replace({0}, {1}, {2}) END"),
    rule("reverse", "string!", "string", f"CASE WHEN {_IS_ASCII} THEN reverse({{0}}) WHEN {{0}} IS NOT NULL THEN {needs_spark('VARCHAR')} END"),
    rule("concat_ws", "string string...", "string", lambda values: f"concat_ws({', '.join(value.sql for value in values)})"),
    rule("contains", "string string", "boolean", "contains({0}, {1})"),
    rule("startswith", "string string", "boolean", "starts_with({0}, {1})"),
    rule("endswith", "string string", "boolean", "ends_with({0}, {1})"),
]  # fmt: skip
SPECIAL: dict[str, Special] = {}
