"""By what a question groups: "by hour", "per day", the subject of "which" and "top 5"."""

from __future__ import annotations

from dataclasses import replace

from lakehouse.agent.elements import Element
from lakehouse.agent.lexicon import entity_phrases
from lakehouse.agent.parser.cursor import THE_TIME, Cursor
from lakehouse.agent.reading import Condition, Field
from lakehouse.agent.refusal import Refusal
from lakehouse.agent.semantics import BOOLEAN, NUMBER, TIME
from lakehouse.agent.words import phrase


class GroupParser(Cursor):
    """Parses groups and subjects."""

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

    def _is_subject(self, element: Element) -> bool:
        if element.kind != "name":
            return True
        name = element.name
        return bool(name.field) and not name.metric and name.field.dimension.kind != NUMBER  # type: ignore[union-attr]

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
