"""Compare DuckDB with the record, without a JVM: `python -m tests.support.conformance.check [--all] [group or part of a statement]`."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lakehouse.config.load import load_settings
from lakehouse.core.errors import NeedsSparkError, NotSupportedError, QueryRejectedError
from lakehouse.lake import Lake
from lakehouse.lake.assemble import assemble
from tests.support.conformance.answers import Recorded, load
from tests.support.conformance.canonical import Answer, answer_of, difference
from tests.support.conformance.values import make_edge_lake

SAME, DIFFERS = "same", "differs"
#: The translation refuses, DuckDB refuses what was translated, DuckDB fails while it runs.
TO_SPARK, REJECTED, AT_RUN_TIME = "to Spark", "to Spark after translation", "to Spark at run time"
#: Expressions of different statements that are compared by one.
_BATCH = 16
_SHOWN = 20


@dataclass
class Totals:
    """The outcomes of the statements of a group."""

    outcomes: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    values: int = 0
    """How many values were compared."""
    differences: list[str] = field(default_factory=list)

    def add(self, recorded: Recorded, outcome: str, detail: str) -> None:
        self.outcomes[f"{outcome} ({detail.partition(':')[0]})" if outcome == DIFFERS else outcome] += 1
        if outcome == DIFFERS:
            self.differences.append(f"{recorded.sql}\n    {detail}")
        elif outcome == SAME and recorded.answer:
            self.values += sum(map(len, recorded.answer.rows))

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(self.outcomes.items()))
        return f"{sum(self.outcomes.values())} statements: {counts} ({self.values} values, {self.seconds:.1f} s)"


def compare(lake: Lake, recorded: Recorded) -> tuple[str, str]:
    """What DuckDB makes of a statement, and the difference if there is one."""
    try:
        got = ask_duckdb(lake, recorded.sql)
    except QueryRejectedError as error:
        # The statement has an error for both.
        return (SAME, "") if recorded.answer is None else (DIFFERS, f"error: {error.message}")
    except Exception as error:  # noqa: BLE001 - whatever the translation does wrong is a difference
        return DIFFERS, f"error: {type(error).__name__} {error}"
    if isinstance(got, NoAnswer):
        if got.outcome == AT_RUN_TIME and recorded.answer is not None:
            return _in_parts(lake, recorded, got.reason)
        return got.outcome, got.reason
    if recorded.answer is None:
        return DIFFERS, f"answer: Spark refuses it, got {got.rows[:1]}"
    detail = recorded.difference(got)
    return (DIFFERS, detail) if detail else (SAME, "")


@dataclass(frozen=True)
class NoAnswer:
    """DuckDB leaves a statement to Spark."""

    outcome: str
    reason: str


def ask_duckdb(lake: Lake, sql: str, branch: str = "", as_of: str = "") -> Answer | NoAnswer:
    """DuckDB's answer, or how and why it leaves the statement to Spark; raises what Spark would not be asked after."""
    try:
        result = lake.sql(sql, engine="duckdb", branch=branch, as_of=as_of)
    except NeedsSparkError as error:
        return NoAnswer(REJECTED, error.message)
    except NotSupportedError as error:
        return NoAnswer(TO_SPARK, error.message)
    try:
        return answer_of(result)
    except NeedsSparkError as error:
        return NoAnswer(AT_RUN_TIME, error.message)


