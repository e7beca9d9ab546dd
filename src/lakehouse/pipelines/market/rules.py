"""Rules and checks of minute bars and of the tables that are computed from them."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from lakehouse.pipelines import functions as F
from lakehouse.quality import Check, Rule, at_least, expect, not_null, reconciles

if TYPE_CHECKING:
    from pyspark.sql import Column


def _all_prices(condition: Callable[[Column], Column]) -> Column:
    """A condition on each of a bar's four prices."""
    return reduce(and_, (condition(F.col(name)) for name in ("open", "high", "low", "close")))


def _not_above(lower: str, upper: str) -> Rule:
    """One price of a bar is not above another."""

    def condition() -> Column:
        return F.col(lower) <= F.col(upper)

    return expect(f"{lower}_not_above_{upper}", condition)


def _parses() -> Column:
    return F.col("unparsed").isNull()


def _of_its_day() -> Column:
    """A bar of another day would be in a partition that its file's run does not replace."""
    return F.col("bar_at").isNull() | F.col("session").isNotNull()


MINUTE_RULES = (
    expect("parses", _parses),
    not_null("ticker"),
    not_null("bar_at"),
    expect("of_its_files_day", _of_its_day),
    expect("prices_not_null", lambda: _all_prices(lambda price: price.isNotNull())),
    expect("prices_above_zero", lambda: _all_prices(lambda price: price > 0)),
    _not_above("low", "open"),
    _not_above("low", "close"),
    _not_above("open", "high"),
    _not_above("close", "high"),
    not_null("volume"),
    at_least("volume", 0),
    at_least("trades", 0),
)


def volume_reconciles(silver: str) -> Check:
    """The daily volume equals the volume of the regular session's minutes."""
    return reconciles(silver, own="sum(volume)", other="sum(CASE WHEN session = 'regular' THEN volume END)")
