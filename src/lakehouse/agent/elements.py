"""The elements of a question: its tokens joined to names, values, numbers, periods and words of the grammar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from lakehouse.agent.lexicon import Lexicon, Name, grammar_at
from lakehouse.agent.periods import Period, PeriodParser
from lakehouse.agent.reading import Field
from lakehouse.agent.words import Token
from lakehouse.core.dataclass import dataclass

#: The values that a span of tokens stands for.
Values = Mapping[tuple[int, int], tuple[tuple[Field, str], ...]]
_REF_LEADS = (
    ("as", "of"),
    ("on", "branch"),
    ("on", "the", "branch"),
    ("in", "branch"),
    ("at", "snapshot"),
    ("branch",),
    ("snapshot",),
    ("tag",),
)
_REF_KINDS = ("snapshot", "tag", "branch", "the")


@dataclass(frozen=True)
class Element:
    """One element: what it is, and which tokens it is made of."""

    kind: str
    """A kind of the grammar, or name, value, number, period, when, unknown."""
    detail: str
    start: int
    end: int
    payload: Any = None

    @property
    def name(self) -> Name:
        assert isinstance(self.payload, Name)
        return self.payload

    @property
    def period(self) -> Period:
        assert isinstance(self.payload, Period)
        return self.payload


class Scanner:
    """Splits the tokens of a question into elements, with the names of one entity."""

    def __init__(self, tokens: Sequence[Token], lexicon: Lexicon, today: date) -> None:
        self._tokens, self._lexicon = tokens, lexicon
        self._stems = [token.stem for token in tokens]
        self._periods = PeriodParser(tokens, today)

    def elements(self, values: Values) -> list[Element]:
        """The elements in order; a token that is none of them is unknown."""
        listed: list[Element] = []
        place = 0
        while place < len(self._tokens):
            listed.append(self._element(place, values))
            place = listed[-1].end
        return listed

    def _element(self, place: int, values: Values) -> Element:
        candidates = [
            candidate
            for candidate in (
                self._value(place, values),
                self._when(place),
                self._name(place),
                self._period(place),
                self._grammar(place),
                self._number(place),
            )
            if candidate is not None
        ]
        if any(candidate.kind == "name" for candidate in candidates):
            candidates = [candidate for candidate in candidates if candidate.kind not in ("filler", "link")]
        # The longest match; of equals the first in this order.
        return max(candidates, key=lambda element: element.end, default=self._unknown(place))

    def _value(self, place: int, values: Values) -> Element | None:
        ends = [end for start, end in values if start == place]
        if not ends:
            return None
        return Element("value", "", place, max(ends), values[place, max(ends)])

    def _name(self, place: int) -> Element | None:
        if self._tokens[place].kind not in ("word", "number"):
            return None
        match = self._lexicon.name_at(self._stems, place)
        if match is None:
            return None
        name, length = match
        if name.values and not (name.fields or name.metric or name.is_entity or name.units):
            return Element("value", "", place, place + length, name.values)
        return Element("name", "", place, place + length, name)

    def _period(self, place: int) -> Element | None:
        match = self._periods.at(place)
        if match is None:
            return None
        is_previous = any(token.stem == "previous" for token in self._tokens[place : match[1]])
        return Element("period", "previous" if is_previous else "", place, match[1], match[0])

    def _grammar(self, place: int) -> Element | None:
        if self._tokens[place].kind not in ("word", "sign", "comma"):
            return None
        match = grammar_at(self._stems, place)
        return None if match is None else Element(match[0], match[1], place, place + match[2])

    def _number(self, place: int) -> Element | None:
        token = self._tokens[place]
        return Element("number", token.number, place, place + 1) if token.kind == "number" else None

    def _when(self, place: int) -> Element | None:
        """`as of yesterday`, `on branch exp`, `at snapshot 123`, `now`: a WHEN."""
        if self._stems[place] == "now":
            return Element("when", "now", place, place + 1)
        for lead in _REF_LEADS:
            after = place + len(lead)
            if tuple(self._stems[place:after]) != lead:
                continue
            while after < len(self._tokens) and self._stems[after] in _REF_KINDS:
                after += 1
            if after < len(self._tokens) and self._tokens[after].kind in ("word", "number", "date", "quoted"):
                kind = "branch" if "branch" in self._stems[place:after] else "when"
                return Element(kind, self._tokens[after].text, place, after + 1)
        return None

    def _unknown(self, place: int) -> Element:
        return Element("unknown", self._tokens[place].text, place, place + 1)


def value_spans(elements: Sequence[Element], tokens: Sequence[Token]) -> dict[tuple[int, int], tuple[str, ...]]:
    """The spans of tokens that may be a value, as they are and in the singular: those with an unknown, quoted or shouted
    word, of up to five tokens."""
    unknown = {element.start for element in elements if element.kind == "unknown"}
    unknown |= {place for place, token in enumerate(tokens) if token.kind == "quoted" or token.is_shouted}
    spans = {}
    for start in range(len(tokens)):
        for end in range(start + 1, min(start + 5, len(tokens)) + 1):
            span = tokens[start:end]
            is_quoted = any(token.kind == "quoted" for token in span)
            if unknown.isdisjoint(range(start, end)) or (is_quoted and len(span) > 1):
                continue
            before = [token.text.lower() for token in span[:-1]]
            last = (span[-1].text.lower(), span[-1].stem)
            spans[start, end] = tuple(dict.fromkeys(" ".join([*before, word]) for word in last))
    return spans
