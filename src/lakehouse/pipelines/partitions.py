"""Days and months as partitions of a pipeline: their keys, ranges, neighbours, and what a key means in a column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Protocol

from lakehouse.core.errors import BadPartitionError


class Partitions(Protocol):
    """The kinds of slices that a pipeline's tables are written in."""

    @property
    def column(self) -> str:
        """The column of the tables that holds the key."""

    @property
    def start(self) -> str:
        """The first key that there can be; where Dagster's list begins."""

    def check(self, key: str) -> str:
        """The key in its proper form; BadPartitionError if it is none."""

    def between(self, first: str, last: str) -> list[str]:
        """Every key of a range, both ends included."""

    def shifted(self, key: str, by: int) -> str:
        """The key so many partitions later (or earlier)."""

    def sql_type(self) -> str:
        """The type of the column, in Spark's words."""


@dataclass(frozen=True)
class Days:
    """One partition a day: 2026-01-14, a date in the tables' column."""

    column: str = "date"
    start: str = "2020-01-01"

    def check(self, key: str) -> str:
        return _day(key, key).isoformat()

    def between(self, first: str, last: str) -> list[str]:
        start, end = _day(first, first), _day(last, last)
        _in_order(first, last, start <= end)
        return [(start + timedelta(days=offset)).isoformat() for offset in range((end - start).days + 1)]

    def shifted(self, key: str, by: int) -> str:
        return (_day(key, key) + timedelta(days=by)).isoformat()

    def sql_type(self) -> str:
        return "date"


@dataclass(frozen=True)
class Months:
    """One partition a month: 2026-01, a text in the tables' column."""

    column: str = "month"
    start: str = "2020-01"

    def check(self, key: str) -> str:
        return _day(f"{key}-01", key).isoformat()[:7]

    def between(self, first: str, last: str) -> list[str]:
        start, end = self._number(first), self._number(last)
        _in_order(first, last, start <= end)
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
    """The keys and so many on each side of each, sorted."""
    return sorted({partitions.shifted(key, by) for key in keys for by in range(-before, after + 1)})


def _day(text: str, asked: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as exc:
        raise BadPartitionError(
            f"{asked!r} is not a partition.", "Days are written 2026-01-14, months 2026-01."
        ) from exc


def _in_order(first: str, last: str, fine: bool) -> None:
    if not fine:
        raise BadPartitionError(f"The range from {first} to {last} runs backwards.", "Exchange --from and --to.")
