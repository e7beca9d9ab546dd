"""Checks of whole tables, looked at before anything is published."""

from __future__ import annotations

from collections.abc import Sequence

from lakehouse.quality.model import Check, CheckContext, Outcome


def look(table: str, checks: Sequence[Check], at: CheckContext) -> list[Outcome]:
    """What came of each check."""
    outcomes = []
    for check in checks:
        finding = check.look(at)
        # Counts that come through Spark Connect are numpy's, of which a record cannot be written.
        facts = (bool(finding.passed), int(finding.broken), finding.told, finding.rows)
        outcomes.append(Outcome(table, check.name, check.severity, *facts))
    return outcomes
