"""Record Spark's answers: `make conformance-record`, about ten minutes."""

from __future__ import annotations

import argparse
import itertools
import logging
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakehouse.config.load import load_settings
from lakehouse.lake.assemble import assemble
from tests.support.conformance import answers
from tests.support.conformance.answers import Recorded
from tests.support.conformance.canonical import Answer, canonical_row
from tests.support.conformance.examples import examples, function_names, mode
from tests.support.conformance.functions import called_by_name, of_one_value, of_two_values, usual_calls
from tests.support.conformance.queries import is_ordered, queries
from tests.support.conformance.statements import GROUPS, Question, casts, operators
from tests.support.conformance.values import make_edge_lake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The parts of the record.
PARTS = (
    "examples",
    "queries",
    "casts",
    "operators",
    "usual calls",
    "functions of one value",
    "functions of two values",
)
#: Expressions that one query of Spark answers: starting one takes longer than to evaluate them.
_BATCH = 40
#: Of the statements that Spark refuses, every so many are recorded.
_REFUSED = 10
#: The first rows of a table, which have no extreme values: for statements that fail with them.
_FEW = "id < 12"

_log = logging.getLogger("conformance")


def main() -> None:
    """Start Spark once, with the settings of a lake, and write its answers to all statements."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.conformance.record", description=__doc__)
    parser.add_argument("--only", choices=PARTS, help="ask only for this part anew and keep the others (default: all)")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="lake-conformance-") as folder:
        settings = load_settings({"home": make_edge_lake(Path(folder) / "lake"), "spark.master": "local[2]"})
        with assemble(settings) as lake:
            _record(lake.spark, options.only)


def _record(spark: SparkSession, only: str | None) -> None:
    """Write the file, after each part: all of them take a while."""
    functions = function_names(spark)
    statements = {recorded.sql: recorded for recorded in answers.load().statements} if only else {}
    for part in [only] if only else PARTS:
        recorded = _recorded(spark, part, functions)
        statements |= {statement.sql: statement for statement in recorded}
        in_order = sorted(statements.values(), key=lambda statement: (GROUPS.index(statement.group), statement.sql))
        answers.save(spark.version, functions, in_order)
        size = answers.FILE.stat().st_size // 1024
        _log.info("%s: now %d statements, %d KB", part, len(statements), size)


def _recorded(spark: SparkSession, part: str, functions: list[str]) -> Iterable[Recorded]:
    match part:
        case "examples":
            return _examples(spark, functions)
        case "queries":
            return _queries(spark)
    return _answers(spark, _asked(spark, part, functions))


def _asked(spark: SparkSession, part: str, functions: list[str]) -> Iterable[Question]:
    match part:
        case "casts":
            return casts()
        case "operators":
            return operators()
        case "functions of two values":
            return of_two_values()
        case "functions of one value":
            return of_one_value(_of_one_argument(spark, functions))
        case _:
            return usual_calls()


def _of_one_argument(spark: SparkSession, functions: list[str]) -> list[str]:
    """The functions that may have a single argument."""
    from pyspark.errors import PySparkException

    def may(name: str) -> bool:
        try:
            _frame(spark, "texts").selectExpr(f"{name}(s)")
        except PySparkException as error:
            return not str(error.getErrorClass()).startswith("WRONG_NUM_ARGS")
        return True

    return [name for name in called_by_name(functions) if may(name)]


def _examples(spark: SparkSession, functions: list[str]) -> Iterator[Recorded]:
    """The examples that Spark answers twice in the same way."""
    for name, sql in examples(spark, functions):
        twice = [_answer_or_none(spark, sql) for _ in range(2)]
        if isinstance(twice[0], Answer) and twice[0] == twice[1]:
            yield Recorded("examples", sql, twice[0], mode(name))
        else:
            _log.info("left out: %s", sql)


def _queries(spark: SparkSession) -> Iterator[Recorded]:
    """Whole statements, also all that Spark refuses."""
    for sql in queries():
        answer = _answer_or_none(spark, sql)
        assert not isinstance(answer, Unreadable), sql
        if answer is None:
            yield Recorded("refused by Spark", sql, None)
        else:
            yield Recorded("queries", sql, answer, "ordered" if is_ordered(sql) else "")


class Unreadable:
    """Spark answers, but Python has no such value: a year after 9999, say."""


def _answer_or_none(spark: SparkSession, sql: str) -> Answer | Unreadable | None:
    """Spark's answer, None if it refuses or fails."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        return _answer(spark.sql(sql))
    except (PySparkException, Py4JJavaError) as error:
        _log.debug("%s: %s", sql, error)
        return None
    except (ValueError, OverflowError):
        return Unreadable()


