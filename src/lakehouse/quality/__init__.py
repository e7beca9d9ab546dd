"""Rules as columns and checks of tables, each with a severity: warn, quarantine or block."""

from lakehouse.quality.checks import fresh, keeps_most_of, reconciles, reference, steady_row_count, unique
from lakehouse.quality.model import Check, CheckContext, Finding, Outcome, Rule, SparkCheckContext
from lakehouse.quality.rules import accepted, at_least, between, expect, not_null

__all__ = [
    "Check",
    "Finding",
    "CheckContext",
    "Outcome",
    "Rule",
    "SparkCheckContext",
    "accepted",
    "at_least",
    "between",
    "expect",
    "fresh",
    "keeps_most_of",
    "not_null",
    "reconciles",
    "reference",
    "steady_row_count",
    "unique",
]
