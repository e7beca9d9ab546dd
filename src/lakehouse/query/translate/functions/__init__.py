"""The table of functions: what DuckDB computes as Spark does, by the types of the arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lakehouse.query.translate.functions import (
    aggregates,
    basics,
    collections,
    dates,
    json,
    lambdas,
    numbers,
    regex,
    strings,
)
from lakehouse.query.translate.generators import GENERATORS
from lakehouse.query.translate.rules import Rule
from lakehouse.query.translate.scope import Special

FAMILIES = (basics, numbers, strings, regex, json, dates, collections, lambdas, aggregates)


def _by_name(rules: Sequence[Rule]) -> dict[str, list[Rule]]:
    table: dict[str, list[Rule]] = {}
    for rule in rules:
        table.setdefault(rule.function, []).append(rule)
    return table


#: By function, in the order in which they are tried.
RULES: Mapping[str, Sequence[Rule]] = _by_name([rule for family in FAMILIES for rule in family.RULES])
#: Functions whose translation needs more than the types of their arguments: lambdas, syntax, several aggregates.
SPECIAL: Mapping[str, Special] = {name: special for family in FAMILIES for name, special in family.SPECIAL.items()}


def is_known(function: str) -> bool:
    """Whether there is a rule for a function with some types."""
    return function in RULES or function in SPECIAL or function in GENERATORS or function == "range"
