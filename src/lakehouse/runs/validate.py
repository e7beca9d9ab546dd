"""The rows made for a table, sifted: which are believed, which break a rule, and of several with one key the newest.

TableBuild rows may be most of a run's work, and sorting them the rest. So a first pass works out no more than the keys and the rules need, and
says by a hash of the key which rows are suspect: their key came twice, or one of that key breaks a rule. These are few, and are set apart
and kept to be counted and compared. All others go to the table as they are made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING
from uuid import uuid4

from lakehouse.quality.checks import some_rows
from lakehouse.quality.model import Outcome, Rule

if TYPE_CHECKING:
    from datetime import datetime

    import numpy as np
    from pyspark.sql import Column, DataFrame

    Hashes = np.ndarray[tuple[int], np.dtype[np.int64]]

#: With more keys than that to be looked at, all rows are sorted by key instead.
MOST_SUSPECTS = 1_000_000
#: The hashes of up to so many rows come here to be compared, eight bytes each; those of more are compared by Spark, which takes twice as long.
MOST_COMPARED_HERE = 20_000_000
#: For one key, so many places in the table of marks, two of which are its own: of the rows that are fine, one in sixty or fewer finds
#: both of its own marked by others.
_PLACES_PER_KEY = 16
#: For the session in which rows are sifted. A step that makes more columns than that is more code than Java compiles (assemble.py), and would
#: take the filter before it along: all rows would be copied before most are left out. Apart from it, the filter is compiled with the
#: reading of the files. Other sessions keep Spark's own limit, as a filter of a wide table is faster with it.
SESSION = {"spark.sql.codegen.maxFields": "25"}
_HASH, _RANK, _BROKEN = "_lake_hash", "_lake_rank", "_lake_broken"


@dataclass(frozen=True)
class ValidationResult:
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
def sifted(table: str, made: DataFrame, rules: Sequence[Rule], keys: Keys | None = None) -> Iterator[ValidationResult]:
    """Sift rows; what was kept of them is let go at the end."""
    with ExitStack() as kept:
        suspects = _suspects(made, rules, keys) if keys and not keys.sort else None
        if keys and suspects is not None:
            yield _parted(table, made, rules, keys, suspects, kept)
        else:
            broken = _kept(made.where(_any_broken(rules)), kept) if rules else None
            believed = _believed(made, rules)
            yield ValidationResult(
                _newest(believed, keys) if keys else believed, broken, _outcomes(table, broken, rules)
            )


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


def _outcomes(table: str, broken: DataFrame | None, rules: Sequence[Rule]) -> list[Outcome]:
    from pyspark.sql import functions as F

    if broken is None:
        return []
    counts = [F.count(F.when(_breaks(rule), F.lit(1))).alias(f"r{at}") for at, rule in enumerate(rules)]
    found = broken.agg(*counts).first()
    assert found is not None
    # Through Spark Connect they are numpy's, of which no record can be written.
    numbers = [int(count) for count in found]
    return [
        Outcome(table, rule.name, rule.severity, count == 0, count, rows=_shown(broken, rule, count))
        for rule, count in zip(rules, numbers, strict=True)
    ]


def _shown(broken: DataFrame, rule: Rule, count: int) -> tuple[str, ...]:
    """Some of the rows that stop a run: they are put aside nowhere."""
    return some_rows(broken.where(_breaks(rule)), count) if rule.severity == "block" else ()


# ---- suspects and others ----------------------------------------------------------------------------------------


def _parted(
    table: str, made: DataFrame, rules: Sequence[Rule], keys: Keys, suspects: Hashes, kept: ExitStack
) -> ValidationResult:
    """The suspects looked at one by one, the others as they are."""
    if not len(suspects):
        broken = made.where("false") if rules else None
        return ValidationResult(made, broken, [Outcome(table, rule.name, rule.severity, True, 0) for rule in rules])
    suspect = _seems_suspect(made, keys, suspects, kept)
    apart = _kept(made.where(suspect), kept)
    broken = apart.where(_any_broken(rules)) if rules else None
    good = made.where(~suspect).unionByName(_newest(_believed(apart, rules), keys))
    return ValidationResult(good, broken, _outcomes(table, broken, rules))


def _suspects(made: DataFrame, rules: Sequence[Rule], keys: Keys) -> Hashes | None:
    """The hashes of keys that come more than once, or with a row that breaks a rule; None if they are too many."""
    from pyspark.sql import functions as F

    marked = made.select(F.xxhash64(*keys.columns).alias(_HASH), _worked_out_once(_any_broken(rules)).alias(_BROKEN))
    # Where a table is made row by row, their number is in the metadata of what it is made from.
    found = _compared_here(marked) if made.count() <= MOST_COMPARED_HERE else _compared_by_spark(marked)
    return found if len(found) <= MOST_SUSPECTS else None


def _compared_here(marked: DataFrame) -> Hashes:
    import numpy

    rows = marked.toPandas()
    hashes: Hashes = rows[_HASH].to_numpy()
    in_order = numpy.sort(hashes)
    twice = in_order[1:][in_order[1:] == in_order[:-1]]
    suspects: Hashes = numpy.unique(numpy.concatenate([twice, hashes[rows[_BROKEN].to_numpy(dtype=bool)]]))
    return suspects


def _compared_by_spark(marked: DataFrame) -> Hashes:
    from pyspark.sql import functions as F

    hashes = marked.groupBy(_HASH).agg(F.count(F.lit(1)).alias("count"), F.max(_BROKEN).alias(_BROKEN))
    suspect = hashes.where((F.col("count") > 1) | F.col(_BROKEN)).select(_HASH)
    # In order, because a limit without one looks at one part after the other.
    found: Hashes = suspect.orderBy(_HASH).limit(MOST_SUSPECTS + 1).toPandas()[_HASH].to_numpy()
    return found


def _seems_suspect(made: DataFrame, keys: Keys, suspects: Hashes, kept: ExitStack) -> Column:
    """Whether a row's key may be one of those; some others are taken for one, which does no harm.

    A condition, which Spark puts before the work that the other columns are, where a join would come after it. The marks come from
    a subquery: as a literal they would be written out wherever Spark tells its plan. They are bytes, not bits, for which Spark
    would work out every row's hash twice; so it does only for the few whose first place is marked.
    """
    import numpy
    import pandas
    from pyspark.sql import functions as F

    size = 1 << (_PLACES_PER_KEY * len(suspects)).bit_length()
    marks = numpy.zeros(size, dtype=numpy.uint8)
    unsigned = suspects.view(numpy.uint64)
    marks[unsigned % size] = marks[(unsigned >> 32) % size] = 1
    view = f"lake_suspects_{uuid4().hex}"
    spark = made.sparkSession
    # Through Arrow: rows as Python has them are taken apart by a Python of Spark's own, which takes a second to start.
    spark.createDataFrame(pandas.DataFrame({"marks": [marks.tobytes()]}), "marks binary").createOrReplaceTempView(view)
    kept.callback(spark.catalog.dropTempView, view)

    def marked(part: Column) -> Column:
        place = F.pmod(part, F.lit(size)).cast("int") + 1
        return F.call_function("substring", F.expr(f"(SELECT marks FROM {view})"), place, F.lit(1)) == F.lit(b"\x01")

    hashed = F.xxhash64(*keys.columns)
    return marked(hashed) & marked(F.shiftrightunsigned(hashed, 32))


def _kept(rows: DataFrame, kept: ExitStack) -> DataFrame:
    kept.callback(rows.persist().unpersist)
    return rows


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
    marked = rows.withColumn(_BROKEN, _worked_out_once(_any_broken(ours)))
    return marked.where(~F.col(_BROKEN)).drop(_BROKEN)


def _worked_out_once(condition: Column) -> Column:
    """A condition that Spark keeps in a column of its own, in which it works out what comes twice only once."""
    from pyspark.sql import functions as F

    # Never null, and nothing is added; but Spark does not know that. If it did, it would take the condition apart and work out
    # a row's columns again for every rule, and once more for the row.
    return condition | (F.monotonically_increasing_id() < 0)


def _any_broken(rules: Sequence[Rule]) -> Column:
    from pyspark.sql import functions as F

    return reduce(or_, (_breaks(rule) for rule in rules), F.lit(False))


def _breaks(rule: Rule) -> Column:
    """True where the rule does not hold; a condition that is null (nothing to look at) is not broken."""
    from pyspark.sql import functions as F

    return ~F.coalesce(rule.holds(), F.lit(True))
