"""Validate the rows of a table: split them by its rules, and deduplicate them by its key.

Computing the rows can be most of a run's work, and sorting them by key the rest. A first pass computes only the keys and
the rules, and collects the hashes of suspect keys: those that occur twice, or with a row that breaks a rule. The few
rows of suspect keys are cached, counted and compared. All others are written as they are computed, without a sort.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING
from uuid import uuid4

from lakehouse.core.dataclass import dataclass
from lakehouse.quality.checks import SAMPLE_ROWS
from lakehouse.quality.model import Outcome, Rule

if TYPE_CHECKING:
    from datetime import datetime

    import numpy as np
    from pyspark.sql import Column, DataFrame

    Hashes = np.ndarray[tuple[int], np.dtype[np.int64]]


#: With more suspect keys than this, all rows are sorted by key instead.
MAX_SUSPECTS = 1_000_000
#: The key hashes of up to this many rows (8 bytes each) are compared by the driver; those of more rows by Spark, which takes twice as long.
MAX_COLLECTED_HASHES = 20_000_000
#: Size of the hash filter per suspect key. Each key sets two slots: of the rows that are not suspect, at most one in sixty finds both set.
_FILTER_SLOTS_PER_KEY = 16
#: For the session that validates rows. Java does not compile the generated code of a projection with more columns than this,
#: and that code would include the filter before it: every row would be copied before most are dropped. With the limit, the filter is compiled
#: with the scan: 0.80 of the processor time of the taxi silver table (bench/tricks.py). Other sessions keep Spark's default, with which a filter of a wide table is faster.
SESSION = {"spark.sql.codegen.maxFields": "25"}
_HASH, _RANK, _BROKEN, _REASON = "_lake_hash", "_lake_rank", "_lake_broken", "_lake_reason"


@dataclass(frozen=True)
class ValidationResult:
    """The rows of a table, split by its rules."""

    valid: DataFrame
    """The rows that break no quarantine rule, one per key."""
    invalid: DataFrame | None
    """The few rows that break any rule; None without rules."""
    outcomes: Sequence[Outcome]
    """The number of rows that break each rule."""


@dataclass(frozen=True)
class Keys:
    """The unique key of a table: of several rows with one key, the last by `newest` is valid."""

    columns: Sequence[str]
    newest: Sequence[str]
    sort: bool = False
    """Deduplicate by sorting all rows, not by a pass of its own."""


@contextmanager
def validated(
    table: str, rows: DataFrame, rules: Sequence[Rule], keys: Keys | None = None
) -> Iterator[ValidationResult]:
    """Validate rows; cached rows are released at the end of the block.

    Only the rows of suspect keys are sorted and checked rule by rule. The taxi silver table takes 0.57 of the processor time
    that it takes if all rows are sorted (bench/tricks.py).
    """
    with ExitStack() as cached:
        suspects = _suspects(rows, rules, keys) if keys and not keys.sort else None
        if keys and suspects is not None:
            yield _split(table, rows, rules, keys, suspects, cached)
        else:
            invalid = _cached(rows.where(_any_broken(rules)), cached) if rules else None
            valid = _without_quarantined(rows, rules)
            valid = newest_rows(valid, keys) if keys else valid
            yield ValidationResult(valid, invalid, _outcomes(table, invalid, rules))


def rejected_rows(
    invalid: DataFrame, rules: Sequence[Rule], columns: Sequence[str], run: str, now: datetime
) -> DataFrame:
    """The rows that break a quarantine rule: their reasons, the row as JSON, and the partition columns."""
    from pyspark.sql import functions as F

    quarantine = [rule for rule in rules if rule.severity == "quarantine"]
    reasons = F.concat_ws(", ", *(F.when(breaks(rule), F.lit(rule.name)) for rule in quarantine))
    return (
        invalid.select("*", reasons.alias(_REASON))
        .where(F.col(_REASON) != "")
        .select(
            F.col(_REASON).alias("reason"),
            _as_json(invalid).alias("row"),
            F.lit(run).alias("run"),
            F.lit(now).cast("timestamp").alias("rejected_at"),
            *(F.col(name) for name in columns),
        )
    )


def _outcomes(table: str, invalid: DataFrame | None, rules: Sequence[Rule]) -> list[Outcome]:
    from pyspark.sql import functions as F

    if invalid is None:
        return []
    counts = [F.count(F.when(breaks(rule), F.lit(1))).alias(f"r{position}") for position, rule in enumerate(rules)]
    row = invalid.agg(*counts).first()
    assert row is not None
    # Spark Connect returns numpy integers, which JSON cannot hold.
    numbers = [int(count) for count in row]
    return [
        Outcome(table, rule.name, rule.severity, count == 0, count, rows=sample_rows(invalid, rule, count))
        for rule, count in zip(rules, numbers, strict=True)
    ]


def sample_rows(invalid: DataFrame, rule: Rule, count: int) -> tuple[str, ...]:
    """Some of the rows that block a run, as JSON: they are written nowhere else."""
    if not count or rule.severity != "block":
        return ()
    rows = invalid.where(breaks(rule)).limit(SAMPLE_ROWS).select(_as_json(invalid))
    return tuple(row[0] for row in rows.collect())


def _as_json(rows: DataFrame) -> Column:
    from pyspark.sql import functions as F

    return F.to_json(F.struct(*(F.col(name) for name in rows.columns)))


# ---- suspect keys -----------------------------------------------------------------------------------------------


def _split(
    table: str, rows: DataFrame, rules: Sequence[Rule], keys: Keys, suspects: Hashes, cached: ExitStack
) -> ValidationResult:
    """Validate the rows of suspect keys; all others are valid."""
    if not len(suspects):
        invalid = rows.where("false") if rules else None
        return ValidationResult(rows, invalid, [Outcome(table, rule.name, rule.severity, True, 0) for rule in rules])
    suspect = _is_suspect(rows, keys, suspects, cached)
    apart = _cached(rows.where(suspect), cached)
    invalid = apart.where(_any_broken(rules)) if rules else None
    valid = rows.where(~suspect).unionByName(newest_rows(_without_quarantined(apart, rules), keys))
    return ValidationResult(valid, invalid, _outcomes(table, invalid, rules))


def _suspects(rows: DataFrame, rules: Sequence[Rule], keys: Keys) -> Hashes | None:
    """The hashes of keys that occur more than once or with a row that breaks a rule; None if they are too many."""
    from pyspark.sql import functions as F

    hashed = rows.select(F.xxhash64(*keys.columns).alias(_HASH), _evaluated_once(_any_broken(rules)).alias(_BROKEN))
    # If the transformation keeps every row, Spark takes the count from the input's metadata.
    suspects = _compare_in_driver(hashed) if rows.count() <= MAX_COLLECTED_HASHES else _compare_in_spark(hashed)
    return suspects if len(suspects) <= MAX_SUSPECTS else None


def _compare_in_driver(hashed: DataFrame) -> Hashes:
    import numpy

    rows = hashed.toPandas()
    hashes: Hashes = rows[_HASH].to_numpy()
    in_order = numpy.sort(hashes)
    duplicates = in_order[1:][in_order[1:] == in_order[:-1]]
    suspects: Hashes = numpy.unique(numpy.concatenate([duplicates, hashes[rows[_BROKEN].to_numpy(dtype=bool)]]))
    return suspects


def _compare_in_spark(hashed: DataFrame) -> Hashes:
    from pyspark.sql import functions as F

    hashes = hashed.groupBy(_HASH).agg(F.count(F.lit(1)).alias("count"), F.max(_BROKEN).alias(_BROKEN))
    suspect = hashes.where((F.col("count") > 1) | F.col(_BROKEN)).select(_HASH)
    # Sorted, because a limit without an order reads one partition after the other.
    suspects: Hashes = suspect.orderBy(_HASH).limit(MAX_SUSPECTS + 1).toPandas()[_HASH].to_numpy()
    return suspects


def _is_suspect(rows: DataFrame, keys: Keys, suspects: Hashes, cached: ExitStack) -> Column:
    """Whether a row's key may be suspect, by a Bloom filter with two hashes; false positives do no harm.

    A condition, which Spark pushes below the computation of the other columns; a join would come after it. The filter
    comes from a subquery: a literal would be printed wherever Spark prints its plan. It has a byte per slot: with
    bits, Spark would compute each row's hash twice.
    """
    import numpy
    import pandas
    from pyspark.sql import functions as F

    size = 1 << (_FILTER_SLOTS_PER_KEY * len(suspects)).bit_length()
    slots = numpy.zeros(size, dtype=numpy.uint8)
    unsigned = suspects.view(numpy.uint64)
    slots[unsigned % size] = slots[(unsigned >> 32) % size] = 1
    view = f"lake_suspects_{uuid4().hex}"
    spark = rows.sparkSession
    # Through Arrow: Spark converts Python rows in a Python worker, which takes a second to start.
    spark.createDataFrame(pandas.DataFrame({"slots": [slots.tobytes()]}), "slots binary").createOrReplaceTempView(view)
    cached.callback(spark.catalog.dropTempView, view)

    def is_set(part: Column) -> Column:
        slot = F.pmod(part, F.lit(size)).cast("int") + 1
        return F.call_function("substring", F.expr(f"(SELECT slots FROM {view})"), slot, F.lit(1)) == F.lit(b"\x01")

    key_hash = F.xxhash64(*keys.columns)
    return is_set(key_hash) & is_set(F.shiftrightunsigned(key_hash, 32))


def _cached(rows: DataFrame, cached: ExitStack) -> DataFrame:
    cached.callback(rows.persist().unpersist)
    return rows


def newest_rows(rows: DataFrame, keys: Keys) -> DataFrame:
    """The last row of each key."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    newest_first = Window.partitionBy(*keys.columns).orderBy(*(F.col(name).desc() for name in keys.newest))
    return rows.withColumn(_RANK, F.row_number().over(newest_first)).where(F.col(_RANK) == 1).drop(_RANK)


