"""Rules: a function of Spark with the types of its arguments, and the expression of DuckDB that gives the same answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from lakehouse.core.dataclass import dataclass
from lakehouse.query.translate.casts import cast_sql
from lakehouse.query.translate.literals import folded
from lakehouse.query.translate.types import STRING, VOID, NotTranslatedError, Type, common_type, parse_type
from lakehouse.query.translate.values import Value, string

#: Chooses the expression by the arguments themselves, where types are not enough (a literal format).
Build = Callable[[Sequence[Value]], str]
Result = Callable[[Sequence[Value]], Type]

#: Patterns that stand for several types. Arguments of other patterns are cast to the type that they name, as Spark does.
CLASSES: dict[str, Callable[[Type], bool]] = {
    "any": lambda kind: kind.kind not in ("void", "interval"),
    "atomic": lambda kind: not kind.is_nested and kind.kind not in ("void", "interval"),
    "number": lambda kind: kind.is_numeric,
    "integer": lambda kind: kind.is_integer,
    "fraction": lambda kind: kind.is_fraction,
    "decimal": lambda kind: kind.kind == "decimal",
    "time": lambda kind: kind.is_time,
    "interval": lambda kind: kind.kind == "interval",
    "array": lambda kind: kind.kind == "array",
    "map": lambda kind: kind.kind == "map",
    "struct": lambda kind: kind.kind == "struct",
}


@dataclass(frozen=True)
class Rule:
    """One line of the table."""

    function: str
    arguments: tuple[str, ...]
    """A type (`int`), exactly that type (`int!`), a class of types (`number`), or `T`: the type that all T have in common.

    `array<T>` is an array of them, and `T!` is not NULL itself.

    The last one may end with `...`: any number of such arguments."""
    result: str | Result
    """A type, or the number of the argument whose type it has."""
    sql: str | Build
    """The expression: `{0}` is the first argument. In aggregates `{d}` is DISTINCT and `{tail}` is FILTER and OVER."""
    kind: str = "scalar"
    """`scalar`, `aggregate` (also over windows) or `window` (only there)."""
    stored: bool = False
    """DuckDB holds the result in a wider type with the same values."""
    takes_stored: bool = False
    """The arguments may be what DuckDB holds in another type with the same values: a cast of each row costs more than a sum."""
    shown: str = ""
    """The name that Spark shows, if it is not that of the function; the whole text, if it has parentheses."""

    def patterns(self, count: int) -> tuple[str, ...] | None:
        """The patterns for a number of arguments; None if the function takes another number."""
        patterns = self.arguments
        if patterns and patterns[-1].endswith("..."):
            last = patterns[-1].removesuffix("...")
            patterns = (*patterns[:-1], *[last] * max(count - len(patterns) + 1, 0))
        return patterns if len(patterns) == count else None


def shown_call(rule: Rule, values: Sequence[Value], distinct: str = "") -> str:
    """The name of a call in Spark; empty if that of an argument is not known."""
    names = [value.name for value in values]
    if not all(names):
        return ""
    if "(" in rule.shown:
        return rule.shown.format(*names)
    function = rule.shown or rule.function.removesuffix(" ignore nulls")
    return f"{function}({distinct}{', '.join(names)})"


def apply(rules: Sequence[Rule], values: Sequence[Value]) -> tuple[Rule, list[Value]]:
    """The rule for these arguments, and the arguments with the types that it takes.

    Raises:
        NotTranslatedError: there is none.
    """
    for implicit in (False, True):
        for rule in rules:
            matched = _match(rule, values, implicit)
            if matched is not None:
                return rule, matched
    kinds = ", ".join(str(value.type) for value in values)
    raise NotTranslatedError(f"the function {rules[0].function}({kinds})")


def _match(rule: Rule, values: Sequence[Value], implicit: bool) -> list[Value] | None:
    patterns = rule.patterns(len(values))
    if patterns is None:
        return None
    common = _shared_type(list(zip(values, patterns, strict=True)))
    if common is None:
        return None
    matched: list[Value] = []
    for value, pattern in zip(values, patterns, strict=True):
        if rule.takes_stored and pattern in CLASSES:
            argument = value if CLASSES[pattern](value.type) else None
        else:
            argument = _argument(value, pattern, common, implicit)
        if argument is None:
            return None
        matched.append(argument)
    return matched


def _shared_type(pairs: Sequence[tuple[Value, str]]) -> Type | None:
    """What `T` stands for; None if the arguments do not fit, and void if no pattern has it."""
    kinds, is_element = [], False
    for value, pattern in pairs:
        if pattern == "array<T>":
            if value.type.kind != "array":
                return None
            kinds.append(value.type.parts[0])
            is_element = True
        elif pattern in ("T", "T!"):
            kinds.append(value.type)
            if pattern == "T!" and value.type == VOID:
                return None
    common: Type | None = kinds[0] if kinds else VOID
    for kind in kinds[1:]:
        common = common and common_type(common, kind)
    if common is None or (kinds and common == VOID):
        return None
    is_converted = not set(kinds) <= {common, VOID}
    # Among elements Spark turns nothing else into text, no decimal into a double, and only sometimes integers into decimals.
    is_exact = common.kind == "string" or common.is_nested or any(kind.kind == "decimal" for kind in kinds)
    return None if is_element and is_converted and is_exact else common


def _argument(value: Value, pattern: str, common: Type, implicit: bool) -> Value | None:
    if pattern in CLASSES:
        return value.settled() if CLASSES[pattern](value.type) else None
    if pattern in ("T", "T!", "array<T>"):
        return coerce(value, common if pattern != "array<T>" else Type("array", parts=(common,)))
    target = parse_type(pattern.removesuffix("!"))
    if value.type == target or value.type.kind == "void":
        return coerce(value, target)
    if not implicit or pattern.endswith("!") or not _casts_implicitly(value.type, target):
        return None
    return coerce(value, target)


def _casts_implicitly(given: Type, to: Type) -> bool:
    if given.is_nested or given.kind == "binary":
        return False
    if to.kind == "string" or given.kind == "string":
        return to.kind != "boolean"
    return (given.is_numeric and to.is_numeric) or (given.is_time and to.is_time)


def coerce(value: Value, to: Type) -> Value:
    """The value cast to a type, under the same name: Spark does not show implicit casts."""
    if value.type == to:
        return value.settled()
    if (constant := folded(value, to)) is not None:
        return constant
    if value.is_literal and value.type == STRING and to.is_time:
        raise NotTranslatedError(f"the text '{value.constant}' as a {to}")
    if value.type.kind == to.kind == "decimal" and value.type.scale == to.scale and value.type.precision < to.precision:
        return Value(value.sql, to, value.name, value.constant, value.is_literal, is_stored_otherwise=True).settled()
    # A number stays the same number in a wider type; other constants become another value.
    is_same = (
        value.is_literal and value.type.is_numeric and to.is_numeric and (value.type.is_integer or not to.is_integer)
    )
    sql = cast_sql(value.settled().sql, value.type, to)
    return Value(sql, to, value.name, value.constant if is_same else None, is_literal=is_same or value.type == VOID)


_FIELD = re.compile(r"\{(\d+|d|tail)\}")


def written(text: str) -> str:
    """A string literal within the template of a rule: no part of the text is taken for a field."""
    return "(" + string(text).replace("{", "{' || '") + ")" if "{" in text else string(text)


def fill(rule: Rule, values: Sequence[Value], distinct: str = "", tail: str = "") -> str:
    """The SQL of a rule for its arguments."""
    template = rule.sql if isinstance(rule.sql, str) else rule.sql(values)
    fields = {"d": distinct, "tail": tail} | {str(number): value.sql for number, value in enumerate(values)}
    return _FIELD.sub(lambda match: fields.get(match[1], match[0]), template)


def result_type(rule: Rule, values: Sequence[Value]) -> Type:
    if not isinstance(rule.result, str):
        return rule.result(values)
    return values[int(rule.result)].type if rule.result.isdigit() else parse_type(rule.result)


def rule(  # noqa: PLR0913 - the columns of the table
    function: str,
    arguments: str,
    result: str | Result,
    sql: str | Build,
    *,
    kind: str = "scalar",
    stored: bool = False,
    takes_stored: bool = False,
    shown: str = "",
) -> Rule:
    """A line of the table; the arguments are separated by spaces."""
    return Rule(function, tuple(arguments.split()), result, sql, kind, stored, takes_stored, shown)
