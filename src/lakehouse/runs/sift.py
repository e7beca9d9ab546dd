"""The rows made for a table, sifted: which are believed, which break a rule, and of several with one key the newest.

Making rows may be most of a run's work, and sorting them the rest. So most of them go to the table as they are made: one pass looks
at the keys alone, by a hash of them, and only rows whose hash came twice are compared. Those that break a rule are found in a pass that
works out no more than the rules need, and kept: they are few.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from lakehouse.quality.checks import some_rows
from lakehouse.quality.model import Outcome, Rule

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import Column, DataFrame

#: With more keys than that more than once, all rows are sorted by key instead.
MOST_DOUBLES = 50_000
_HASH, _RANK, _BROKEN = "_lake_hash", "_lake_rank", "_lake_broken"


@dataclass(frozen=True)
class Sifted:
    """What became of the rows."""

    good: DataFrame
    """Those that break no rule that quarantines, one per key."""
    broken: DataFrame | None
    """Those that break any rule, which are few; None if there are no rules."""
    outcomes: Sequence[Outcome]
    """How many rows break each rule."""


@dataclass(frozen=True)
class Keys:
    """What to do about rows with the same key: the one that comes last by `newest` is good."""

    columns: Sequence[str]
    newest: Sequence[str]
    sort: bool = False
    """They are found by sorting all rows, and not in a pass of its own."""


@contextmanager
def sifted(table: str, made: DataFrame, rules: Sequence[Rule], keys: Keys | None = None) -> Iterator[Sifted]:
    """Sift rows; what was kept of them is let go at the end."""
    with ExitStack() as kept:
        broken = made.where(_any_broken(rules)) if rules else None
        if broken is not None:
            kept.callback(broken.persist().unpersist)
        outcomes = _outcomes(table, broken, rules) if broken is not None else []
        good = _one_per_key(made, rules, keys) if keys else _believed(made, rules)
        yield Sifted(good, broken, outcomes)


def rejected_rows(broken: DataFrame, rules: Sequence[Rule], kept: Sequence[str], run: str, now: datetime) -> DataFrame:
    """The rows that rules put aside: the reasons, the row as JSON, and the columns that say to which partition it belongs."""
    from pyspark.sql import functions as F

    ours = [rule for rule in rules if rule.severity == "quarantine"]
    reasons = F.concat_ws(", ", *(F.when(_breaks(rule), F.lit(rule.name)) for rule in ours))
    return broken.where(_any_broken(ours)).select(
        reasons.alias("reason"),
        F.to_json(F.struct(*(F.col(name) for name in broken.columns))).alias("row"),
        F.lit(run).alias("run"),
        F.lit(now).cast("timestamp").alias("rejected_at"),
        *(F.col(name) for name in kept),
    )


def _outcomes(table: str, broken: DataFrame, rules: Sequence[Rule]) -> list[Outcome]:
    from pyspark.sql import functions as F

    counts = [F.count(F.when(_breaks(rule), F.lit(1))).alias(f"r{at}") for at, rule in enumerate(rules)]
    found = broken.agg(*counts).first()
    assert found is not None
    return [
        Outcome(table, rule.name, rule.severity, found[at] == 0, found[at], rows=_shown(broken, rule, found[at]))
        for at, rule in enumerate(rules)
    ]


def _shown(broken: DataFrame, rule: Rule, count: int) -> tuple[str, ...]:
    """Some of the rows that stop a run: they are put aside nowhere."""
    return some_rows(broken.where(_breaks(rule)), count) if rule.severity == "block" else ()


# ---- good rows --------------------------------------------------------------------------------------------------


def _one_per_key(made: DataFrame, rules: Sequence[Rule], keys: Keys) -> DataFrame:
    """The good rows, of several with one key the newest."""
    doubles = [] if keys.sort else _doubles(made, keys)
    if keys.sort or len(doubles) > MOST_DOUBLES:
        return _newest(_believed(made, rules), keys)
    if not doubles:
        return _believed(made, rules)
    double = _seems_double(keys, doubles)
    compared = _newest(_believed(made.where(double), rules), keys)
    return _believed(made.where(~double), rules).unionByName(compared)


def _doubles(made: DataFrame, keys: Keys) -> list[int]:
    """The hashes of keys that come more than once, or one more than the most."""
    from pyspark.sql import functions as F

    hashes = made.select(F.xxhash64(*keys.columns).alias(_HASH)).groupBy(_HASH).count()
    found = hashes.where(F.col("count") > 1).select(_HASH).limit(MOST_DOUBLES + 1)
    return [row[0] for row in found.collect()]


def _seems_double(keys: Keys, doubles: Sequence[int]) -> Column:
    """Whether a row's key may be one of those; of the others, one in a hundred is taken for one, which does no harm.

    A condition, which Spark puts before the work that the other columns are, where a join would come after it. And a table
    of bytes, one for each remainder of a hash, since Spark takes seconds to plan a list of thousands of numbers.
    """
    from pyspark.sql import functions as F

    size = 1 << (64 * len(doubles)).bit_length()
    marks = bytearray(size)
    for each in doubles:
        marks[each % size] = 1
    place = F.pmod(F.xxhash64(*keys.columns), F.lit(size)).cast("int") + 1
    return F.call_function("substring", F.lit(bytes(marks)), place, F.lit(1)) == F.lit(b"\x01")


def _newest(rows: DataFrame, keys: Keys) -> DataFrame:
    """Of several rows of a key, the one that comes last."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    newest_first = Window.partitionBy(*keys.columns).orderBy(*(F.col(name).desc() for name in keys.newest))
    return rows.withColumn(_RANK, F.row_number().over(newest_first)).where(F.col(_RANK) == 1).drop(_RANK)


def _believed(rows: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """The rows that break no rule that quarantines."""
    from pyspark.sql import functions as F

    ours = [rule for rule in rules if rule.severity == "quarantine"]
    if not ours:
        return rows
    # Never null and always added to nothing, but Spark does not know that. If it did, it would work out a row's columns for the
    # rules, and once more for the row: a third of the time of a table with a dozen rules on derived columns.
    not_known_before = F.monotonically_increasing_id() < 0
    marked = rows.withColumn(_BROKEN, _any_broken(ours) | not_known_before)
    return marked.where(~F.col(_BROKEN)).drop(_BROKEN)


def _any_broken(rules: Sequence[Rule]) -> Column:
    return reduce(or_, (_breaks(rule) for rule in rules))


def _breaks(rule: Rule) -> Column:
    """True where the rule does not hold; a condition that is null (nothing to look at) is not broken."""
    from pyspark.sql import functions as F

    return ~F.coalesce(rule.holds(), F.lit(True))
