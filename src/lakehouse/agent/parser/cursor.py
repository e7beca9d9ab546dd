"""What a parser reads and what it makes: the elements of a question with a place among them, and the draft of its reading."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field

from lakehouse.agent.elements import Element
from lakehouse.agent.lexicon import Lexicon
from lakehouse.agent.periods import Period
from lakehouse.agent.reading import Condition, Field, Threshold
from lakehouse.agent.semantics import BOOLEAN, NUMBER, TIME, Dimension, Metric
from lakehouse.agent.words import Token
from lakehouse.core.dataclass import dataclass

#: Stands for the time of the entity until the whole question is parsed, which may name another one.
THE_TIME = Dimension("time", kind=TIME)
#: Kinds of elements without a meaning of their own.
SKIPPED = ("filler", "link")


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


class Cursor:
    """Walks through the elements of a question, once."""

    def __init__(
        self, elements: Sequence[Element], tokens: Sequence[Token], lexicon: Lexicon, context: Collection[Field] = ()
    ) -> None:
        """
        Args:
            context: the fields of the question before, one of which a value is more likely about.
        """
        self._context = context
        self._elements, self._tokens, self._lexicon = elements, tokens, lexicon
        self._place = 0
        # After "and", until the next name.
        self._is_listing = False
        self._is_value_before = False
        # The aggregate of the column before "and", which holds for a column after it: "average fare and tip".
        self._head = ""
        # "highest", until "lowest fare" follows.
        self._earlier_heads: list[Element] = []
        self.draft = Draft()

    def _next(self) -> Element | None:
        if self._place >= len(self._elements):
            return None
        self._place += 1
        return self._elements[self._place - 1]

    def _peek(self, skip: Sequence[str] = SKIPPED) -> Element | None:
        """The next element that is not skipped, without using it."""
        for element in self._elements[self._place :]:
            if element.kind not in skip:
                return element
        return None

    def _take(self, *kinds: str, skip: Sequence[str] = SKIPPED) -> Element | None:
        """Use the next element if it is of one of the kinds."""
        element = self._peek(skip)
        if element is None or element.kind not in kinds:
            return None
        self._place = self._elements.index(element) + 1
        return element

    def _text(self, element: Element) -> str:
        return " ".join(token.text for token in self._tokens[element.start : element.end])

    def _dimension_names(self) -> list[str]:
        return [name for name, dimension in self._lexicon.entity.dimensions.items() if dimension.kind != NUMBER][:8]


def is_flag(element: Element) -> bool:
    """Whether an element is the name of a boolean, which is a condition wherever it stands."""
    near = element.name.field if element.kind == "name" else None
    return near is not None and near.dimension.kind == BOOLEAN
