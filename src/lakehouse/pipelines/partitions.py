"""Days and months as partitions of a pipeline: their keys, ranges, neighbours and column types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Protocol

from lakehouse.core.errors import BadPartitionError


class Partitions(Protocol):
    """A partition scheme of a pipeline."""

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
class Days:
    """One partition per day: 2026-01-14, a date column."""

    column: str = "date"
    start: str = "2020-01-01"

    def check(self, key: str) -> str:
        return _day(key, key).isoformat()

    def between(self, first: str, last: str) -> list[str]:
        start, end = _day(first, first), _day(last, last)
        _check_order(first, last, start <= end)
        return [(start + timedelta(days=offset)).isoformat() for offset in range((end - start).days + 1)]

    def shifted(self, key: str, by: int) -> str:
        return (_day(key, key) + timedelta(days=by)).isoformat()

    def sql_type(self) -> str:
        return "date"


@dataclass(frozen=True)
class Months:
    """One partition per month: 2026-01, a string column."""

    column: str = "month"
    start: str = "2020-01"

    def check(self, key: str) -> str:
        return _day(f"{key}-01", key).isoformat()[:7]

    def between(self, first: str, last: str) -> list[str]:
        start, end = self._number(first), self._number(last)
        _check_order(first, last, start <= end)
        return [self._key(number) for number in range(start, end + 1)]

    def shifted(self, key: str, by: int) -> str:
        return self._key(self._number(key) + by)

    def sql_type(self) -> str:
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
