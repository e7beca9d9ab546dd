"""Finishes a parsed question: checks that its parts fit together, finds the time that it is about, continues a conversation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date

from lakehouse.agent.elements import Element
from lakehouse.agent.lexicon import Lexicon
from lakehouse.agent.parser import AGGREGATE_WORDS, THE_TIME, Draft
from lakehouse.agent.periods import Period, of_unit
from lakehouse.agent.reading import AGGREGATES, GRAINS, LIST, ROWS, Comparison, Condition, Field, Reading
from lakehouse.agent.refusal import Refusal
from lakehouse.agent.semantics import Dimension, Metric
from lakehouse.agent.words import phrase

#: Parts of time that come again: their numbers are of many days.
_REPEATING = ("hour of day", "day of week")
#: Parts of time of which a follow-up has one: "by week" after "by month".
_CALENDAR = tuple(grain for grain in GRAINS if grain not in _REPEATING)


class Finisher:
    """Turns a parsed question into a reading: checks that its parts fit together, and finds the time that it is about."""

    def __init__(self, draft: Draft, lexicon: Lexicon, today: date) -> None:
        self._draft, self._entity, self._today = draft, lexicon.entity, today

    def reading(self) -> Reading:
        """The reading; raises Refusal."""
        draft = self._draft
        self._check_heads()
        is_aggregate = draft.metrics or draft.thresholds or draft.of_groups
        if not is_aggregate and self._counts_rows():
            is_aggregate = draft.metrics = [self._entity.count]
        reading = self._aggregates() if is_aggregate else self._listed()
        reading = self._compared(self._shared(reading))
        return self._timed(reading)

    def _counts_rows(self) -> bool:
        """ "orders on 2026-01-14" are counted, as "trips on 2026-01-14" are, which is a metric of that name."""
        draft = self._draft
        says_which = draft.conditions or draft.period or draft.groups
        return bool(draft.mentions and says_which and not draft.subjects and not draft.lists)

    def _check_heads(self) -> None:
        draft = self._draft
        for is_open, word in ((draft.counts, "how many"), (draft.aggregate, draft.aggregate), (draft.extreme, "most")):
            if is_open:
                raise Refusal(f'I do not know what "{word}" is about.', self._metric_names())
        fixed = [condition.field for condition in draft.conditions if condition.operator == "="]
        if twice := [near for near in fixed if fixed.count(near) > 1]:
            raise Refusal(f"{twice[0].label} cannot have two values.", ['… with "or"'])
        for near in draft.both:
            if near not in (*draft.groups, *draft.subjects):
                name = near.dimension.name
                raise Refusal(f"Each {name} on its own, or together?", [f"… by {name}", '… with "or"'])

    def _aggregates(self) -> Reading:
        draft = self._draft
        metrics = draft.metrics or [threshold.metric for threshold in draft.thresholds]
        if draft.subjects and draft.groups and draft.of_groups != "count":
            raise Refusal("Two ways to group.", [f"by {group.name}" for group in (*draft.subjects, *draft.groups)])
        groups = _named_apart(tuple(dict.fromkeys(self._identified((*draft.subjects, *draft.groups)))))
        descending, limit, of_groups = draft.descending, draft.limit, draft.of_groups
        if (draft.is_extreme_value and not draft.subjects) or of_groups not in ("", "count"):
            descending, limit = None, 0
        self._check_groups(metrics[0].name if metrics else "", groups)
        self._check_rank(metrics, groups, descending, limit)
        return Reading(
            self._entity,
            AGGREGATES,
            tuple(dict.fromkeys(metrics)),
            groups,
            tuple(draft.conditions),
            thresholds=tuple(draft.thresholds),
            descending=descending,
            limit=limit,
            ties=limit == 1 and bool(draft.subjects),
            when=draft.when,
            of_groups=of_groups,
        )

    def _identified(self, groups: Sequence[Field]) -> Iterator[Field]:
        """The groups, with the key of each that stands for an entity; where they are counted, the key alone."""
        for group in groups:
            if group.identity is not None:
                yield Field(group.identity, group.path)
            if group.identity is None or self._draft.of_groups != "count":
                yield replace(group, identity=None)  # a follow-up finds the key beside it

    def _check_groups(self, metric: str, groups: Sequence[Field]) -> None:
        draft, of_groups = self._draft, self._draft.of_groups
        if of_groups not in ("", "count") and not (draft.per and groups):
            word = AGGREGATE_WORDS[of_groups]
            raise Refusal(f"Of what is the {word} {metric} taken?", [f"{word} daily {metric}", f"{metric} by …"])
        repeating = [group for group in groups if group.grain in _REPEATING or "hour" in phrase(group.dimension.name)]
        if of_groups not in ("", "count") and repeating:
            raise Refusal(
                f"Over the {metric} of all days in each {repeating[0].name}, or over those of each day?",
                [f"{metric} by {repeating[0].name}", f"{AGGREGATE_WORDS[of_groups]} daily {metric}"],
            )
        if of_groups == "count" and draft.metrics:
            raise Refusal("I count one thing at a time.")

    def _check_rank(
        self, metrics: Sequence[Metric], groups: Sequence[Field], descending: bool | None, limit: int
    ) -> None:
        draft = self._draft
        if draft.subjects and draft.metrics and descending is None and not draft.lists and not draft.of_groups:
            subject = draft.subjects[0].name
            raise Refusal(f"I do not know how {subject} belongs to the question.", [f"by {subject}"])
        if (limit or descending is not None) and not groups:
            raise Refusal("There is nothing to rank.", self._metric_names())
        if descending is not None and len(metrics) > 1:
            raise Refusal("By which of the numbers are they ranked?", [metric.name for metric in metrics])

    def _listed(self) -> Reading:
        draft = self._draft
        if draft.descending is not None or draft.groups or draft.share:
            raise Refusal("I do not know which number you ask for.", self._metric_names())
        if draft.subjects and (draft.lists or draft.asks_which) and not draft.limit:
            groups = tuple(replace(s, grain="day") if s.dimension.type == "date" else s for s in draft.subjects)
            return Reading(self._entity, LIST, (), groups, tuple(draft.conditions), when=draft.when)
        if draft.lists and draft.mentions and not draft.subjects:
            return Reading(self._entity, ROWS, (), (), tuple(draft.conditions), limit=draft.limit, when=draft.when)
        name = self._entity.name
        raise Refusal(
            "I do not know which number you ask for.", [f"how many {name}", f"list {name}", *self._metric_names()]
        )

    def _shared(self, reading: Reading) -> Reading:
        draft = self._draft
        if not draft.share:
            return reading
        metrics = reading.metrics
        if len(metrics) != 1 or not metrics[0].adds_up or reading.of_groups or metrics[0].filter:
            raise Refusal("A share is of one number that adds up.", self._metric_names())
        if reading.groups and reading.conditions:
            group, number = reading.groups[0].name, metrics[0].name
            raise Refusal(
                f"The share within each {group}, or of each {group} in the total?",
                [f"share of {number} by {group}", f"{number} by {group} and {reading.conditions[0].field.name}"],
            )
        if reading.groups:
            return replace(reading, share=draft.share)
        if not reading.conditions:
            raise Refusal(f"The share of what in {metrics[0].name}?", [f"share of {metrics[0].name} by …"])
        return replace(reading, share=draft.share, part=reading.conditions, conditions=())

    def _compared(self, reading: Reading) -> Reading:
        draft = self._draft
        period = draft.period
        if draft.compared is None:
            return replace(reading, period=period)
        if len(reading.metrics) != 1 or reading.share or reading.of_groups or reading.ties or reading.thresholds:
            raise Refusal("I compare one number at a time.", self._metric_names())
        if draft.compared.kind == "when":
            return replace(reading, period=period, comparison=Comparison(when=draft.compared.detail))
        if draft.compared.kind == "branch":
            if reading.when:
                raise Refusal("A branch is compared as it is now.", ["… compared with branch …"])
            return replace(reading, period=period, comparison=Comparison(branch=draft.compared.detail.lower()))
        period, other = self._periods(period, draft.compared)
        return replace(reading, period=period, comparison=Comparison(period=other))

    def _periods(self, period: Period | None, compared: Element) -> tuple[Period, Period]:
        """The period of the question and the one that it is compared with."""
        other = compared.period
        if other.start is None or other.end is None:
            raise Refusal(f"{other.label} has no end to compare.")
        if period is None:
            current = of_unit(other.unit, self._today) if other.unit else None
            if current is None or current.previous() != other:
                raise Refusal(f"What is compared with {other.label}?", [f"this month compared with {other.label}"])
            return current, other
        if compared.detail != "previous":
            return period, other
        if period.unit != other.unit:
            raise Refusal(f"{period.label} is not a {other.unit}.", [f"{period.label} compared with …"])
        return period, period.previous()

    def _timed(self, reading: Reading) -> Reading:
        """Find the time that periods and parts of time are about."""
        needs = reading.period is not None or any(group.dimension is THE_TIME for group in reading.groups)
        if not needs:
            return reading
        time = self._draft.time or self._time()
        groups = tuple(
            replace(group, dimension=time) if group.dimension is THE_TIME else group for group in reading.groups
        )
        for group in groups:
            if group.grain == "hour of day" and group.dimension.type == "date":
                raise Refusal(f"{group.dimension.name} has no hours.")
        return replace(reading, groups=groups, time=time)

    def _time(self) -> Dimension:
        if self._entity.time:
            return self._entity.dimensions[self._entity.time]
        times = self._entity.times()
        if len(times) != 1:
            reason = f"{self._entity.table} has no time." if not times else "Which time?"
            raise Refusal(reason, [f"{time.name} in …" for time in times])
        return times[0]

    def _metric_names(self) -> list[str]:
        return list(self._entity.metrics)[:8]


def merge(previous: Reading, draft: Draft, adds: bool = False) -> Draft:
    """A follow-up on top of the reading before it: what it says replaces, the rest stays. Conditions are per field.

    Args:
        adds: its groups come besides those before: "and by month".
    """
    if draft.lists or draft.of_groups or draft.asks_which:
        raise Refusal("This follow-up is a question of its own.")
    groups = [*draft.subjects, *draft.groups] or list(previous.groups)
    if adds and draft.groups and previous.groups:
        if previous.limit:
            labels = " and ".join(group.label for group in groups)
            raise Refusal(
                "The highest of all, or within each group?", [f"by {labels} instead", "Ask the whole question."]
            )
        groups = [*_kept(previous.groups, groups), *groups]
    changed = {condition.field for condition in draft.conditions}
    before = (*previous.conditions, *previous.part)
    _check_bounds(before, draft.conditions)
    conditions = [condition for condition in before if condition.field not in changed]
    merged = replace(draft, subjects=[], groups=groups, conditions=[*conditions, *draft.conditions])
    merged.metrics = draft.metrics or list(previous.metrics)
    merged.thresholds = draft.thresholds or list(previous.thresholds)
    merged.period = draft.period or previous.period
    merged.time = draft.time or (previous.time if previous.period else None)
    merged.when = draft.when or previous.when
    merged.share = draft.share or previous.share
    if draft.descending is None:
        merged.descending, merged.limit = previous.descending, draft.limit or previous.limit
    if previous.of_groups or previous.shape != AGGREGATES or previous.comparison:
        raise Refusal("I cannot continue from that question.", ["Ask the whole question."])
    return merged


def _named_apart(groups: Sequence[Field]) -> tuple[Field, ...]:
    """The groups under different names: of two called `name`, that of another entity has its entity before it."""
    names = [group.name for group in groups]
    return tuple(
        replace(group, dimension=_owned(group)) if group.path and names.count(group.name) > 1 else group
        for group in groups
    )


def _owned(group: Field) -> Dimension:
    owner = "_".join(phrase(group.path[-1].to_entity.replace(".", "_")))
    return replace(group.dimension, name=f"{owner}_{group.dimension.name}", expression=group.dimension.sql)


def _kept(before: Sequence[Field], added: Sequence[Field]) -> list[Field]:
    """The groups before that stay besides added ones: one part of a calendar replaces another."""
    grains = {group.grain for group in added if group.grain}
    if grains.intersection(_CALENDAR):
        grains.update(_CALENDAR)
    return [group for group in before if group.grain not in grains]


def _check_bounds(before: Sequence[Condition], now: Sequence[Condition]) -> None:
    """ "under 20 miles" after "over 10 miles" may replace it, or be another bound."""
    for old in before:
        for new in now:
            if (
                old.field == new.field
                and {old.operator[0], new.operator[0]} == {"<", ">"}
                and "<>" not in (old.operator, new.operator)
            ):
                raise Refusal(
                    f"Besides {old}, or instead?", [f"{old.field.label} between {old.values[0]} and {new.values[0]}"]
                )
