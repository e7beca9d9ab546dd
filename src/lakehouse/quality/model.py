"""What must hold for rows and tables, how severe it is if it does not, and what came of looking."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from lakehouse.core.errors import UnknownChoiceError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Severity = Literal["warn", "quarantine", "block"]
SEVERITIES = ("warn", "quarantine", "block")


@dataclass(frozen=True)
class Rule:
    """Something that must hold for each row. A row for which it is not true, and not null, breaks it."""

    name: str
    holds: Callable[[], Column]
    """Made when it is used: a Column needs a Spark that runs."""
    severity: Severity = "quarantine"
    """warn: counted. quarantine: the row goes to `<table>__rejected`. block: nothing of the run is published."""

    def __post_init__(self) -> None:
        if self.severity not in SEVERITIES:
            raise UnknownChoiceError("severity", self.severity, SEVERITIES)


@dataclass(frozen=True)
class CheckContext:
    """What a check of a whole table may look at, on the run's branch."""

    rows: DataFrame
    """The table's rows that this run wrote: its partitions, or all of them if it has none."""
    table: Callable[[str], DataFrame]
    """Any table of the lake as the run's branch has it: its rows of the run's partitions, if it has such."""
    before: Mapping[str, Any]
    """Facts of the table before the run: `rows`, or nothing at all if it was not there."""
    total: int | None
    """How many rows the whole table has now."""
    now: datetime


@dataclass(frozen=True)
class Finding:
    """What a check saw."""

    passed: bool
    broken: int = 0
    """How many rows, keys or whatever it counts are wrong."""
    told: str = ""
    rows: tuple[str, ...] = ()
    """Some of them, as JSON."""


@dataclass(frozen=True)
class Check:
    """Something that must hold for a table as a whole, looked at before the run is published."""

    name: str
    look: Callable[[CheckContext], Finding]
    severity: Literal["warn", "block"] = "block"

    def __post_init__(self) -> None:
        if self.severity not in ("warn", "block"):
            raise UnknownChoiceError("severity of a check", self.severity, ("warn", "block"))


@dataclass(frozen=True)
class Outcome:
    """What came of one rule or check in one run."""

    table: str
    name: str
    severity: str
    passed: bool
    broken: int = 0
    told: str = ""
    rows: tuple[str, ...] = ()
    """Some of what broke it, as JSON, where that stopped the run: it is written nowhere else."""

    @property
    def blocks(self) -> bool:
        return not self.passed and self.severity == "block"
