"""The reading of a question: a frozen plan in the terms of the semantic layer, and one sentence that says it."""

from __future__ import annotations

from dataclasses import field

from lakehouse.agent.periods import Period
from lakehouse.agent.semantics import Dimension, Entity, Join, Metric
from lakehouse.core.dataclass import dataclass

#: Parts of time that rows are grouped by; the last two repeat.
GRAINS = ("day", "week", "month", "quarter", "year", "hour of day", "day of week")

AGGREGATES, LIST, ROWS = "aggregates", "list", "rows"


@dataclass(frozen=True)
class Field:
    """A dimension, and the joins that lead to it from the entity of the question."""

    dimension: Dimension
    path: tuple[Join, ...] = ()
    grain: str = ""
    """One of `GRAINS`; only of a time."""
    identity: Dimension | None = field(default=None, compare=False)
    """The key of the entity that it stands for: "by customer" is one group for each, whatever their names."""

    @property
    def name(self) -> str:
        """The name of its column in the result."""
        return self.grain.replace(" ", "_") or self.dimension.name

    @property
    def label(self) -> str:
        owner = f"{self.path[-1].to_entity} " if self.path else ""
        return f"{self.grain} of {self.dimension.name}" if self.grain else f"{owner}{self.dimension.name}"


@dataclass(frozen=True)
class Condition:
    """What a row must meet."""

    field: Field
    operator: str
    """=, <>, <, <=, >, >=, between, missing, true or false. A list of values with = means any, with <> none of them."""
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        label = self.field.label
        if self.operator in ("missing", "true", "false"):
            return f"{label} is {self.operator}"
        if self.operator == "between":
            return f"{label} is from {self.values[0]} to {self.values[1]}"
        joined = " or ".join(self.values)
        return f"{label} {_OPERATORS.get(self.operator, self.operator)} {joined}"


_OPERATORS = {"=": "is", "<>": "is not"}


@dataclass(frozen=True)
class Threshold:
    """What the metric of a group must meet."""

    metric: Metric
    operator: str
    values: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.metric.name} {self.operator} {' and '.join(self.values)}"


@dataclass(frozen=True)
class Comparison:
    """What the answer is compared with: another period, or the tables at a WHEN or on a branch."""

    period: Period | None = None
    when: str = ""
    branch: str = ""

    @property
    def label(self) -> str:
        return self.period.label if self.period else f"branch {self.branch}" if self.branch else self.when


@dataclass(frozen=True)
class Reading:
    """What a question asks for."""

    entity: Entity
    shape: str = AGGREGATES
    """aggregates, list (the values of dimensions) or rows."""
    metrics: tuple[Metric, ...] = ()
    groups: tuple[Field, ...] = ()
    conditions: tuple[Condition, ...] = ()
    period: Period | None = None
    time: Dimension | None = None
    """The time that the period is about."""
    thresholds: tuple[Threshold, ...] = ()
    descending: bool | None = None
    """The order by metric; None: by group."""
    limit: int = 0
    """Maximum number of groups; 0: all."""
    ties: bool = False
    """Whether groups with the value of the last one count as well."""
    share: str = ""
    """share or percentage: of the total, or of the rows without `part`."""
    part: tuple[Condition, ...] = ()
    """The conditions of the part whose share is asked for."""
    comparison: Comparison | None = None
    when: str = ""
    """Read the tables as of this WHEN."""
    of_groups: str = ""
    """Aggregate over the groups: avg, min, max, sum, median of their metric, or count of them."""
    corrections: tuple[tuple[str, str], ...] = ()
    """Words of the question and what they are read as."""

    def sentence(self) -> str:
        """The reading in one sentence."""
        parts = [self._subject(), f"of {self.entity.table}"]
        if self.groups and self.shape == AGGREGATES and not self.of_groups:
            parts.append("by " + " and ".join(group.label for group in self.groups))
        if self.conditions:
            parts.append("where " + " and ".join(map(str, self.conditions)))
        if self.period and self.time:
            preposition = "in " if self.period.start and self.period.end else ""
            parts.append(f"with {self.time.name} {preposition}{self.period.label}")
        if self.thresholds:
            parts.append("with " + " and ".join(map(str, self.thresholds)))
        if self.when:
            parts.append(f"as of {self.when}")
        if self.comparison:
            parts.append(f"compared with {self.comparison.label}")
        text = " ".join(parts)
        return f"{text[0].upper()}{text[1:]}{self._order()}.{self._corrections()}"

    def _subject(self) -> str:
        fields = ", ".join(group.label for group in self.groups)
        if self.shape == ROWS:
            return "the rows"
        if self.shape == LIST:
            return f"the distinct {fields}"
        metrics = ", ".join(described(metric) for metric in self.metrics)
        if self.of_groups == "count":
            return f"the number of distinct {fields}"
        if self.of_groups:
            names = " and ".join(group.name for group in self.groups)
            return f"the {_WORDS[self.of_groups]} over the {names}s that have rows, of {metrics},"
        if self.part:
            return f"the {self.share} of {metrics} where " + " and ".join(map(str, self.part))
        return f"{metrics} and its {self.share} of the total" if self.share else metrics

    def _order(self) -> str:
        if self.descending is None:
            return ""
        order = "highest" if self.descending else "lowest"
        many = (
            f", the {self.limit} {order}" if self.limit > 1 else f", the {order}" if self.limit else f", {order} first"
        )
        return f"{many} (and ties)" if self.ties else many

    def _corrections(self) -> str:
        read = [f'"{word}" as "{meant}"' for word, meant in self.corrections]
        return f" I read {' and '.join(read)}." if read else ""


_WORDS = {"avg": "average", "min": "lowest", "max": "highest", "sum": "total", "median": "median"}


def described(metric: Metric) -> str:
    """The name of a metric with its expression, unless that says no more."""
    shown = f" in {metric.unit}" if metric.unit else ""
    return f"{metric.name} ({metric.expression}{shown})"
