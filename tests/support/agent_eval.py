"""Scores the agent on questions with expected results: right, refused or wrong. `make eval-agent` runs it on the lake of `lake demo`."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from lakehouse.agent.answer import Answer
from lakehouse.agent.ask import Asker
from lakehouse.lake import Lake

QUESTIONS = Path(__file__).parents[1] / "agent" / "questions"
#: The questions of the demo lake were written for this moment.
NOON = datetime(2026, 1, 17, 12, tzinfo=UTC)
TABLES = {
    "T": "silver.stg_yellow_trips",
    "D": "gold.daily_bars",
    "M": "silver.minute_aggs",
    "V": "gold.volatility",
    "L": "crm.leads",
    "O": "demo.orders",
    "C": "demo.customers",
}


@dataclass(frozen=True)
class Case:
    """A question of the set."""

    shape: str
    question: str
    before: tuple[str, ...]
    sql: str


@dataclass(frozen=True)
class Score:
    """What became of a question."""

    case: Case
    outcome: str
    """right, refused or wrong."""
    answer: Answer
    expected: Sequence[Sequence[Any]]
    seconds: float


def cases(file: str, tables: dict[str, str] | None = None) -> list[Case]:
    """The questions of a file with their expected results."""
    listed = []
    for line in _lines(file):
        shape, asked, sql = (part.strip() for part in line.split("|", 2))
        *before, question = asked.split(" >> ")
        listed.append(Case(shape, question, tuple(before), sql.format(**(tables or TABLES))))
    return listed


def questions(file: str) -> list[str]:
    """The questions of a file without results."""
    return list(_lines(file))


def _lines(file: str) -> Iterator[str]:
    for line in (QUESTIONS / file).read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            yield line.strip()


def score(lake: Lake, asker: Asker, case: Case) -> Score:
    """Ask a question and compare the answer with the expected rows, whatever their order and the names of the columns."""
    started = time.monotonic()
    answer = asker.ask(case.question, case.before)
    seconds = time.monotonic() - started
    expected = lake.sql(case.sql, engine="duckdb").rows()
    outcome = "refused" if not answer.answered else "right" if same_rows(answer.rows, expected) else "wrong"
    return Score(case, outcome, answer, expected, seconds)


def same_rows(left: Sequence[Sequence[Any]], right: Sequence[Sequence[Any]]) -> bool:
    """Whether both have the same rows; numbers may differ in the last digits of a double."""
    return Counter(map(_comparable, left)) == Counter(map(_comparable, right))


def _comparable(row: Sequence[Any]) -> tuple[str, ...]:
    return tuple(f"{float(value):.9g}" if isinstance(value, int | float | Decimal) else str(value) for value in row)


def say(text: str) -> None:
    sys.stdout.write(text + "\n")


def main(home: str) -> int:
    """Score every question on a lake; returns 1 if one is wrong or too few are right."""
    from lakehouse import open_lake

    with open_lake(home=home) as lake:
        asker = lake.asker(now=NOON)
        scores = [score(lake, asker, case) for case in cases("demo.txt")]
        refused = [(question, asker.ask(question)) for question in questions("unanswerable.txt")]
    for shape, counts in _by_shape(scores).items():
        say(f"{shape:<10} {counts['right']:>3} right {counts['refused']:>3} refused {counts['wrong']:>3} wrong")
    for result in scores:
        if result.outcome != "right":
            shown = (
                result.answer.reason or f"{result.answer.sql}\n  {result.answer.rows[:3]} is not {result.expected[:3]}"
            )
            say(f"{result.outcome}: {result.case.question}\n  {shown}")
    answered = [question for question, answer in refused if answer.answered or not answer.reason]
    for question in answered:
        say(f"answered, although it cannot be: {question}")
    total = Counter(result.outcome for result in scores)
    slowest = max(result.seconds for result in scores)
    counted = f"{total['right']} right, {total['refused']} refused, {total['wrong']} wrong"
    say(
        f"{len(scores)} questions: {counted}; {len(refused) - len(answered)} of {len(refused)} unanswerable ones refused"
    )
    say(f"slowest answer: {slowest:.2f} s")
    return int(total["wrong"] > 0 or total["right"] < 110 or bool(answered))


def _by_shape(scores: Sequence[Score]) -> dict[str, Counter[str]]:
    counts: dict[str, Counter[str]] = {}
    for result in scores:
        counts.setdefault(result.case.shape, Counter())[result.outcome] += 1
    return counts


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