def _without_quarantined(rows: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """The rows that break no quarantine rule."""
    from pyspark.sql import functions as F

    quarantine = [rule for rule in rules if rule.severity == "quarantine"]
    if not quarantine:
        return rows
    flagged = rows.withColumn(_BROKEN, _evaluated_once(_any_broken(quarantine)))
    return flagged.where(~F.col(_BROKEN)).drop(_BROKEN)


def _evaluated_once(condition: Column) -> Column:
    """A condition that Spark evaluates in a column of its own, with shared subexpressions computed once."""
    from pyspark.sql import functions as F

    # Always false, but not deterministic to Spark: a deterministic condition would be split and pushed down, and the
    # row's columns would be computed again for every rule.
    return condition | (F.monotonically_increasing_id() < 0)


def _any_broken(rules: Sequence[Rule]) -> Column:
    from pyspark.sql import functions as F

    return reduce(or_, (breaks(rule) for rule in rules), F.lit(False))


def breaks(rule: Rule) -> Column:
    """True where the rule's condition is false; a null condition is not broken."""
    from pyspark.sql import functions as F

    return ~F.coalesce(rule.condition(), F.lit(True))


#: Up to this many rows are validated so: for more, another pass over the input takes less time than to cache them.
MAX_ROWS = 200_000
_BROKEN = "_lake_broken"


def validated_few(
    table: str, rows: DataFrame, rules: Sequence[Rule], keys: Keys | None, cached: ExitStack
) -> ValidationResult:
    """Split rows by rules and deduplicate them by key; they stay cached until `cached` is closed."""
    from pyspark.sql import functions as F

    numbers = F.array_compact(F.array(*(F.when(breaks(rule), F.lit(number)) for number, rule in enumerate(rules))))
    flagged = rows.withColumn(_BROKEN, numbers)
    cached.callback(flagged.persist().unpersist)
    broken = flagged.where(F.size(_BROKEN) > 0)
    counts = Counter(number for row in broken.select(_BROKEN).collect() for number in row[0])
    invalid, valid = broken.drop(_BROKEN), flagged
    quarantine = [F.lit(number) for number in counts if rules[number].severity == "quarantine"]
    if quarantine:
        valid = flagged.where(~F.arrays_overlap(_BROKEN, F.array(*quarantine)))
    valid = valid.drop(_BROKEN)
    outcomes = [
        Outcome(table, rule.name, rule.severity, not count, count, rows=sample_rows(invalid, rule, count))
        for rule, count in ((rule, counts[number]) for number, rule in enumerate(rules))
    ]
    return ValidationResult(newest_rows(valid, keys) if keys else valid, invalid, outcomes)
