"""Both engines give the same answer: to Spark's examples, through the engine that the lake chooses, and to generated statements.

A comparison is one column of one statement: its name, its type and all its values. Statements that DuckDB leaves to Spark are
not counted.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from tests.support.conformance.answers import load
from tests.support.conformance.canonical import Answer, answer_of, difference
from tests.support.conformance.check import NoAnswer, ask_duckdb
from tests.support.conformance.generated import Statement, expressions, statements
from tests.support.conformance.reference import Reference
from tests.support.conformance.values import add_edge_tables
from tests.support.repetitions import repetitions
from tests.support.tpc import texts, with_namespace, written_to

from lakehouse.core.errors import EngineError, LakeError
from lakehouse.engines.duckdb.connection import load_extension
from lakehouse.lake import Lake
from lakehouse.storage.local import LocalHome

pytestmark = [pytest.mark.spark, pytest.mark.slow]

#: Every `make test` compares the same statements; `make test-faults` new ones, and prints the seed that repeats them.
SEED = int(os.environ.get("TEST_SEED") or repetitions(smoke=1, full=random.SystemRandom().randrange(2, 2**32)))
#: Of casts of small decimals with more than 18 digits after the point to integers, for which Spark has no power of ten.
_ERROR_OF_SPARK = "(ArrayIndexOutOfBoundsException)"
#: Rows of `edge.pairs` whose values do not overflow when a few of them are multiplied.
_MILD = "edge.pairs where id < 64"
#: Of the tables of TPC-H and TPC-DS.
_SCALE = 0.01
#: What hypothesis draws with one seed; then comes the next seed, until enough was compared.
_ROUND, _MOST_ROUNDS = 10, 2000
#: Expressions that one query of DuckDB and one of Spark answers: preparing it takes longer than to evaluate them.
_OF_DUCKDB, _OF_SPARK = 8, 100
_generating = settings(
    max_examples=_ROUND,
    deadline=None,
    database=None,
    phases=[Phase.generate],  # a difference is one column of a short statement: nothing to shrink
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def edge(shared_lake: Lake) -> Lake:
    """The lake with the warm Spark, with the tables of edge values."""
    add_edge_tables(LocalHome(shared_lake.folder))
    return shared_lake


@pytest.fixture(scope="module")
def reference(edge: Lake) -> Reference:
    return Reference(edge)


def test_the_lake_answers_all_of_sparks_examples_as_spark_does(edge: Lake) -> None:
    engines, differences = {"duckdb": 0, "spark": 0}, []
    for recorded in load().statements:
        if recorded.group != "examples":
            continue
        try:
            result = edge.sql(recorded.sql)
            got = answer_of(result)
        except Exception as error:  # noqa: BLE001 - whatever the translation does wrong is a difference
            differences.append(f"{recorded.sql}\n    {type(error).__name__} {error}")
            continue
        engines[result.engine] += 1
        detail = recorded.difference(got)
        if detail:
            differences.append(f"{recorded.sql} on {result.engine}\n    {detail}")
    print(f"examples: {engines}")  # noqa: T201 - shown by pytest -rP
    assert not differences, f"{len(differences)} differences\n  " + "\n  ".join(differences[:20])


@pytest.mark.faults
@pytest.mark.parametrize("suite", repetitions(smoke=[], full=["tpch", "tpcds"]))
def test_the_texts_of_benchmarks_have_sparks_answer(shared_lake: Lake, suite: str) -> None:
    with duckdb.connect() as plain:
        load_extension(plain, suite)
        plain.execute(f"CALL {'dbgen' if suite == 'tpch' else 'dsdgen'}(sf = {_SCALE})")
        written_to(shared_lake, plain, f"{suite}_here")
        tables = [name for (name,) in plain.execute("show tables").fetchall()]
        queries = [with_namespace(text, tables, f"{suite}_here") for text in texts(plain, suite)]
    differences, on_duckdb = [], 0
    for sql in queries:
        got = ask_duckdb(shared_lake, sql)
        if isinstance(got, NoAnswer):
            continue
        on_duckdb += 1
        # Without the order of rows: ties are in any order.
        detail = difference(answer_of(shared_lake.sql(sql, engine="spark")), got, close=True)
        if detail:
            differences.append(f"{sql}\n    {detail}")
    print(f"{suite}: {on_duckdb} of {len(queries)} on DuckDB")  # noqa: T201 - shown by pytest -rP
    assert not differences, f"{len(differences)} differences\n  " + "\n  ".join(differences[:20])
    assert on_duckdb >= {"tpch": 22, "tpcds": 95}[suite]


@dataclass
class Progress:
    """What was compared so far."""

    wanted: int
    compared: int = 0
    seen: set[str] = field(default_factory=set)
    to_spark: int = 0
    differences: list[str] = field(default_factory=list)
    """Collected, not raised: hypothesis would run what failed again, which is no longer new."""

    @property
    def is_enough(self) -> bool:
        return self.compared >= self.wanted

    def is_new(self, sql: str) -> bool:
        """Whether a statement comes for the first time: hypothesis repeats parts of what it has drawn."""
        is_new = sql not in self.seen
        self.seen.add(sql)
        return is_new

    def __str__(self) -> str:
        return f"{self.compared} comparisons, {self.to_spark} left to Spark, of {len(self.seen)} statements; TEST_SEED={SEED}"


def _in_rounds(progress: Progress, compare: Callable[..., None], drawn: st.SearchStrategy[Any]) -> None:
    """Draw and compare until enough was compared; fail if there is a difference."""
    for number in range(_MOST_ROUNDS):
        if progress.is_enough:
            break
        seed(SEED + number)(_generating(given(drawn)(compare)))()
    print(progress)  # noqa: T201 - shown by pytest -rP
    assert not progress.differences, f"{progress}\n  " + "\n  ".join(progress.differences[:20])
    assert progress.is_enough, str(progress)


@pytest.mark.faults
def test_generated_expressions_have_sparks_answer(edge: Lake, reference: Reference) -> None:
    progress = Progress(repetitions(smoke=1200, full=12_000))
    answers: dict[str, Answer] = {}

    def compare(drawn: list[str]) -> None:
        if progress.is_enough:
            return
        new = [text for text in drawn if progress.is_new(text)]
        known = len(answers)
        for start in range(0, len(new), _OF_DUCKDB):
            answers.update(_answers_of_duckdb(edge, new[start : start + _OF_DUCKDB]))
        progress.to_spark += len(new) - (len(answers) - known)
        if len(answers) >= _OF_SPARK:
            _compare_with_spark(reference, answers, progress)
            answers.clear()

    _in_rounds(progress, compare, st.lists(expressions(), min_size=40, max_size=40, unique=True))


def _answers_of_duckdb(lake: Lake, drawn: Sequence[str]) -> dict[str, Answer]:
    """DuckDB's answers to the expressions that it does not leave to Spark, by one query if it leaves none."""
    if not drawn:
        return {}
    whole = _from_duckdb(lake, f"select id, {', '.join(drawn)} from {_MILD}")
    if whole is not None:
        return {text: _part(whole, place) for place, text in enumerate(drawn, start=1)}
    if len(drawn) == 1:
        return {}
    half = len(drawn) // 2
    return _answers_of_duckdb(lake, drawn[:half]) | _answers_of_duckdb(lake, drawn[half:])


