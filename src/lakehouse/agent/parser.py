"""Parses the elements of a question into a reading. Every element has to be used; what does not fit is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from datetime import date

from lakehouse.agent.elements import Element
from lakehouse.agent.lexicon import Lexicon, Name, entity_phrases
from lakehouse.agent.periods import Period
from lakehouse.agent.reading import Condition, Field, Threshold
from lakehouse.agent.refusal import Refusal
from lakehouse.agent.semantics import BOOLEAN, KEY, NUMBER, TEXT, TIME, Dimension, Metric
from lakehouse.agent.words import Token, phrase
from lakehouse.core.dataclass import dataclass

#: Stands for the time of the entity until the whole question is parsed, which may name another one.
THE_TIME = Dimension("time", kind=TIME)
_SKIPPED = ("filler", "link")
#: What columns are called in which something begins or ends.
_DIRECTIONS = {
    "from": {"origin", "source", "pickup", "departure", "start", "from"},
    "to": {"destination", "target", "dropoff", "arrival", "end", "to"},
}
AGGREGATE_WORDS = {"sum": "total", "avg": "average", "max": "highest", "min": "lowest", "median": "median"}


@dataclass
class Draft:
    """A reading in the making."""

    metrics: list[Metric] = field(default_factory=list)
    groups: list[Field] = field(default_factory=list)
    subjects: list[Field] = field(default_factory=list)
    """What "which", "top 5" or "list" asks for, or a name before "with"."""
    conditions: list[Condition] = field(default_factory=list)
    thresholds: list[Threshold] = field(default_factory=list)
    period: Period | None = None
    time: Dimension | None = None
    limit: int = 0
    descending: bool | None = None
    share: str = ""
    compared: Element | None = None
    when: str = ""
    lists: bool = False
    asks_which: bool = False
    counts: bool = False
    """After "how many", until the name that is counted."""
    distinct: bool = False
    aggregate: str = ""
    """After "average", until the name that is aggregated."""
    extreme: str = ""
    """After "highest" or "most", until the name that is meant."""
    of_groups: str = ""
    is_extreme_value: bool = False
    """The metric is the highest or lowest value itself."""
    per: bool = False
    mentions: bool = False
    negated: bool = False
    both: list[Field] = field(default_factory=list)
    """Fields of which values were joined by "and"."""
    adds: bool = False
    """A follow-up that adds groups rather than replaces them."""


class Parser:
    """Parses one list of elements, once."""

    def __init__(self, elements: Sequence[Element], tokens: Sequence[Token], lexicon: Lexicon, today: date) -> None:
        self._elements, self._tokens, self._lexicon, self._today = elements, tokens, lexicon, today
        self._place = 0
        # After "and", until the next name.
        self._is_listing = False
        self._is_value_before = False
        self.draft = Draft()
        self._rules: dict[str, Callable[[Element], None]] = {
            "count": self._count,
            "distinct": self._distinct,
            "aggregate": self._aggregate,
            "extreme": self._extreme,
            "common": self._common,
            "top": self._top,
            "by": self._by,
            "sort": self._sort,
            "direction": self._direction,
            "share": self._share,
            "compare": self._compare,
            "operator": self._operator,
            "between": self._operator,
            "not": self._not,
            "without": self._without,
            "which": self._which,
            "list": self._list,
            "grain": self._grain,
            "hour": self._hour,
            "each": self._each,
            "row": self._row,
            "name": self._named,
            "value": self._value,
            "number": self._number,
            "period": self._period,
            "when": self._when,
            "branch": self._branch,
        }

    # ---- reading elements ----------------------------------------------------------------------------------------

    def parse(self) -> Draft:
        """Use every element; raises Refusal."""
        while (element := self._next()) is not None:
            if element.kind in _SKIPPED:
                continue
            if element.kind == "and":
                self._is_listing = True
                continue
            rule = self._rules.get(element.kind)
            if rule is None:
                raise Refusal(f'I do not know what "{self._text(element)}" means here.', unknown=[self._text(element)])
            negated = self.draft.negated
            rule(element)
            if negated and self.draft.negated:
                raise Refusal('I do not know what "not" is about.')
            self._is_value_before = element.kind == "value"
            self._is_listing = self._is_listing and element.kind in ("aggregate", "count", "extreme", "distinct")
        if self.draft.negated:
            raise Refusal('I do not know what "not" is about.')
        return self.draft

    def _next(self) -> Element | None:
        if self._place >= len(self._elements):
            return None
        self._place += 1
        return self._elements[self._place - 1]

    def _peek(self, skip: Sequence[str] = _SKIPPED) -> Element | None:
        """The next element that is not skipped, without using it."""
        for element in self._elements[self._place :]:
            if element.kind not in skip:
                return element
        return None

    def _take(self, *kinds: str, skip: Sequence[str] = _SKIPPED) -> Element | None:
        """Use the next element if it is of one of the kinds."""
        element = self._peek(skip)
        if element is None or element.kind not in kinds:
            return None
        self._place = self._elements.index(element) + 1
        return element

    def _text(self, element: Element) -> str:
        return " ".join(token.text for token in self._tokens[element.start : element.end])

    # ---- heads: count, average, highest, top, which, list ---------------------------------------------------------

    def _count(self, element: Element) -> None:
        self.draft.counts = True

    def _distinct(self, element: Element) -> None:
        if not self.draft.counts and not self.draft.lists:
            raise Refusal(f'"{self._text(element)}" goes with "how many" or "list".')
        self.draft.distinct = True

    def _aggregate(self, element: Element) -> None:
        if self.draft.aggregate:
            raise Refusal(f'Two aggregates in a row: "{self.draft.aggregate}" and "{self._text(element)}".')
        self.draft.aggregate = element.detail

    def _extreme(self, element: Element) -> None:
        if self.draft.extreme or self.draft.descending is not None:
            raise Refusal(f'I do not know what "{self._text(element)}" is about here.')
        self.draft.extreme = element.detail

    def _common(self, element: Element) -> None:
        subject = self._subject_at("most common")
        self.draft.subjects.append(subject)
        self._add_metric(self._lexicon.entity.count)
        self.draft.descending = element.detail == "desc"
        self.draft.limit = self.draft.limit or 1

    def _top(self, element: Element) -> None:
        number = self._take("number")
        if number is None:
            word = self._text(element)
            raise Refusal(f'How many does "{word}" ask for?', [f"{word} 5", f"{word} 10"])
        self._limit(number)
        self.draft.descending = element.detail == "desc"
        following = self._peek()
        if following is not None and (
            following.kind == "grain" or (following.kind == "name" and following.name.fields)
        ):
            self.draft.subjects.append(self._subject_at(self._text(element)))
        elif following is not None and following.kind == "name":
            raise Refusal(f"I can rank groups, not single {self._text(following)}.", ["top 5 days by …"])

    def _limit(self, number: Element) -> None:
        if self.draft.limit or not number.detail.isdigit() or not 0 < int(number.detail) <= 10_000:
            raise Refusal(f"{number.detail} is not a number of results.")
        self.draft.limit = int(number.detail)

    def _subject_at(self, head: str) -> Field:
        if self.draft.metrics:
            raise Refusal(f'I cannot rank within "{self.draft.metrics[0].name}".', ["top 5 … by …"])
        element = self._take("name", "grain", "hour")
        if element is None:
            raise Refusal(f'I do not know what "{head}" is about.')
        return self._field_of(element)

    def _which(self, element: Element) -> None:
        following = self._peek(("filler",))
        if following is not None and following.kind in ("grain", "hour", "name") and self._is_subject(following):
            self.draft.asks_which = True
            self._place = self._elements.index(following) + 1
            self.draft.subjects.append(self._field_of(following))

    def _is_subject(self, element: Element) -> bool:
        if element.kind != "name":
            return True
        name = element.name
        return bool(name.field) and not name.metric and name.field.dimension.kind != NUMBER  # type: ignore[union-attr]

    def _list(self, element: Element) -> None:
        self.draft.lists = True

    def _row(self, element: Element) -> None:
        """Rows of the entity: "how many rows", "list the rows"."""
        if not self.draft.counts and not self.draft.lists:
            raise Refusal('"rows" goes with "how many" or "list".')
        if self.draft.counts:
            self._add_metric(self._lexicon.entity.count)
            self.draft.counts = False

    # ---- groups --------------------------------------------------------------------------------------------------

    def _by(self, element: Element) -> None:
        draft = self.draft
        if draft.subjects and draft.descending is not None and not draft.metrics and element.detail != "per":
            return None  # "top 5 hours by revenue": the metric follows
        if draft.limit and not draft.metrics and not draft.subjects:
            raise Refusal("I do not know what to rank.", self._dimension_names())
        following = self._peek()
        if (
            following is not None
            and following.kind == "name"
            and following.name.is_entity
            and not following.name.fields
        ):
            return self._per_row(element)
        draft.per = draft.per or element.detail == "per"
        draft.groups.append(self._group_at(self._text(element)))
        if element.detail == "per" and draft.groups[-1].dimension.kind == NUMBER:
            name = draft.groups[-1].dimension.name
            raise Refusal(f"A number per {name} may be a ratio, which I cannot compute.", [f"by {name}"])
        while (following := self._peek(())) is not None and following.kind == "and":
            after = self._elements[self._place + 1 : self._place + 2]
            if not after or after[0].kind not in ("name", "grain") or not self._can_group(after[0]):
                return None
            self._place += 1
            draft.groups.append(self._group_at("and"))
        return None

    def _can_group(self, element: Element) -> bool:
        return element.kind == "grain" or bool(element.name.fields)

    def _per_row(self, element: Element) -> None:
        """ "average fare per trip" is the average; a sum per trip is another metric."""
        self._take("name")
        is_average = bool(self.draft.metrics) and self.draft.metrics[-1].aggregate in ("avg", "median")
        if element.detail != "per" or not is_average:
            raise Refusal(f"I cannot divide by the number of {self._lexicon.entity.name}.", ["average …"])

    def _group_at(self, head: str) -> Field:
        element = self._take("name", "grain", "hour")
        if element is None:
            raise Refusal(f'I do not know by what "{head}" groups.', self._dimension_names())
        group = self._field_of(element)
        if group.dimension.kind == TIME and not group.grain:
            if group.dimension.type == "date":
                return replace(group, grain="day")
            raise Refusal(f"By which part of {group.dimension.name}?", ["by day", "by month", "by hour of day"])
        return group

    def _field_of(self, element: Element) -> Field:
        if element.kind == "grain":
            return Field(THE_TIME, grain=element.detail)
        if element.kind == "hour":
            self._hour(element)
        name = element.name
        if name.field is None:
            if len(name.fields) > 1:
                choices = [f"{field.label}" for field in name.fields]
                raise Refusal(f'"{self._text(element)}" may be several columns.', choices)
            raise Refusal(f'"{self._text(element)}" is nothing to group by.', self._dimension_names())
        return name.field

    def _grain(self, element: Element) -> None:
        """A bare "day": a subject, as in "days with more than 100 trips" or "how many days"."""
        self._bare_field(Field(THE_TIME, grain=element.detail), element)

    def _hour(self, element: Element) -> None:
        raise Refusal(
            f'"{self._text(element)}" may be the hour of the day, or every hour of every day.',
            ["by hour of day", "by day and hour of day"],
        )

    def _each(self, element: Element) -> None:
        self.draft.groups.append(Field(THE_TIME, grain=element.detail))
        self.draft.per = True

    def _sort(self, element: Element) -> None:
        following = self._peek()
        if following is None or following.kind not in ("name", "count", "aggregate"):
            raise Refusal("I do not know by what to sort.")
        if self.draft.descending is None:
            self.draft.descending = True
        if following.kind == "name" and following.name.metric and following.name.metric in self.draft.metrics[:1]:
            self._take("name")
        elif self.draft.metrics:
            raise Refusal(f'I can sort by {self.draft.metrics[0].name} only, not by "{self._text(following)}".')

    def _direction(self, element: Element) -> None:
        if not self.draft.metrics:
            raise Refusal(f'I do not know what "{self._text(element)}" is about.')
        self.draft.descending = element.detail == "desc"

    # ---- shares and comparisons -----------------------------------------------------------------------------------

    def _share(self, element: Element) -> None:
        self.draft.share = element.detail

    def _compare(self, element: Element) -> None:
        compared = self._take("period", "when", "branch")
        if compared is None or self.draft.compared:
            raise Refusal("I compare with a period, a branch or a snapshot.", ["compared with the previous month"])
        self.draft.compared = compared

    def _period(self, element: Element) -> None:
        if self.draft.period:
            raise Refusal(
                f"Two periods: {self.draft.period.label} and {element.period.label}.",
                [f"{self.draft.period.label} compared with {element.period.label}"],
            )
        if element.detail == "previous" and element.period.unit == "day":
            raise Refusal('"previous day" goes with "compared with".', ["yesterday"])
        self.draft.period = element.period

    def _branch(self, element: Element) -> None:
        name = element.detail
        raise Refusal(
            "A question is about one branch, or compares it with another.",
            [f"lake ask --branch {name} …", f"… compared with branch {name}"],
        )

    def _when(self, element: Element) -> None:
        if self.draft.when:
            raise Refusal(f"Two moments: {self.draft.when} and {element.detail}.")
        self.draft.when = element.detail

    # ---- names ---------------------------------------------------------------------------------------------------

    def _named(self, element: Element) -> None:
        name = element.name
        if (operator := self._operator_ahead(name)) is not None:
            self._apply(name, element, *operator)
        elif self._takes_value(name):
            return
        elif self.draft.aggregate or self.draft.counts or self.draft.extreme:
            self._resolve_head(name, element)
        elif name.metric and (not self.draft.metrics or self._is_listing):
            self._name_metric(name.metric, name, element)
        elif name.is_entity and not name.fields:
            self._mention(name, element)
        elif name.metric and name.metric in self.draft.metrics:
            return
        else:
            self._bare(name, element)

    def _name_metric(self, metric: Metric, name: Name, element: Element) -> None:
        before = self._elements[max(self._elements.index(element) - 1, 0)]
        # "how many days with trips": a day without any is no group.
        is_of_groups = self.draft.of_groups == "count" and before.kind == "link"
        if name.is_entity and (self.draft.lists or is_of_groups):
            self.draft.mentions = True
        else:
            self._add_metric(metric)

    def _mention(self, name: Name, element: Element) -> None:
        self._check_compound(element)
        wants_metric = self.draft.subjects and self.draft.descending is not None or self.draft.share
        if (self.draft.metrics and self._is_listing) or (
            not self.draft.metrics and (wants_metric or self._is_grouped_next())
        ):
            self._add_metric(name.metric or self._lexicon.entity.count)
        self.draft.mentions = True

    def _check_compound(self, element: Element) -> None:
        """Two names side by side, as in "customer orders", may be one thing, the other, or both."""
        before = self._elements[self._elements.index(element) - 1]
        if before.end == element.start and before.kind in ("name", "grain") and not _is_flag(before):
            raise Refusal(f'"{self._text(before)} {self._text(element)}" may mean several things.')

    def _is_grouped_next(self) -> bool:
        following = self._peek()
        return not self.draft.lists and following is not None and following.kind in ("by", "each")

    def _bare(self, name: Name, element: Element) -> None:
        near = name.field
        if near is None and len(name.fields) > 1:
            raise Refusal(f'"{self._text(element)}" may be several columns.', [f.label for f in name.fields])
        if near is None:
            raise Refusal(f'I do not know what "{self._text(element)}" is about here.')
        if near.dimension.kind == NUMBER:
            self._bare_number(near, element)
        else:
            self._bare_field(near, element)

    def _bare_number(self, near: Field, element: Element) -> None:
        dimension = near.dimension
        is_listed = self._is_listing and bool(self.draft.metrics)
        if not near.path and dimension.aggregate and (not self.draft.metrics or is_listed):
            return self._add_metric(self._aggregated(near, dimension.aggregate))
        raise Refusal(
            f'Which aggregate of "{self._text(element)}"?',
            [f"{word} {dimension.name}" for word in ("total", "average", "highest", "lowest")],
        )

    def _bare_field(self, near: Field, element: Element) -> None:
        draft = self.draft
        if near.dimension.kind == BOOLEAN:
            operator = "false" if draft.negated else "true"
            draft.negated = False
            draft.conditions.append(Condition(near, operator))
            return
        if draft.counts:
            draft.counts = draft.distinct = False
            draft.of_groups, draft.groups = "count", [*draft.groups, near]
            return
        if near.dimension.kind == TIME and not near.grain and self._peek() and self._peek().kind == "period":  # type: ignore[union-attr]
            draft.time = near.dimension
            return
        if self._is_value_before and any(c.field == near for c in draft.conditions):
            return  # "cash payments": the name of the value's column
        if self._is_owner_of_next(element):
            return  # "orders of customers in London"
        if draft.metrics and not draft.lists:
            raise Refusal(
                f'I do not know how "{self._text(element)}" belongs to the question.', [f"by {self._text(element)}"]
            )
        draft.subjects.append(near)

    def _is_owner_of_next(self, element: Element) -> bool:
        """Whether a name is that of a joined entity, of which a value follows."""
        following = self._peek()
        if element.kind != "name" or following is None or following.kind != "value":
            return False
        words = phrase(self._text(element))
        joined = [near for near in element.name.fields if near.path]
        owners = {near.path for near in joined if words in entity_phrases(self._lexicon.entity_of(near))}
        return any(option.path in owners for option, _ in following.payload)

    # ---- heads meet names -----------------------------------------------------------------------------------------

    def _resolve_head(self, name: Name, element: Element) -> None:
        draft = self.draft
        if _is_flag(element):
            self._bare_field(self._field_of(element), element)
            return
        following = self._peek(())
        if following is not None and following.kind == "name" and _is_counted(following.name):
            self._check_compound(following)
        if draft.counts:
            metric = self._counted(name, element)
        elif draft.aggregate:
            metric = self._aggregate_of(name, element, draft.aggregate)
        else:
            metric = self._extreme_of(name, element)
        draft.counts, draft.aggregate = False, ""
        if draft.extreme:
            draft.descending, draft.extreme = draft.extreme == "desc", ""
            draft.limit = draft.limit or int(bool(draft.subjects))
        if metric is not None:
            self._add_metric(metric)

    def _counted(self, name: Name, element: Element) -> Metric | None:
        draft, near = self.draft, name.field
        if near and (draft.distinct or not (name.metric or name.is_entity)):
            return self._counted_values(near, element)
        if draft.distinct and not self._lexicon.entity.key:
            raise Refusal(f"I do not know what makes {self._text(element)} different from each other.")
        draft.distinct = False
        metric = name.metric or (self._lexicon.entity.count if name.is_entity else None)
        if metric is None or metric.aggregate not in ("count", "sum"):
            raise Refusal(f'I cannot count "{self._text(element)}".')
        if draft.aggregate in ("avg", "min", "max", "median"):
            draft.of_groups = draft.aggregate
        if draft.extreme and not draft.subjects and not draft.groups:
            draft.of_groups = "max" if draft.extreme == "desc" else "min"
        return metric

    def _counted_values(self, near: Field, element: Element) -> Metric | None:
        """ "how many tickers": the different values; "how many passengers": their sum, if the layer says so."""
        text, is_distinct = self._text(element), self.draft.distinct
        if near.dimension.kind == NUMBER and not is_distinct:
            if near.dimension.aggregate == "sum" and not near.path:
                return self._aggregated(near, "sum")
            choices = [f"total {text}", f"how many different {text}"]
            raise Refusal(f'"How many {text}" may be a sum or a count.', choices)
        whole = self._whole_days(near)
        if whole.dimension.kind == TIME and not whole.grain:
            raise Refusal(f'I cannot count "{text}".', ["how many days …"])
        self._bare_field(whole, element)
        self.draft.distinct = False
        return None

    def _whole_days(self, near: Field) -> Field:
        return replace(near, grain="day") if near.dimension.kind == TIME and near.dimension.type == "date" else near

    def _aggregate_of(self, name: Name, element: Element, aggregate: str) -> Metric:
        metric = name.metric or (self._lexicon.entity.count if name.is_entity and not name.field else None)
        if metric and (metric.aggregate == aggregate or (aggregate == "sum" and metric.adds_up)):
            return metric
        if name.field and name.field.dimension.kind == NUMBER and not name.field.path:
            if aggregate != "sum" and (metric or (name.field.dimension.aggregate == "sum" and self._is_per_time())):
                return self._either(name, element, aggregate)
            return self._aggregated(name.field, aggregate)
        if metric and metric.adds_up:
            self.draft.of_groups = aggregate
            return metric
        raise Refusal(f'I cannot take the {AGGREGATE_WORDS[aggregate]} of "{self._text(element)}".')

    def _is_per_time(self) -> bool:
        """Whether the question has "per day" or "daily"."""
        pairs = zip(self._elements, self._elements[1:], strict=False)
        is_per = any(left.kind == "by" and left.detail == "per" and right.kind == "grain" for left, right in pairs)
        return is_per or any(element.kind == "each" for element in self._elements)

    def _either(self, name: Name, element: Element, aggregate: str) -> Metric:
        """A name of a sum and of its column: the average of the column, unless "per day" follows, which may mean both."""
        assert name.field is not None
        if any(other.kind in ("by", "each") for other in self._elements):
            word, text = AGGREGATE_WORDS[aggregate], self._text(element)
            raise Refusal(
                f'"{word} {text}" of each group, or of the totals of the groups?',
                [f"{word} {name.field.dimension.name} by …", f"{word} of the daily total"],
            )
        return self._aggregated(name.field, aggregate)

    def _extreme_of(self, name: Name, element: Element) -> Metric:
        draft = self.draft
        aggregate = "max" if draft.extreme == "desc" else "min"
        text = self._text(element)
        if draft.subjects:
            draft.limit = draft.limit or 1
            if (metric := self._metric_of(name)) is not None:
                return metric
        elif name.metric and name.metric.adds_up and not name.field:
            draft.of_groups = aggregate
            return name.metric
        if name.field and name.field.dimension.kind == NUMBER and not name.field.path and not name.metric:
            if name.field.dimension.aggregate and self._is_per_time():
                return self._either(name, element, aggregate)
            draft.is_extreme_value = True
            return self._aggregated(name.field, aggregate)
        if name.field and name.field.dimension.kind == NUMBER and not name.field.path and not draft.subjects:
            return self._either(name, element, aggregate)
        raise Refusal(f"I do not know which {text} you mean.", [f"which day had the highest {text}"])

    def _aggregated(self, near: Field, aggregate: str) -> Metric:
        dimension = near.dimension
        return Metric(f"{aggregate}_{dimension.name}", f"{aggregate}({dimension.sql})", unit=dimension.unit)

    def _add_metric(self, metric: Metric) -> None:
        if metric in self.draft.metrics:
            return
        if self.draft.metrics and not self._is_listing:
            raise Refusal(f'"{self.draft.metrics[-1].name}" and "{metric.name}" stand side by side.', ["… and …"])
        self.draft.metrics.append(metric)

    # ---- conditions ----------------------------------------------------------------------------------------------

    def _takes_value(self, name: Name) -> bool:
        """`payment type is cash`, `hour 9`: a condition on the named field."""
        near = name.field
        if near is None:
            return False
        mark = self._place
        is_negated = self._take("not", skip=(*_SKIPPED,)) is not None
        if near.dimension.kind == TEXT and (value := self._take("value")):
            if any(option[0] == near for option in value.payload):
                self.draft.negated = self.draft.negated or is_negated
                self._values(value, near)
                return True
        elif near.dimension.kind in (NUMBER, KEY) and not name.metric and (number := self._take("number")):
            suffix = self._take("suffix", skip=())
            is_negated = is_negated or self.draft.negated
            if suffix and is_negated:
                raise Refusal('I do not know what "not" is about.')
            operator = suffix.detail if suffix else "<>" if is_negated else "="
            self.draft.negated = False
            self.draft.conditions.append(Condition(near, operator, (number.detail,)))
            return True
        self._place = mark
        return False

    def _value(self, element: Element) -> None:
        options = element.payload
        following = self._peek()
        named = following.name.fields if following is not None and following.kind == "name" else ()
        fields = self._towards(element, {option[0] for option in options})
        if len(fields) > 1 and len(narrowed := fields & set(named)) == 1:
            fields = narrowed
        if len(fields) > 1:
            text = self._text(element)
            raise Refusal(f'"{text}" is a value of several columns.', sorted(f"{f.label} {text}" for f in fields))
        self._values(element, fields.pop())

    def _towards(self, element: Element, fields: set[Field]) -> set[Field]:
        """Of the fields of a value those that "from" or "to" before it may be about: "to Oslo" is no origin, "trips to JFK" no
        rate code."""
        place = self._elements.index(element)
        before, earlier = self._elements[max(place - 1, 0)], self._elements[max(place - 2, 0)]
        words = _DIRECTIONS.get(self._text(before).lower()) if before.kind == "link" else None
        if words is None:
            return fields
        if directed := {near for near in fields if words & set(phrase(near.dimension.name))}:
            return directed
        own = self._lexicon.entity.dimensions
        has_places = any(words & set(phrase(name)) for words in _DIRECTIONS.values() for name in own)
        is_of_rows = earlier.kind == "name" and earlier.name.is_entity
        if self._text(before).lower() == "to" or (is_of_rows and has_places):
            text, labels = self._text(element), sorted(near.label for near in fields)
            raise Refusal(
                f'"{self._text(before)} {text}" may be a place, but {text} is a {labels[0]}.',
                [f"{label} {text}" for label in labels],
            )
        return fields

    def _values(self, element: Element, near: Field) -> None:
        draft = self.draft
        values = [value for option, value in element.payload if option == near]
        while (link := self._peek(())) is not None and link.kind in ("and", "or"):
            after = self._elements[self._elements.index(link) + 1 :][:1]
            more = [v for option, v in after[0].payload if option == near] if after and after[0].kind == "value" else []
            if not more:
                break
            if link.kind == "and" and self._text(link) != ",":
                draft.both.append(near)
            values += more
            self._place = self._elements.index(after[0]) + 1
        operator = "<>" if draft.negated else "="
        draft.negated = False
        draft.conditions.append(Condition(near, operator, tuple(dict.fromkeys(values))))

    def _not(self, element: Element) -> None:
        following = self._peek()
        kinds = ("value", "name", "not")
        if following is None or following.kind not in kinds:
            raise Refusal(f'I do not know what "{self._text(element)}" is about.')
        self.draft.negated = True

    def _without(self, element: Element) -> None:
        following = self._take("name", "value", skip=("filler",))
        if following is not None and following.kind == "value":
            self.draft.negated = True
            return self._value(following)
        if following is None or following.name.field is None or following.name.metric:
            raise Refusal(f'I do not know what "{self._text(element)}" is about.')
        if following.name.field.dimension.kind == NUMBER:
            text = self._text(following)
            raise Refusal(f"Is {text} unknown, or zero?", [f"{text} = 0"])
        self.draft.conditions.append(Condition(following.name.field, "missing"))
        return None

    def _operator(self, element: Element) -> None:
        """`more than 3 passengers`, `over 10 miles`: the name follows."""
        self._place -= 1
        parsed = self._operands()
        following = self._take("name", skip=("filler",))
        if parsed is None or following is None:
            raise Refusal(f'I do not know what "{self._text(element)}" is compared with.')
        self._apply(following.name, following, *parsed)

    def _operator_ahead(self, name: Name) -> tuple[str, tuple[str, ...]] | None:
        following = self._peek()
        if following is None or following.kind not in ("operator", "between"):
            return None
        mark = self._place
        self._place = self._elements.index(following)
        parsed = self._operands()
        after = self._peek(())
        if parsed is not None and after is not None and after.kind == "name":
            name_after = after.name
            if name_after.units and name.field in name_after.units:
                self._place += 1
            elif not _is_measured(name):
                parsed = (
                    None  # "trips over 10 miles", "hours with more than 5 trips": the operator is about what follows
                )
            else:
                raise Refusal(f'Is "{self._text(after)}" compared, or "{name.text}"?')
        if parsed is None or not (name.metric or name.field):
            self._place = mark
            return None
        return parsed

    def _operands(self) -> tuple[str, tuple[str, ...]] | None:
        """An operator and its numbers."""
        element = self._take("operator", "between", "number")
        if element is None:
            return None
        if element.kind == "between":
            low, _, high = self._take("number"), self._take("and"), self._take("number")
            return ("between", (low.detail, high.detail)) if low and high else None
        number = self._take("number")
        return None if number is None else (element.detail, (number.detail,))

    def _apply(self, name: Name, element: Element, operator: str, values: tuple[str, ...]) -> None:
        """A condition on rows if rows are asked for, a threshold on groups if groups are."""
        draft = self.draft
        if draft.negated:
            raise Refusal('I do not know what "not" is about.')
        has_groups = bool(draft.subjects or draft.groups)
        near = name.field or (name.units[0] if len(name.units) == 1 else None)
        is_number = near is not None and near.dimension.kind in (NUMBER, KEY)
        if len(name.units) > 1 and near is None:
            raise Refusal(f"Which {name.text}?", [field.dimension.name for field in name.units])
        if draft.aggregate or draft.counts:
            metric = self._threshold_metric(name, element)
        else:
            metric = self._metric_of(name)
            if is_number and (not has_groups or (draft.metrics and not metric)):
                assert near is not None
                draft.conditions.append(Condition(near, operator, values))
                return
            if is_number and metric and draft.metrics and metric not in draft.metrics:
                raise Refusal(f'Is "{self._text(element)}" of each row, or of each group?')
        if metric is None or not has_groups:
            raise Refusal(f'I do not know what "{self._text(element)}" is compared for.')
        draft.thresholds.append(Threshold(metric, operator, values))

    def _metric_of(self, name: Name) -> Metric | None:
        """The metric that a name alone means."""
        near = name.field
        if name.metric or name.is_entity:
            return name.metric or self._lexicon.entity.count
        return (
            self._aggregated(near, near.dimension.aggregate)
            if near and near.dimension.aggregate and not near.path
            else None
        )

    def _threshold_metric(self, name: Name, element: Element) -> Metric | None:
        draft = self.draft
        aggregate, counts = draft.aggregate, draft.counts
        draft.aggregate, draft.counts = "", False
        if counts:
            return name.metric or (self._lexicon.entity.count if name.is_entity else None)
        metric = self._aggregate_of(name, element, aggregate)
        draft.of_groups = ""
        return metric if metric.aggregate == aggregate or aggregate == "sum" else None

    def _number(self, element: Element) -> None:
        following = self._peek(("filler",))
        if following is None:
            raise Refusal(f'I do not know what "{self._text(element)}" counts.')
        if following.kind == "suffix":
            return self._or_more(element)
        if following.kind == "or":
            return self._any_of(element)
        if following.kind == "grain" or (following.kind == "name" and self._is_subject(following)):
            self._limit(element)
            self.draft.subjects.append(self._subject_at(element.detail))
            return None
        if following.kind == "name" and (following.name.field or len(following.name.units) == 1):
            self._take("name", skip=("filler",))
            return self._apply(following.name, following, "=", (element.detail,))
        raise Refusal(f'I do not know what "{self._text(element)}" is about.')

    def _any_of(self, element: Element) -> None:
        """`2 or 3 passengers`"""
        numbers = [element.detail]
        while self._take("or") is not None:
            more = self._take("number", skip=())
            if more is None:
                raise Refusal(f'I do not know what "{self._text(element)} or" is about.')
            numbers.append(more.detail)
        following = self._take("name", skip=("filler",))
        if following is None or following.name.field is None or following.name.metric:
            raise Refusal(f'I do not know what "{" or ".join(numbers)}" is about.')
        self._apply(following.name, following, "=", tuple(numbers))

    def _or_more(self, element: Element) -> None:
        """`3 or more passengers`"""
        suffix = self._take("suffix")
        following = self._take("name", skip=("filler",))
        if suffix is None or following is None:
            raise Refusal(f'I do not know what "{self._text(element)}" is about.')
        self._apply(following.name, following, suffix.detail, (element.detail,))

    # ---- the whole -----------------------------------------------------------------------------------------------

    def _dimension_names(self) -> list[str]:
        return [name for name, dimension in self._lexicon.entity.dimensions.items() if dimension.kind != NUMBER][:8]


def _is_flag(element: Element) -> bool:
    """Whether an element is the name of a boolean, which is a condition wherever it stands."""
    near = element.name.field if element.kind == "name" else None
    return near is not None and near.dimension.kind == BOOLEAN


def _is_counted(name: Name) -> bool:
    """Whether a name stands for a number of its own, and not for a condition on what is before it."""
    near = name.field
    return name.is_entity or name.metric is not None or (near is not None and near.dimension.kind == NUMBER)


def _is_measured(name: Name) -> bool:
    """Whether a number that follows a name may be about it: not of an entity, a text or a key."""
    near = name.field
    return (near is not None and near.dimension.kind == NUMBER) or (name.metric is not None and not name.is_entity)
