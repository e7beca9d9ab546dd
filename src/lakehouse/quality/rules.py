"""Rules as columns: `not_null("id")`, `between("fare", 0, 1000)`, or any condition of one's own with `expect`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from lakehouse.quality.model import Rule, Severity

if TYPE_CHECKING:
    from pyspark.sql import Column


def expect(name: str, holds: Callable[[], Column], severity: Severity = "quarantine") -> Rule:
    """A condition of one's own: `expect("low_is_lowest", lambda: F.col("low") <= F.col("open"))`."""
    return Rule(name, holds, severity)


def not_null(column: str, severity: Severity = "quarantine") -> Rule:
    """Every row has a value there."""
    return Rule(f"{column}_not_null", lambda: _column(column).isNotNull(), severity)


def between(column: str, low: Any, high: Any, severity: Severity = "quarantine") -> Rule:
    """The value, if there is one, lies in a range, ends included."""
    return Rule(f"{column}_in_range", lambda: _column(column).between(low, high), severity)


def at_least(column: str, low: Any, severity: Severity = "quarantine") -> Rule:
    """The value, if there is one, is not below a bound."""
    return Rule(f"{column}_at_least_{low}", lambda: _column(column) >= low, severity)


def accepted(column: str, values: Iterable[Any], severity: Severity = "quarantine") -> Rule:
    """The value, if there is one, is one of a list."""
    listed = list(values)
    return Rule(f"{column}_accepted", lambda: _column(column).isin(listed), severity)


def _column(name: str) -> Column:
    from pyspark.sql import functions as F

    return F.col(name)