def _answer(frame: DataFrame) -> Answer:
    """The rows of a frame. Timestamps come by Arrow: PySpark's own way fails for those of the year 1."""
    from lakehouse.engines.spark.results import _to_arrow

    columns = [[field.name, field.dataType.simpleString()] for field in frame.schema.fields]
    types = [kind for _, kind in columns]
    if any("timestamp" in kind for kind in types):
        rows: Iterable[Any] = zip(*(column.to_pylist() for column in _to_arrow(frame).columns), strict=True)
    else:
        rows = frame.collect()
    return Answer(columns, [canonical_row(types, row) for row in rows])


# ---- expressions, many in one query -----------------------------------------------------------------------------


def _answers(spark: SparkSession, asked: Iterable[Question]) -> Iterator[Recorded]:
    """Spark's answers. Of the statements that it refuses, every tenth is recorded."""
    accepted: list[Question] = []
    refused = 0
    for question in asked:
        if usable := _usable(_frame(spark, question.table), question):
            accepted.append(usable)
        elif (refused := refused + 1) % _REFUSED == 0:
            yield Recorded("refused by Spark", question.sql, None)
    _log.info("%d statements, %d refused", len(accepted), refused)
    accepted.sort(key=lambda question: question.source)
    for _, same_source in itertools.groupby(accepted, lambda question: question.source):
        together = list(same_source)
        for start in range(0, len(together), _BATCH):
            yield from _batch(spark, together[start : start + _BATCH])


@cache
def _frame(spark: SparkSession, table: str) -> DataFrame:
    return spark.table(f"lake.edge.{table}") if table else spark.range(1)


def _usable(frame: DataFrame, question: Question) -> Question | None:
    """The question if Spark's analysis accepts it, as an aggregate if it is one."""
    if not question.aggregate and _is_accepted(frame, ("id", *question.expressions)):
        return question
    if question.table and _is_accepted(frame, question.expressions):
        return replace(question, group="aggregates", aggregate=True)
    return None


def _is_accepted(frame: DataFrame, expressions: Sequence[str]) -> bool:
    from pyspark.errors import PySparkException

    try:
        frame.selectExpr(*expressions)
    except PySparkException:
        return False
    return True


def _batch(spark: SparkSession, asked: Sequence[Question]) -> Iterator[Recorded]:
    """The answers to questions with one source, by one query, or by several if one of them fails."""
    expressions = tuple(itertools.chain.from_iterable(question.expressions for question in asked))
    whole = _answer_or_none(spark, replace(asked[0], expressions=expressions).sql)
    if isinstance(whole, Answer):
        yield from _split(whole, asked)
    elif len(asked) > 1:
        middle = len(asked) // 2
        yield from _batch(spark, asked[:middle])
        yield from _batch(spark, asked[middle:])
    else:
        if whole is None:
            yield Recorded("refused by Spark", asked[0].sql, None)
        if asked[0].table and not asked[0].where:
            yield from _batch(spark, [replace(asked[0], where=_FEW)])


def _split(whole: Answer, asked: Sequence[Question]) -> Iterator[Recorded]:
    """The answer to each of the questions whose expressions one query selected."""
    numbered = [0] if asked[0].table and not asked[0].aggregate else []
    place = len(numbered)
    for question in asked:
        places = [*numbered, *range(place, place + len(question.expressions))]
        place += len(question.expressions)
        answer = Answer([whole.columns[at] for at in places], [[row[at] for at in places] for row in whole.rows])
        how = mode(question.expressions[0].partition("(")[0]) if question.aggregate else ""
        yield Recorded(question.group, question.sql, answer, how)


if __name__ == "__main__":
    main()
