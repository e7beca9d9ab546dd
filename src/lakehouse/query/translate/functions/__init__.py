"""The table of functions: what DuckDB computes as Spark does, by the types of the arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from types import ModuleType

from lakehouse.query.translate.generators import GENERATORS
from lakehouse.query.translate.rules import Rule
from lakehouse.query.translate.scope import Special

#: Modules of this package, each with RULES and SPECIAL. Functions are looked up in this order, and a module is loaded
#: when those before it do not have the function, so a cold `lake sql` with plain aggregates loads two of them.
FAMILIES = ("basics", "aggregates", "numbers", "strings", "dates", "regex", "json", "collections", "lambdas")


@cache
def family(name: str) -> ModuleType:
    return import_module(f"{__name__}.{name}")


@cache
def _rules(name: str) -> Mapping[str, Sequence[Rule]]:
    table: dict[str, list[Rule]] = {}
    for rule in family(name).RULES:
        table.setdefault(rule.function, []).append(rule)
    return table


def rules_of(function: str) -> Sequence[Rule]:
    """The rules of a function, in the order in which they are tried."""
    return next((rules for name in FAMILIES if (rules := _rules(name).get(function))), ())


def special_of(function: str) -> Special | None:
    """The translation of a function that needs more than the types of its arguments: lambdas, syntax, several aggregates."""
    return next((special for name in FAMILIES if (special := family(name).SPECIAL.get(function))), None)


def is_aggregate(function: str) -> bool:
    """Whether a function without OVER makes one row of several."""
    rules = _rules("aggregates").get(function, ())
    return function in family("aggregates").SPECIAL or any(rule.kind == "aggregate" for rule in rules)


def is_known(function: str) -> bool:
    """Whether there is a rule for a function with some types."""
    return bool(function in GENERATORS or function == "range" or rules_of(function) or special_of(function))