def _in_parts(lake: Lake, recorded: Recorded, error: str) -> tuple[str, str]:
    """Compare some rows of a statement that DuckDB fails to run for all rows."""
    assert recorded.answer is not None
    if not recorded.numbered:
        return AT_RUN_TIME, error
    count = len(recorded.answer.rows)
    further = "and" if " where " in recorded.sql else "where"
    for low, high in ((0, count * 16 // 25), (4, 16), (0, count // 4)):
        expected = _rows_with_ids(recorded, low, high)
        if not expected.rows:
            continue
        got = ask_duckdb(lake, f"{recorded.sql} {further} id >= {low} and id < {high}")
        if not isinstance(got, NoAnswer):
            detail = difference(expected, got)
            return (DIFFERS, detail) if detail else (AT_RUN_TIME, error)
        if got.outcome != AT_RUN_TIME:
            return DIFFERS, f"error: refused with a filter: {got.reason}"
    return AT_RUN_TIME, error


def _rows_with_ids(recorded: Recorded, low: int, high: int) -> Answer:
    assert recorded.answer is not None
    return Answer(recorded.answer.columns, [row for row in recorded.answer.rows if low <= row[0] < high])


# ---- many at once -----------------------------------------------------------------------------------------------


def compare_all(lake: Lake, statements: Iterable[Recorded]) -> Totals:
    """The outcomes of statements of one group."""
    totals, started = Totals(), time.monotonic()
    batches: dict[str, list[Recorded]] = defaultdict(list)
    for recorded in statements:
        batches[recorded.source].append(recorded)
    for source, together in batches.items():
        size = _BATCH if source else 1
        for start in range(0, len(together), size):
            for recorded, (outcome, detail) in _compare_batch(lake, together[start : start + size]):
                totals.add(recorded, outcome, detail)
    totals.seconds = time.monotonic() - started
    return totals


def _compare_batch(lake: Lake, together: Sequence[Recorded]) -> Iterator[tuple[Recorded, tuple[str, str]]]:
    """Compare by one statement that selects the expressions of all, or by several if DuckDB does not answer it."""
    if len(together) == 1:
        yield together[0], compare(lake, together[0])
        return
    selected = ", ".join(recorded.expressions for recorded in together)
    try:
        whole = ask_duckdb(lake, together[0].select(selected))
    except Exception:  # noqa: BLE001 - the one among them that fails is reported by itself
        whole = NoAnswer(DIFFERS, "")
    if isinstance(whole, NoAnswer):
        # What overflows is seldom the only one.
        size = 1 if whole.outcome == AT_RUN_TIME else (len(together) + 1) // 2
        for start in range(0, len(together), size):
            yield from _compare_batch(lake, together[start : start + size])
        return
    numbered = together[0].numbered
    place = numbered
    for recorded in together:
        assert recorded.answer is not None
        width = len(recorded.answer.columns) - numbered
        places = [*range(numbered), *range(place, place + width)]
        place += width
        got = Answer([whole.columns[at] for at in places], [[row[at] for at in places] for row in whole.rows])
        detail = recorded.difference(got)
        yield recorded, (DIFFERS, detail) if detail else (SAME, "")


def main() -> None:
    """Print the totals and the first differences of each group."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.conformance.check", description=__doc__)
    parser.add_argument("part", nargs="?", default="", help="a group, or text within the statements (default: all)")
    parser.add_argument(
        "--all", action="store_true", help=f"print all differences, not the first {_SHOWN} of each group"
    )
    parser.add_argument("--refused", action="store_true", help="print what goes to Spark, with the reason")
    options = parser.parse_args()
    groups = {recorded.group for recorded in load().statements}
    part = options.part
    chosen = [
        recorded
        for recorded in load().statements
        if (recorded.group == part if part in groups else part.lower() in recorded.sql.lower())
    ]
    with (
        tempfile.TemporaryDirectory(prefix="lake-conformance-") as folder,
        assemble(load_settings({"home": make_edge_lake(Path(folder) / "lake")})) as lake,
    ):
        if options.refused:
            for recorded in chosen:
                outcome, reason = compare(lake, recorded)
                if outcome not in (SAME, DIFFERS):
                    print(f"{recorded.sql}\n    {outcome}: {reason}")  # noqa: T201 - a command
            return
        for group in dict.fromkeys(recorded.group for recorded in chosen):
            totals = compare_all(lake, (recorded for recorded in chosen if recorded.group == group))
            print(f"{group}: {totals}", flush=True)  # noqa: T201 - a command
            for text in totals.differences[: None if options.all else _SHOWN]:
                print(f"  {text}")  # noqa: T201 - a command


if __name__ == "__main__":
    main()
