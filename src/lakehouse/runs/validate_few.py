"""Validate few rows: compute them once with the numbers of the rules that each breaks, cache them, and count in the driver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from lakehouse.quality.model import Outcome, Rule
from lakehouse.runs.validate import Keys, ValidationResult, breaks, newest_rows, sample_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
