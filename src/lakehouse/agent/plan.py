"""What a model may propose: a plan in the terms of the semantic layer, or a statement. A plan becomes a reading like any other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import Literal

from pydantic import BaseModel, Field

from lakehouse.agent import reading as terms
from lakehouse.agent.lexicon import paths_from
from lakehouse.agent.periods import Period, span_label
from lakehouse.agent.reading import AGGREGATES, LIST, ROWS, Condition, Reading
from lakehouse.agent.refusal import Refusal
from lakehouse.agent.semantics import BOOLEAN, KEY, NUMBER, TEXT, TIME, Dimension, Entity, Metric, Semantics

_NUMBER = re.compile(r"-?\d{1,30}(\.\d{1,30})?")
_AGGREGATE = re.compile(r"(sum|avg|min|max|median|count)\(\s*(distinct\s+)?(\w+)\s*\)", re.IGNORECASE)


class PlannedCondition(BaseModel):
    """What a row must meet."""

    field: str = Field(description="A field of the entity, or ENTITY.FIELD of one that it belongs to.")
    operator: Literal["=", "<>", "<", "<=", ">", ">=", "between", "missing", "true", "false"] = "="
    values: list[str] = Field(default_factory=list, description="With = any of them, with <> none; between has two.")


class PlannedGroup(BaseModel):
    """What the numbers are grouped by."""

    field: str = Field(description="A field of the entity, or ENTITY.FIELD of one that it belongs to.")
    grain: Literal["", "day", "week", "month", "quarter", "year", "hour of day", "day of week"] = Field(
        "", description="Only of a time."
    )


class Plan(BaseModel):
    """A question in the terms of the semantic layer."""

    entity: str
    metrics: list[str] = Field(
        default_factory=list,
        description="Names of metrics, `count` for the number of rows, or an aggregate such as avg(FIELD) or count(distinct FIELD).",
    )
    groups: list[PlannedGroup] = Field(default_factory=list)
    conditions: list[PlannedCondition] = Field(default_factory=list)
    start: date | None = Field(None, description="First calendar day, if the question has a period.")
    end: date | None = Field(None, description="Calendar day after the last one.")
    order: Literal["", "highest", "lowest"] = Field("", description="By the first metric.")
    limit: int = Field(0, ge=0, le=1000, description="Maximum number of groups; 0: all.")


class Proposal(BaseModel):
    """How to answer the question. Give exactly one of plan, sql and refusal; a plan where it can say what is asked."""

    reading: str = Field("", description="How you understood the question, in one sentence.")
    plan: Plan | None = None
    sql: str = Field("", description="One SELECT in Spark SQL over the tables given, if a plan cannot say it.")
    refusal: str = Field("", description="Why the data cannot answer the question.")


def to_reading(plan: Plan, layer: Semantics) -> Reading:
    """The reading that a plan means; raises Refusal for a name that the layer does not have."""
    return _Compiler(plan, layer).reading()


class _Compiler:
    def __init__(self, plan: Plan, layer: Semantics) -> None:
        if plan.entity not in layer.entities:
            raise Refusal(f"There is no entity {plan.entity!r}.", sorted(layer.entities)[:20])
        self._plan, self._layer, self._entity = plan, layer, layer.entities[plan.entity]
        self._paths = dict(paths_from(layer, self._entity))

    def reading(self) -> Reading:
        plan = self._plan
        metrics = tuple(self._metric(text) for text in plan.metrics)
        groups = tuple(self._group(group) for group in plan.groups)
        time = self._time() if plan.start or plan.end else None
        return Reading(
            self._entity,
            shape=AGGREGATES if metrics else LIST if groups else ROWS,
            metrics=metrics,
            groups=groups,
            conditions=tuple(self._condition(condition) for condition in plan.conditions),
            period=Period(plan.start, plan.end, _label(plan.start, plan.end)) if time else None,
            time=time,
            descending=plan.order == "highest" if plan.order and metrics and groups else None,
            limit=plan.limit,
        )

    def _metric(self, text: str) -> Metric:
        if text in self._entity.metrics:
            return self._entity.metrics[text]
        if text in ("count", "count(*)"):
            return self._entity.count
        if (call := _AGGREGATE.fullmatch(text)) is None:
            raise Refusal(f"There is no metric {text!r}.", ["count", *self._entity.metrics])
        aggregate, distinct, name = call[1].lower(), bool(call[2]), call[3]
        dimension = self._own(name)
        if dimension.kind != NUMBER and aggregate not in ("count", "min", "max"):
            raise Refusal(f"{name} is no number, so it has no {aggregate}.", _numbers(self._entity))
        inner = f"DISTINCT {dimension.sql}" if distinct else dimension.sql
        return Metric(f"{aggregate}_{name}", f"{aggregate}({inner})", unit=dimension.unit if not distinct else "")

    def _own(self, name: str) -> Dimension:
        if name not in self._entity.dimensions:
            raise Refusal(f"{self._entity.name} has no field {name!r}.", list(self._entity.dimensions)[:40])
        return self._entity.dimensions[name]

    def _field(self, text: str) -> terms.Field:
        owner, _, name = text.rpartition(".")
        if owner in ("", self._entity.name, self._entity.table):
            return terms.Field(self._own(name))
        if owner not in self._paths:
            raise Refusal(f"{self._entity.name} does not belong to {owner!r}.", sorted(self._paths))
        joined = self._layer.entities[owner]
        if name not in joined.dimensions:
            raise Refusal(f"{owner} has no field {name!r}.", list(joined.dimensions)[:40])
        return terms.Field(joined.dimensions[name], self._paths[owner])

    def _group(self, group: PlannedGroup) -> terms.Field:
        field = self._field(group.field)
        if group.grain and field.dimension.kind != TIME:
            raise Refusal(f"{group.field} is no time, so it has no {group.grain}.", _times(self._entity))
        return terms.Field(field.dimension, field.path, group.grain)

    def _time(self) -> Dimension:
        name = self._entity.time
        if not name:
            raise Refusal(f"{self._entity.name} has no one time that start and end are about.", ["Write sql instead."])
        return self._entity.dimensions[name]

    def _condition(self, condition: PlannedCondition) -> Condition:
        field, operator, values = self._field(condition.field), condition.operator, tuple(condition.values)
        kind, count = field.dimension.kind, len(values)
        if kind == TIME and operator != "missing":
            raise Refusal(f"{condition.field} is a time: use start and end, or write sql.")
        if operator in ("true", "false") and kind != BOOLEAN:
            raise Refusal(f"{condition.field} is no boolean.")
        expected = {"missing": 0, "true": 0, "false": 0, "between": 2, "=": max(count, 1), "<>": max(count, 1)}
        if count != expected.get(operator, 1):
            raise Refusal(f"The operator {operator} of {condition.field} does not have {count} values.")
        # Numbers are written into the statement as they are, so they must be nothing else.
        if kind in (NUMBER, KEY) and not all(_NUMBER.fullmatch(value) for value in values):
            raise Refusal(f"{condition.field} is compared with numbers only, without units.")
        if operator in ("<", "<=", ">", ">=", "between") and kind == TEXT:
            raise Refusal(f"{condition.field} is a text, which has no order here.")
        return Condition(field, operator, values)


def _label(start: date | None, end: date | None) -> str:
    if start and end:
        return span_label(start, end)
    return f"since {start}" if start else f"before {end}"


def _numbers(entity: Entity) -> Sequence[str]:
    return [name for name, dimension in entity.dimensions.items() if dimension.kind == NUMBER]


def _times(entity: Entity) -> Sequence[str]:
    return [dimension.name for dimension in entity.times()]
