"""Parses the elements of a question into a draft of its reading. Every element has to be used; what does not fit is refused.

Each class builds on the one before: `Cursor` walks, `GroupParser` knows groups, `MetricParser` numbers, `ConditionParser`
conditions; `Parser` joins them, by the kind of each element.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from lakehouse.agent.elements import Element
from lakehouse.agent.lexicon import Lexicon, Name
from lakehouse.agent.parser.conditions import ConditionParser
from lakehouse.agent.parser.cursor import SKIPPED, THE_TIME, Draft
from lakehouse.agent.parser.metrics import AGGREGATE_WORDS
from lakehouse.agent.reading import Field
from lakehouse.agent.refusal import Refusal
from lakehouse.agent.semantics import NUMBER, Metric
from lakehouse.agent.words import Token

__all__ = ["AGGREGATE_WORDS", "THE_TIME", "Draft", "Parser"]


class Parser(ConditionParser):
    """Parses one list of elements, once."""

    def __init__(
        self, elements: Sequence[Element], tokens: Sequence[Token], lexicon: Lexicon, context: Collection[Field] = ()
    ) -> None:
        super().__init__(elements, tokens, lexicon, context)
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

    def parse(self) -> Draft:
        """Use every element; raises Refusal."""
        while (element := self._next()) is not None:
            if element.kind in SKIPPED:
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

    def _count(self, element: Element) -> None:
        self.draft.counts = True

    def _distinct(self, element: Element) -> None:
        if not self.draft.counts and not self.draft.lists:
            raise Refusal(f'"{self._text(element)}" goes with "how many" or "list".')
        self.draft.distinct = True

    def _aggregate(self, element: Element) -> None:
        if self._waits_for(element):
            return
        if self.draft.aggregate:
            raise Refusal(f'Two aggregates in a row: "{self.draft.aggregate}" and "{self._text(element)}".')
        self.draft.aggregate = element.detail

    def _extreme(self, element: Element) -> None:
        if self._waits_for(element):
            return
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

    def _which(self, element: Element) -> None:
        following = self._peek(("filler",))
        if following is not None and following.kind in ("grain", "hour", "name") and self._is_subject(following):
            self.draft.asks_which = True
            self._place = self._elements.index(following) + 1
            self.draft.subjects.append(self._field_of(following))
        elif (following := self._peek()) is not None and following.kind == "name" and following.name.is_entity:
            self.draft.lists = True  # "which trips were paid in cash": the rows, not their number

    def _list(self, element: Element) -> None:
        # "show trips by month" asks for numbers.
        is_grouped = any(other.kind in ("by", "each") for other in self._elements)
        self.draft.lists = element.detail != "show" or not is_grouped

    def _row(self, element: Element) -> None:
        """Rows of the entity: "how many rows", "list the rows"."""
        if not self.draft.counts and not self.draft.lists:
            raise Refusal('"rows" goes with "how many" or "list".')
        if self.draft.counts:
            self._add_metric(self._lexicon.entity.count)
            self.draft.counts = False

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

    def _named(self, element: Element) -> None:
        name = element.name
        if (operator := self._operator_ahead(name)) is not None:
            self._apply(name, element, *operator)
            self._apply_further(name, element)
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
        if is_listed and self._head and not near.path:
            if dimension.aggregate not in ("", self._head):
                words = (AGGREGATE_WORDS[aggregate] for aggregate in (self._head, dimension.aggregate))
                raise Refusal(f"Which {dimension.name}?", [f"{word} {dimension.name}" for word in words])
            return self._add_metric(self._aggregated(near, self._head))
        if not near.path and dimension.aggregate and (not self.draft.metrics or is_listed):
            return self._add_metric(self._aggregated(near, dimension.aggregate))
        raise Refusal(
            f'Which aggregate of "{self._text(element)}"?',
            [f"{word} {dimension.name}" for word in ("total", "average", "highest", "lowest")],
        )
