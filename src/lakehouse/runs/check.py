"""Rules on rows and checks on tables, looked at before anything is published."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from lakehouse.quality.checks import some_rows
from lakehouse.quality.model import Check, Looking, Outcome, Rule

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import Column, DataFrame


def good_rows(rows: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """The rows that break no rule that quarantines."""
    bad = _any_broken([rule for rule in rules if rule.severity == "quarantine"])
    return rows if bad is None else rows.where(~bad)


def broken_rows(rows: DataFrame, rules: Sequence[Rule]) -> DataFrame | None:
    """The rows that break any rule, which are few: kept, because they are counted and written from here."""
    bad = _any_broken(rules)
    return None if bad is None else rows.where(bad).persist()


def count_broken(table: str, broken: DataFrame, rules: Sequence[Rule]) -> list[Outcome]:
    """How many rows break each rule."""
    from pyspark.sql import functions as F

    counts = [F.count(F.when(_broken(rule), F.lit(1))).alias(f"r{at}") for at, rule in enumerate(rules)]
    found = broken.agg(*counts).first()
    assert found is not None
    return [
        Outcome(table, rule.name, rule.severity, found[at] == 0, found[at], rows=_shown(broken, rule, found[at]))
        for at, rule in enumerate(rules)
    ]


def _shown(broken: DataFrame, rule: Rule, count: int) -> tuple[str, ...]:
    """Some of the rows that stop a run: they are put aside nowhere."""
    return some_rows(broken.where(_broken(rule)), count) if rule.severity == "block" else ()


def rejected_rows(broken: DataFrame, rules: Sequence[Rule], kept: Sequence[str], run: str, now: datetime) -> DataFrame:
    """The rows that rules put aside: the reasons, the row as JSON, and the columns that say to which partition it belongs."""
    from pyspark.sql import functions as F

    ours = [rule for rule in rules if rule.severity == "quarantine"]
    reasons = F.concat_ws(", ", *(F.when(_broken(rule), F.lit(rule.name)) for rule in ours))
    return broken.where(_any_broken(ours)).select(
        reasons.alias("reason"),
        F.to_json(F.struct(*(F.col(name) for name in broken.columns))).alias("row"),
        F.lit(run).alias("run"),
        F.lit(now).cast("timestamp").alias("rejected_at"),
        *(F.col(name) for name in kept),
    )


def look(table: str, checks: Sequence[Check], at: Looking) -> list[Outcome]:
    """What came of each check."""
    outcomes = []
    for check in checks:
        finding = check.look(at)
        facts = (finding.passed, finding.broken, finding.told, finding.rows)
        outcomes.append(Outcome(table, check.name, check.severity, *facts))
    return outcomes


def _any_broken(rules: Sequence[Rule]) -> Column | None:
    return reduce(or_, (_broken(rule) for rule in rules)) if rules else None


def _broken(rule: Rule) -> Column:
    """True where the rule does not hold; a condition that is null (nothing to look at) is not broken."""
    from pyspark.sql import functions as F

    return ~F.coalesce(rule.holds(), F.lit(True))
