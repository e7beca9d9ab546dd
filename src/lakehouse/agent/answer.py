"""The answer to a question, and the chart that suits it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from lakehouse.core.dataclass import dataclass
from lakehouse.core.jsonable import jsonable

_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
_MOST_BARS = 50


@dataclass(frozen=True)
class Answer:
    """What `Lake.ask` returns: rows with the statement that gave them, or the reason why there are none."""

    answered: bool
    reading: str = ""
    """How the question was understood."""
    sql: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    snapshots: Mapping[str, str] = field(default_factory=dict)
    """The snapshot of each table that was read; the statement with `VERSION AS OF` them gives the same rows again."""
    chart: Mapping[str, Any] | None = None
    """A Vega-Lite specification; None if a chart would show nothing."""
    reason: str = ""
    """Why the question was refused."""
    choices: tuple[str, ...] = ()
    """What to write instead."""

    def as_dict(self) -> dict[str, Any]:
        """The answer as JSON has it."""
        return {
            "answered": self.answered,
            "reading": self.reading,
            "sql": self.sql,
            "columns": list(self.columns),
            "rows": [[jsonable(value) for value in row] for row in self.rows],
            "snapshots": dict(self.snapshots),
            "chart": self.chart,
            "reason": self.reason,
            "choices": list(self.choices),
        }


def suggest_chart(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], groups: int, title: str
) -> dict[str, Any] | None:
    """A bar chart of one group and one number, a line if the group is a time; None for anything else."""
    if groups != 1 or not 1 < len(rows) <= 1_000 or len(columns) < 2:
        return None
    if not all(isinstance(row[1], int | float | Decimal) or row[1] is None for row in rows):
        return None
    is_time = all(isinstance(row[0], date | datetime) for row in rows)
    group = {"field": columns[0], "type": "temporal" if is_time else "nominal"}
    if not is_time:
        group["sort"] = "null"  # in the order of the rows
    return {
        "$schema": _SCHEMA,
        "title": title,
        "data": {"values": [dict(zip(columns, map(jsonable, row), strict=True)) for row in rows]},
        "mark": "line" if is_time else "bar",
        "encoding": {
            "x": {**group, "sort": None} if not is_time else group,
            "y": {"field": columns[1], "type": "quantitative"},
        },
    }


def bar_lines(answer: Answer, width: int = 40) -> list[str]:
    """The chart of an answer as lines of text: one bar for each row; nothing if it has no chart."""
    if answer.chart is None or len(answer.rows) > _MOST_BARS:
        return []
    numbers = [float(row[1] or 0) for row in answer.rows]
    longest = max(map(abs, numbers)) or 1.0
    labels = [str(jsonable(row[0])) for row in answer.rows]
    wide = max(map(len, labels))
    return [
        f"{label:<{wide}} {'█' * round(abs(number) / longest * width)} {jsonable(row[1])}"
        for label, number, row in zip(labels, numbers, answer.rows, strict=True)
    ]


def refusal_lines(answer: Answer) -> list[str]:
    """Why a question was refused, and what to write instead."""
    return [answer.reason, *(f"  {choice}" for choice in answer.choices)]
