"""Numbers with a fixed count of digits, worked out as whole numbers of their last digit.

Spark takes a double to a decimal through text, and divides and adds decimals as BigDecimal, which made up half of the time that trips took. Whole
numbers are exact as well, and cost next to nothing.
"""

from __future__ import annotations

from decimal import Decimal

from pyspark.sql import Column
from pyspark.sql import functions as F

#: A hundredfold this far from the middle of two whole numbers is rounded by a double as it is by its digits.
_CLEARLY_NEARER = 0.4
_CENT = Decimal("0.01")


def hundredths(number: Column, largest: float) -> Column:
    """How many hundredths a double is: rounded half up, and null where it is no number or larger than the largest."""
    hundredfold = number * 100
    nearest = F.rint(hundredfold)
    # 1.005 is a little less as a double, and yet it is to be 1.01: where it matters, by the digits, as they would be written.
    by_digits = (number.cast("decimal(18,2)") * 100).cast("double")
    rounded = F.when(F.abs(hundredfold - nearest) < _CLEARLY_NEARER, nearest).otherwise(by_digits)
    return F.when(F.abs(number) <= largest, rounded).cast("bigint")


def quotient(over: Column, under: Column) -> Column:
    """A whole number divided by another one, which is positive: rounded half up, away from zero."""
    half = F.when(over < 0, -under).otherwise(under)
    return F.call_function("div", over * 2 + half, under * 2)


def decimal(count: Column, kind: str, unit: Decimal = _CENT) -> Column:
    """So many units (cents, unless told) as a decimal of a kind."""
    # By way of a length of time, the one type that Spark keeps as a whole number and makes a decimal of without text.
    return (F.expr(f"INTERVAL '{unit}' SECOND") * count).cast(kind)


def exact_sum(amount: Column, kind: str) -> Column:
    """The sum of decimals that have two digits after the point and ten before it, at most; null if there are none.

    It is added up in a whole number of 64 bits, which nine million of the largest such decimals fill.
    """
    # A double so far from its limits is off by much less than half a hundredth, so rounding finds the very number again.
    whole = F.rint(amount.cast("double") * 100).cast("bigint")
    return (F.sum(whole).cast("decimal(20,0)") * F.lit(_CENT)).cast(kind)
