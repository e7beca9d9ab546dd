"""Rules as columns: `not_null("id")`, `between("fare", 0, 1000)`, or any other condition with `expect`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from lakehouse.core.quoting import spark_text
from lakehouse.quality.model import Rule, Severity

if TYPE_CHECKING:
    from pyspark.sql import Column


def expect(name: str, condition: Callable[[], Column], severity: Severity = "quarantine", sql: str = "") -> Rule:
    """Any condition: `expect("low_is_lowest", lambda: F.col("low") <= F.col("open"))`.

    Args:
        sql: the same condition in SQL; `lake run --light` needs it.

    >>> expect("named", lambda: F.col("name") != "", severity="warn", sql="`name` != ''").severity
    'warn'
    """
    return Rule(name, condition, severity, sql)


def not_null(column: str, severity: Severity = "quarantine") -> Rule:
    """The column is not null.

    >>> not_null("id").sql
    '`id` IS NOT NULL'
    """
    return Rule(f"{column}_not_null", lambda: _column(column).isNotNull(), severity, f"`{column}` IS NOT NULL")


def between(column: str, low: Any, high: Any, severity: Severity = "quarantine") -> Rule:
    """The value is null or within a range, both ends included.

    >>> between("score", 0, 100).sql
    '`score` BETWEEN 0 AND 100'
    """
    sql = f"`{column}` BETWEEN {_literal(low)} AND {_literal(high)}"
    return Rule(f"{column}_in_range", lambda: _column(column).between(low, high), severity, sql)


def at_least(column: str, low: Any, severity: Severity = "quarantine") -> Rule:
    """The value is null or not below a bound.

    >>> at_least("score", 0).sql
    '`score` >= 0'
    """
    return Rule(f"{column}_at_least_{low}", lambda: _column(column) >= low, severity, f"`{column}` >= {_literal(low)}")


def accepted(column: str, values: Iterable[Any], severity: Severity = "quarantine") -> Rule:
    """The value is null or one of a list.

    >>> accepted("state", ["new", "won"]).sql
    "`state` IN ('new', 'won')"
    """
    listed = list(values)
    sql = f"`{column}` IN ({', '.join(_literal(value) for value in listed)})"
    return Rule(f"{column}_accepted", lambda: _column(column).isin(listed), severity, sql)


def _literal(value: Any) -> str:
    return str(value) if isinstance(value, int | float | Decimal) else spark_text(str(value))


def _column(name: str) -> Column:
    from pyspark.sql import functions as F

    return F.col(name)
