"""What rows and groups must meet: values, numbers with an operator, what is missing."""

from __future__ import annotations

from lakehouse.agent.elements import Element
from lakehouse.agent.lexicon import Name
from lakehouse.agent.parser.cursor import SKIPPED
from lakehouse.agent.parser.metrics import MetricParser
from lakehouse.agent.reading import Condition, Field, Threshold
from lakehouse.agent.refusal import Refusal
from lakehouse.agent.semantics import KEY, NUMBER, TEXT, Metric
from lakehouse.agent.words import phrase

#: What columns are called in which something begins or ends.
_DIRECTIONS = {
    "from": {"origin", "source", "pickup", "departure", "start", "from"},
    "to": {"destination", "target", "dropoff", "arrival", "end", "to"},
}


class ConditionParser(MetricParser):
    """Parses conditions and thresholds."""

    def _takes_value(self, name: Name) -> bool:
        """`payment type is cash`, `hour 9`: a condition on the named field."""
        near = name.field
        if near is None:
            return False
        mark = self._place
        is_negated = self._take("not", skip=(*SKIPPED,)) is not None
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
            numbers = (number.detail,) if suffix else self._numbers(number)
            self.draft.conditions.append(Condition(near, operator, numbers))
            return True
        self._place = mark
        return False

    def _value(self, element: Element) -> None:
        options = element.payload
        following = self._peek()
        named = following.name.fields if following is not None and following.kind == "name" else ()
        fields = self._towards(element, {option[0] for option in options})
        for likely in (named, (*self._context, *self.draft.groups, *self.draft.subjects)):
            if len(fields) > 1 and len(narrowed := fields & set(likely)) == 1:
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
        parsed = [self._operands()]
        while self._is_operator_after_and():
            parsed.append(self._operands())
        following = self._take("name", skip=("filler",))
        for operands in parsed:
            if operands is None or following is None:
                raise Refusal(f'I do not know what "{self._text(element)}" is compared with.')
            self._apply(following.name, following, *operands)

    def _is_operator_after_and(self) -> bool:
        """Whether "and less than" follows; the "and" is used."""
        kinds = [element.kind for element in self._elements[self._place : self._place + 2]]
        is_next = kinds in (["and", "operator"], ["and", "between"])
        self._place += is_next
        return is_next

    def _apply_further(self, name: Name, element: Element) -> None:
        """`fare over 10 and under 20`: unless another name follows the last number."""
        mark = self._place
        while self._is_operator_after_and():
            parsed, after = self._operands(), self._peek(())
            if parsed is None or (after is not None and after.kind == "name" and _may_be_measured(after.name)):
                self._place = mark
                return
            self._apply(name, element, *parsed)
            mark = self._place

    def _operator_ahead(self, name: Name) -> tuple[str, tuple[str, ...]] | None:
        following = self._peek()
        if following is None or following.kind not in ("operator", "between"):
            return None
        mark = self._place
        self._place = self._elements.index(following)
        parsed = self._operands()
        after_first = self._place
        while not _is_measured(name) and self._is_operator_after_and():
            self._operands()  # "trips with more than 2 and less than 5 passengers"
        after = self._peek(())
        self._place = after_first
        if parsed is not None and after is not None and after.kind == "name":
            name_after = after.name
            if name_after.units and name.field in name_after.units:
                self._place += 1
            elif not _is_measured(name):
                parsed = (
                    None  # "trips over 10 miles", "hours with more than 5 trips": the operator is about what follows
                )
            elif _may_be_measured(name_after):
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
            if low and high and float(low.detail) > float(high.detail):
                raise Refusal(f"Nothing is between {low.detail} and {high.detail}: the first number is the higher one.")
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
        numbers = self._numbers(element)
        following = self._take("name", skip=("filler",))
        if following is None or following.name.field is None or following.name.metric:
            raise Refusal(f'I do not know what "{" or ".join(numbers)}" is about.')
        self._apply(following.name, following, "=", numbers)

    def _numbers(self, first: Element) -> tuple[str, ...]:
        """A number and those that "or" adds to it."""
        numbers = [first.detail]
        while self._take("or") is not None:
            more = self._take("number", skip=())
            if more is None:
                raise Refusal(f'I do not know what "{self._text(first)} or" is about.')
            numbers.append(more.detail)
        return tuple(numbers)

    def _or_more(self, element: Element) -> None:
        """`3 or more passengers`"""
        suffix = self._take("suffix")
        following = self._take("name", skip=("filler",))
        if suffix is None or following is None:
            raise Refusal(f'I do not know what "{self._text(element)}" is about.')
        self._apply(following.name, following, suffix.detail, (element.detail,))


def _may_be_measured(name: Name) -> bool:
    return bool(name.units) or _is_measured(name)


def _is_measured(name: Name) -> bool:
    """Whether a number that follows a name may be about it: not of an entity, a text or a key."""
    near = name.field
    return (near is not None and near.dimension.kind == NUMBER) or (name.metric is not None and not name.is_entity)
