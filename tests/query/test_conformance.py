"""DuckDB gives Spark's recorded answers, or leaves the statement to Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from tests.support.conformance.answers import load
from tests.support.conformance.check import SAME, Totals, compare_all
from tests.support.conformance.statements import GROUPS
from tests.support.conformance.values import make_edge_lake
from tests.support.repetitions import repetitions

from lakehouse.config.load import load_settings
from lakehouse.lake import Lake
from lakehouse.lake.assemble import assemble
from lakehouse.query.translate import expressions, functions
from lakehouse.query.translate.rules import Rule, rule

#: How many of Spark's examples DuckDB answers itself, at least.
EXAMPLES_ON_DUCKDB = 600
#: Statements of a group that every run compares, about; `make test-faults` compares all. Of the examples, every run does.
_OF_GROUP = 80
_SHOWN = 20

Compare = Callable[[str], Totals]


@pytest.fixture(scope="session")
def edge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """A lake with the tables of edge values."""
    home: Path = make_edge_lake(tmp_path_factory.mktemp("edge") / "lake")
    with assemble(load_settings({"home": home}, environ={})) as lake:
        yield lake


@pytest.fixture(scope="session")
def compared(edge: Lake) -> Compare:
    """Compares the statements of a group, once."""

    @cache
    def compare_group(group: str) -> Totals:
        statements = [recorded for recorded in load().statements if recorded.group == group]
        step = 1 if group == "examples" else -(-len(statements) // repetitions(smoke=_OF_GROUP, full=10_000))
        return compare_all(edge, statements[::step])

    return compare_group


@pytest.mark.faults
@pytest.mark.parametrize("group", GROUPS)
def test_duckdb_answers_as_spark_or_refuses(compared: Compare, group: str) -> None:
    totals = compared(group)
    print(f"{group}: {totals}")  # noqa: T201 - shown by pytest -rP
    shown = "\n  ".join(totals.differences[:_SHOWN])
    assert not totals.differences, f"{group}: {len(totals.differences)} differences; {totals}\n  {shown}"


def test_duckdb_answers_most_of_sparks_examples_itself(compared: Compare) -> None:
    assert compared("examples").outcomes[SAME] >= EXAMPLES_ON_DUCKDB


def test_the_record_has_the_groups_of_the_statements() -> None:
    assert {recorded.group for recorded in load().statements} == set(GROUPS)


@pytest.mark.parametrize(
    ("function", "wrong"),
    [
        pytest.param("dayofweek", rule("dayofweek", "date", "int", "dayofweek({0})", stored=True), id="untranslated"),
        pytest.param("length", rule("length", "string", "bigint", "length({0})"), id="another-type"),
        pytest.param("trim", rule("trim", "string", "string", "trim({0})", shown="btrim"), id="another-name"),
        pytest.param(
            "factorial", rule("factorial", "int", "bigint", "CAST(factorial({0}) + 1 AS BIGINT)"), id="another-value"
        ),
    ],
)
def test_a_wrong_rule_is_found(edge: Lake, monkeypatch: pytest.MonkeyPatch, function: str, wrong: Rule) -> None:
    of_function = functions.rules_of
    monkeypatch.setattr(expressions, "rules_of", lambda name: [wrong] if name == function else of_function(name))
    statements = [recorded for recorded in load().statements if f" {function}(" in recorded.sql.lower()]
    assert statements
    assert compare_all(edge, statements).differences


def test_the_rules_of_a_function_are_in_one_family() -> None:
    families: dict[str, set[str]] = {}
    for name in functions.FAMILIES:
        for own in functions.family(name).RULES:
            families.setdefault(own.function, set()).add(name)
    assert {function: names for function, names in families.items() if len(names) > 1} == {}
