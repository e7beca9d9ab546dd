"""Partitions of a pipeline by hours, days, weeks, months or listed keys: their keys, ranges, neighbours and column types."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Protocol

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import BadPartitionError

_HOUR = timedelta(hours=1)
_HOUR_FORMAT = "%Y-%m-%dT%H"


class Partitions(Protocol):
    """A partition scheme of a pipeline. A class of your own with these members works like the built-in ones."""

    @property
    def column(self) -> str:
        """The column that holds the key."""

    @property
    def start(self) -> str:
        """The first key; Dagster's list of partitions starts here."""

    def check(self, key: str) -> str:
        """The normalized key; BadPartitionError if it is invalid."""

    def between(self, first: str, last: str) -> list[str]:
        """Every key of a range, both ends included."""

    def shifted(self, key: str, by: int) -> str:
        """The key a number of partitions later, or earlier if negative."""

    def sql_type(self) -> str:
        """The column's type in Spark."""


@dataclass(frozen=True)
class Hours:
    """One partition per hour: 2026-01-14T05, a string column. Hours are those of UTC.

    >>> Hours("hour").shifted("2026-01-14T23", 1)
    '2026-01-15T00'
    """

    column: str = "hour"
    start: str = "2020-01-01T00"

    def check(self, key: str) -> str:
        """The normalized key; BadPartitionError if it is invalid."""
        return self._key(self._hour(key))

    def between(self, first: str, last: str) -> list[str]:
        """Every key of a range, both ends included."""
        start, end = self._hour(first), self._hour(last)
        _check_order(first, last, start <= end)
        return [self._key(start + timedelta(hours=number)) for number in range((end - start) // _HOUR + 1)]

    def shifted(self, key: str, by: int) -> str:
        """The key a number of partitions later, or earlier if negative."""
        return self._key(self._hour(key) + timedelta(hours=by))

    def sql_type(self) -> str:
        """The column's type in Spark."""
        return "string"

    def _hour(self, key: str) -> datetime:
        try:
            return datetime.strptime(key, _HOUR_FORMAT)
        except ValueError as exc:
            raise BadPartitionError(f"{key!r} is not an hour.", "Write hours as 2026-01-14T05.") from exc

    def _key(self, hour: datetime) -> str:
        return hour.strftime(_HOUR_FORMAT)


@dataclass(frozen=True)
class Weeks:
    """One partition per week from Monday to Sunday, named by its Monday: 2026-01-12, a date column. Any day names its week.

    >>> Weeks("week").check("2026-01-14")
    '2026-01-12'
    """

    column: str = "week"
    start: str = "2020-01-06"

    def check(self, key: str) -> str:
        """The normalized key; BadPartitionError if it is invalid."""
        day = _day(key, key)
        return (day - timedelta(days=day.weekday())).isoformat()

    def between(self, first: str, last: str) -> list[str]:
        """Every key of a range, both ends included."""
        start, end = date.fromisoformat(self.check(first)), date.fromisoformat(self.check(last))
        _check_order(first, last, start <= end)
        return [(start + timedelta(weeks=number)).isoformat() for number in range((end - start).days // 7 + 1)]

    def shifted(self, key: str, by: int) -> str:
        """The key a number of partitions later, or earlier if negative."""
        return (date.fromisoformat(self.check(key)) + timedelta(weeks=by)).isoformat()

    def sql_type(self) -> str:
        """The column's type in Spark."""
        return "date"


@dataclass(frozen=True)
class Keys:
    """One partition for each of a list of keys, such as regions or customers: a string column. They have no order in time.

    >>> Keys(("eu", "us"), "region").check("eu")
    'eu'
    """

    keys: Sequence[str]
    column: str = "key"

    @property
    def start(self) -> str:
        """The first key."""
        return self.keys[0]

    def check(self, key: str) -> str:
        """The normalized key; BadPartitionError if it is invalid."""
        if key not in self.keys:
            raise BadPartitionError(f"{key!r} is not a partition.", f"Choose from: {', '.join(self.keys)}.")
        return key

    def between(self, first: str, last: str) -> list[str]:
        """Every key of a range, both ends included."""
        start, end = (self.keys.index(self.check(key)) for key in (first, last))
        _check_order(first, last, start <= end)
        return list(self.keys[start : end + 1])

    def shifted(self, key: str, by: int) -> str:
        """The key a number of partitions later, or earlier if negative."""
        if by:
            raise BadPartitionError(
                "Listed keys have no earlier and later ones.", "Declare the table without lookback."
            )
        return self.check(key)

    def sql_type(self) -> str:
        """The column's type in Spark."""
        return "string"


@dataclass(frozen=True)
class Days:
    """One partition per day: 2026-01-14, a date column.

    >>> Days("date").between("2026-01-30", "2026-02-01")
    ['2026-01-30', '2026-01-31', '2026-02-01']
    """

    column: str = "date"
    start: str = "2020-01-01"

    def check(self, key: str) -> str:
        """The normalized key; BadPartitionError if it is invalid."""
        return _day(key, key).isoformat()

    def between(self, first: str, last: str) -> list[str]:
        """Every key of a range, both ends included."""
        start, end = _day(first, first), _day(last, last)
        _check_order(first, last, start <= end)
        return [(start + timedelta(days=offset)).isoformat() for offset in range((end - start).days + 1)]

    def shifted(self, key: str, by: int) -> str:
        """The key a number of partitions later, or earlier if negative."""
        return (_day(key, key) + timedelta(days=by)).isoformat()

    def sql_type(self) -> str:
        """The column's type in Spark."""
        return "date"


@dataclass(frozen=True)
class Months:
    """One partition per month: 2026-01, a string column.

    >>> Months("month").between("2025-12", "2026-02")
    ['2025-12', '2026-01', '2026-02']
    """

    column: str = "month"
    start: str = "2020-01"

    def check(self, key: str) -> str:
        """The normalized key; BadPartitionError if it is invalid."""
        return _day(f"{key}-01", key).isoformat()[:7]

    def between(self, first: str, last: str) -> list[str]:
        """Every key of a range, both ends included."""
        start, end = self._number(first), self._number(last)
        _check_order(first, last, start <= end)
        return [self._key(number) for number in range(start, end + 1)]

    def shifted(self, key: str, by: int) -> str:
        """The key a number of partitions later, or earlier if negative."""
        return self._key(self._number(key) + by)

    def sql_type(self) -> str:
        """The column's type in Spark."""
        return "string"

    def _number(self, key: str) -> int:
        day = _day(f"{key}-01", key)
        return day.year * 12 + day.month - 1

    def _key(self, number: int) -> str:
        return f"{number // 12:04}-{number % 12 + 1:02}"


def with_neighbours(partitions: Partitions, keys: Sequence[str], before: int = 0, after: int = 0) -> list[str]:
    """The keys with a number of neighbours on each side, sorted."""
    return sorted({partitions.shifted(key, by) for key in keys for by in range(-before, after + 1)})


def _day(text: str, key: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as exc:
        raise BadPartitionError(
            f"{key!r} is not a partition.", "Write days as 2026-01-14 and months as 2026-01."
        ) from exc


def _check_order(first: str, last: str, ordered: bool) -> None:
    if not ordered:
        raise BadPartitionError(f"The range from {first} to {last} runs backwards.", "Exchange --from and --to.")