def _compare_with_spark(reference: Reference, answers: Mapping[str, Answer], progress: Progress) -> None:
    """Ask Spark for all expressions in one query, and for half of them if one meets an error of Spark's own."""
    drawn = list(answers)
    try:
        whole = reference.answer(f"select id, {', '.join(drawn)} from {_MILD}")
    except EngineError as error:
        if _ERROR_OF_SPARK not in error.message:
            raise
        half = len(drawn) // 2
        for part in (drawn[:half], drawn[half:]) if half else ():
            _compare_with_spark(reference, {text: answers[text] for text in part}, progress)
        return
    for place, (expression, got) in enumerate(answers.items(), start=1):
        if detail := difference(_part(whole, place), got):
            progress.differences.append(f"{expression}\n    {detail}")
    progress.compared += len(answers)


def _part(whole: Answer, place: int) -> Answer:
    """The first column, which numbers the rows, and one other."""
    return Answer([whole.columns[0], whole.columns[place]], [[row[0], row[place]] for row in whole.rows])


@pytest.mark.faults
def test_generated_statements_have_sparks_answer(edge: Lake, reference: Reference) -> None:
    progress = Progress(repetitions(smoke=800, full=8_000))

    def compare(statement: Statement) -> None:
        if not progress.is_enough and progress.is_new(statement.sql):
            _compare_statement(edge, reference, statement, progress)

    _in_rounds(progress, compare, statements())


def _compare_statement(lake: Lake, reference: Reference, statement: Statement, progress: Progress) -> None:
    got = _from_duckdb(lake, statement.sql)
    if got is None:
        progress.to_spark += 1
        return
    try:
        expected = reference.answer(statement.sql)
        detail = difference(expected, got, statement.close, statement.ordered, zeros=statement.zeros)
    except LakeError as error:
        detail = f"answer: Spark refuses it: {error.message.splitlines()[0]}"
    if detail:
        progress.differences.append(f"{statement.sql}\n    {detail}")
    progress.compared += len(got.columns)


def _from_duckdb(lake: Lake, sql: str) -> Answer | None:
    """DuckDB's answer; None if it leaves the statement to Spark."""
    got = ask_duckdb(lake, sql)
    return None if isinstance(got, NoAnswer) else got
