"""The statements of the fixed part: casts, operators and functions over the edge values."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.support.conformance.values import TYPES, EdgeType

#: The groups of the record.
GROUPS = (
    "examples",
    "casts of columns",
    "casts of literals",
    "arithmetic",
    "comparison",
    "condition",
    "bits",
    "text",
    "like",
    "operators of one value",
    "columns and literals",
    "functions of one value",
    "functions of two values",
    "usual calls",
    "aggregates",
    "queries",
    "refused by Spark",
)


@dataclass(frozen=True)
class Question:
    """Expressions that one statement selects, over a table of edge values or, without one, of literals."""

    group: str
    expressions: tuple[str, ...]
    table: str = ""
    where: str = ""
    aggregate: bool = False
    """Without `id`, by which the rows of the others are compared."""

    @property
    def source(self) -> tuple[str, str, bool]:
        """What questions of one query have in common."""
        return self.table, self.where, self.aggregate

    @property
    def sql(self) -> str:
        selected = ", ".join(self.expressions)
        if not self.table:
            return f"select {selected}"
        where = f" where {self.where}" if self.where else ""
        return f"select {'' if self.aggregate else 'id, '}{selected} from edge.{self.table}{where}"


# ---- casts ------------------------------------------------------------------------------------------------------

#: Literals of each type, as Spark writes them.
LITERALS = {
    "boolean": "true, false, cast(null as boolean)",
    "tinyint": "0Y, 127Y, -128Y",
    "smallint": "1S, 32767S, -32768S",
    "int": "0, -1, 127, 128, 40000, 2147483647",
    "bigint": "0L, 12L, 2147483648L, 9223372036854775807L",
    "float": "1.5F, -0.0F, float('NaN'), float('inf'), 3.4028235E38F",
    "double": "1.5D, 2.5D, -3.7D, -0.0D, 1E3, 1E20, double('NaN'), double('-inf')",
    "decimal": "0.0, 1.50, -2.5, 3.7, 99.995, 12345678901234567890.123456789, 99999999999999999999999999999999999999",
    "string": "'', ' 12 ', '3.7', '1e3', '+5', '.5', '1.', 'abc', 'inf', 'NaN', 'true', 'y', '2020-2-3', '2020-02-30', '2020-02-29T12:30:45.123456Z'",
    "binary": "X'', X'00ff', X'6162'",
    "date": "date'2020-02-29', date'0001-01-01', date'1582-10-10', date'9999-12-31'",
    "timestamp": "timestamp'2020-02-29 12:30:45.123456', timestamp'1969-12-31 23:59:59.5', timestamp'2020-02-29T12:30:45+02:00'",
    "timestamp_ntz": "timestamp_ntz'2020-02-29 12:30:45.123456', timestamp_ntz'1582-10-10 00:00:00'",
    "void": "null",
    "array": "array(1, 2, null), array(), array('1', 'x')",
    "map": "map('a', 1), map()",
    "struct": "struct(1, 'x'), named_struct('a', 1, 'b', '2')",
}  # fmt: skip
_NESTED_TARGETS = (
    "array<int>",
    "array<string>",
    "map<string,int>",
    "map<string,string>",
    "struct<a:int,b:string>",
    "struct<a:string,b:int>",
)


def casts() -> Iterator[Question]:
    """Every type to every type, as `cast` and `try_cast`, of columns and of literals."""
    targets = [kind.name for kind in TYPES]
    for kind, target, function in itertools.product(TYPES, (*targets, "array<int>"), ("cast", "try_cast")):
        yield Question("casts of columns", (f"{function}({kind.of(kind.column)} as {target})",), kind.table)
    for column, target in itertools.product(("ai", "sa", "ad", "ms", "st"), (*_NESTED_TARGETS, "string", "int")):
        yield Question("casts of columns", (f"cast({column} as {target})",), "nested")
    for literals, target in itertools.product(LITERALS.values(), (*targets, *_NESTED_TARGETS)):
        for literal in re.split(r", (?![^(]*\))", literals):
            yield Question("casts of literals", (f"cast({literal} as {target})",))


# ---- operators --------------------------------------------------------------------------------------------------

_BINARY = {
    "arithmetic": ("l + r", "l - r", "l * r", "l / r", "l div r", "l % r"),
    "comparison": ("l = r", "l < r", "l <=> r"),
    "condition": ("l in (r)", "l between r and r", "coalesce(l, r)", "nullif(l, r)", "if(id % 2 = 0, l, r)"),
    "text": ("l || r",),
}
_CASE = "case when id % 3 = 0 then l when id % 3 = 1 then r end"
_UNARY = (
    "-x",
    "+x",
    "not x",
    "x is null",
    "x is not null",
    "x is true",
    "x is not false",
    "~x",
    "x is distinct from null",
    "x = x",
    "x <=> x",
)
_WITH_NULL = (
    "x + null",
    "x = null",
    "x <=> null",
    "x in (null)",
    "x || null",
    "coalesce(null, x)",
    "x between null and x",
    "null / x",
    "nullif(x, null)",
)
_PATTERNS = ("'%'", "'_'", "'a%'", "'%b%'", "'a\\\\\\\\b'", "'\\\\%'", "''", "'%😀%'", "'_😀_'", "'S%L'")


def operators() -> Iterator[Question]:
    """Every operator with every pair of types."""
    for left in TYPES:
        for right in TYPES:
            yield from _binary(left, right)
    for kind in TYPES:
        for template in (*_UNARY, *_WITH_NULL):
            yield Question("operators of one value", (_filled(template, x=kind.of(kind.column)),), kind.table)
    yield from _of_literals()
    for operator in ("like", "not like", "ilike", "rlike"):
        for pattern in _PATTERNS:
            yield Question("like", (f"s {operator} {pattern}",), "texts")
    for pattern in (
        "l_s like r_s",
        "l_s like concat('%', r_s)",
        "s like '%' escape '/'",
        "s like 'a/%b' escape '/'",
        "s like all ('%a%', '%b%')",
        "s like any ('a%', '%b')",
    ):
        yield Question("like", (pattern,), "pairs" if "l_s" in pattern else "texts")


def _binary(left: EdgeType, right: EdgeType) -> Iterator[Question]:
    columns = {"l": left.of(f"l_{left.column}"), "r": right.of(f"r_{right.column}")}
    for group, templates in _BINARY.items():
        for template in templates:
            yield Question(group, (_filled(template, **columns),), "pairs")
    yield Question("comparison", tuple(_filled(f"l {sign} r", **columns) for sign in (">", ">=", "<=", "<>")), "pairs")
    yield Question("condition", (_filled(_CASE, **columns),), "pairs")
    if {left.name, right.name} <= {"boolean", "string", "int"}:
        for template in ("l and r", "l or r", "not l or r"):
            yield Question("condition", (_filled(template, **columns),), "pairs")
    if {left.name, right.name} <= {"boolean", "tinyint", "smallint", "int", "bigint"}:
        for sign in ("&", "|", "^"):
            yield Question("bits", (_filled(f"l {sign} r", **columns),), "pairs")


def _of_literals() -> Iterator[Question]:
    """Columns beside literals, which Spark gives the narrowest type of decimal or the type of the other side."""
    literals = (
        "1",
        "0",
        "-1",
        "2147483648",
        "1.5",
        "0.0",
        "1.5D",
        "'1'",
        "'abc'",
        "'2020-02-29'",
        "date'2020-02-29'",
        "timestamp'2020-02-29 12:30:45'",
        "true",
        "interval 1 day",
        "interval 2 months",
    )
    for kind in TYPES:
        for literal in literals:
            for template in (
                "x + y",
                "y - x",
                "x * y",
                "x / y",
                "x % y",
                "x = y",
                "x > y",
                "y <= x",
                "x in (y, y)",
                "coalesce(x, y)",
            ):
                yield Question(
                    "columns and literals", (_filled(template, x=kind.of(kind.column), y=literal),), kind.table
                )


def _filled(template: str, **operands: str) -> str:
    """The template with its one-letter names replaced."""
    return re.sub(r"\b[lrxy]\b", lambda name: operands[name[0]], template)
