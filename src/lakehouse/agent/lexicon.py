"""What the words of a question stand for: the grammar's own words, and the names of an entity and of those it joins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from lakehouse.agent.reading import Field
from lakehouse.agent.semantics import BOOLEAN, KEY, TEXT, TIME, Dimension, Entity, Join, Metric, Semantics
from lakehouse.agent.words import phrase, stem, typed
from lakehouse.core.dataclass import dataclass

Phrase = tuple[str, ...]

_GRAMMAR: dict[tuple[str, str], str] = {
    ("count", ""): "how many|number of|count of|count",
    ("distinct", ""): "different|distinct|unique",
    ("aggregate", "sum"): "total|sum|sum of|overall",
    ("aggregate", "avg"): "average|mean|avg",
    ("aggregate", "median"): "median",
    ("extreme", "desc"): "highest|largest|biggest|greatest|maximum|max|most",
    ("extreme", "asc"): "lowest|smallest|least|fewest|minimum|min",
    ("common", "desc"): "most common|most frequent|busiest",
    ("common", "asc"): "least common|least frequent|rarest",
    ("top", "desc"): "top",
    ("top", "asc"): "bottom",
    ("by", ""): "by|grouped by|broken down by|split by",
    ("by", "per"): "per|for each|for every|each|every|in each|on each",
    ("sort", ""): "sorted by|ordered by|ranked by",
    ("direction", "desc"): "descending|highest first|largest first|most first",
    ("direction", "asc"): "ascending|lowest first|smallest first|fewest first",
    ("share", "share"): "share|share of|fraction|fraction of|proportion|proportion of",
    ("share", "percentage"): "percentage|percentage of|percent|percent of",
    ("compare", ""): "compared with|compared to|compare with|compare to|versus|vs|vs.|against|in comparison with",
    (
        "operator",
        ">",
    ): "more than|greater than|over|above|higher than|larger than|bigger than|longer than|exceeding|exceed|>",
    ("operator", ">="): "at least|no less than|no fewer than|greater than or equal to|more than or equal to|>=",
    ("operator", "<"): "less than|fewer than|under|below|lower than|smaller than|shorter than|<",
    ("operator", "<="): "at most|no more than|up to|less than or equal to|<=",
    ("operator", "="): "exactly|equal to|=",
    ("operator", "<>"): "<>|!=",
    ("suffix", ">="): "or more|or above|or over|or higher",
    ("suffix", "<="): "or less|or fewer|or below|or under|or lower",
    ("between", ""): "between",
    ("not", ""): "not|except|except for|excluding|other than|but not|not in|not from|not by|not with",
    ("without", ""): "without|with no|without a|without an|missing|that have no|with missing|who have no",
    ("and", ""): "and|and also|as well as|,",
    ("or", ""): "or",
    ("which", ""): "which|what|who",
    ("list", ""): "list|what are|list all|show all",
    ("list", "show"): "show|show me|display|give me",
    ("instead", ""): "instead",
    ("grain", "day"): "day|date|calendar day",
    ("grain", "week"): "week",
    ("grain", "month"): "month",
    ("grain", "quarter"): "quarter",
    ("grain", "year"): "year",
    ("grain", "hour of day"): "hour of day|hour of the day",
    ("grain", "day of week"): "day of week|day of the week|weekday",
    ("hour", ""): "hour|hourly",
    ("each", "day"): "daily",
    ("each", "week"): "weekly",
    ("each", "month"): "monthly",
    ("each", "quarter"): "quarterly",
    ("each", "year"): "yearly|annual",
    ("row", ""): "row|record",
    # Words that only tie others together; a word that could change the meaning does not belong here.
    (
        "link",
        "",
    ): "of|in|on|for|from|at|to|with|having|that have|that had|which had|where|whose|have|had|has|is|are|was|were"
    "|that|been|be|during|within|that are|that were|belong to|come from|came from|have had|made in|made on",
    (
        "filler",
        "",
    ): "the|a|an|me|please|there|do|did|does|we|all|tell|tell me|us|i|want to know|i want to know|can you|could you"
    "|see|get|find|give|what is|what was|what were|our|you|would like|let me see|in total|altogether"
    "|let us see|in all|is there|are there|were there|was there|do we have|did we have|have we|happened|took place|only|just"
    "|exist|i need|i would like to know|how much|how high|how large|how big",
}
#: Words with which a question refers to the one before.
FOLLOW_UPS = (
    "and",
    "only",
    "just",
    "also",
    "now",
    "but",
    "then",
    "what about",
    "how about",
    "instead",
    "same",
    "same but",
    "and what about",
    "and also",
)
#: Those of them after which groups are added to the ones before.
ADDING = ("and", "also", "and also")


def _grammar() -> dict[Phrase, tuple[str, str]]:
    from lakehouse.agent.words import tokens

    known: dict[Phrase, tuple[str, str]] = {}
    for meaning, texts in _GRAMMAR.items():
        for text in texts.split("|"):
            known[tuple(token.stem for token in tokens(text + " x")[:-1])] = meaning
    return known


GRAMMAR = _grammar()
GRAMMAR_STEMS = frozenset(word for words in GRAMMAR for word in words)
_LONGEST_GRAMMAR = max(map(len, GRAMMAR))


@dataclass(frozen=True)
class Name:
    """All that a phrase stands for, seen from one entity."""

    text: str
    metric: Metric | None = None
    fields: tuple[Field, ...] = ()
    is_entity: bool = False
    units: tuple[Field, ...] = ()
    """The fields that are measured in it."""
    values: tuple[tuple[Field, str], ...] = ()
    """The values that people call so."""

    def merged(self, other: Name) -> Name:
        return Name(
            self.text,
            self.metric or other.metric,
            tuple(dict.fromkeys((*self.fields, *other.fields))),
            self.is_entity or other.is_entity,
            (*self.units, *other.units),
            (*self.values, *other.values),
        )

    @property
    def field(self) -> Field | None:
        """The one field of that name: that of the entity itself, or of the one entity that it joins."""
        near = [field for field in self.fields if not field.path]
        candidates = near or list(self.fields)
        return candidates[0] if len(candidates) == 1 else None


class Lexicon:
    """The names of one entity, and of those that each of its rows belongs to."""

    def __init__(self, semantics: Semantics, entity: Entity) -> None:
        self.entity, self._semantics = entity, semantics
        self.names: dict[Phrase, Name] = {}
        self.paths = dict(paths_from(semantics, entity))
        for words in entity_phrases(entity):
            self._add(words, Name(" ".join(words), is_entity=True))
        for metric in entity.metrics.values():
            for words in metric_phrases(metric):
                self._add(words, Name(metric.name, metric=metric))
        self._add_fields(entity, ())
        for path in self.paths.values():
            self._add_fields(semantics.entities[path[-1].to_entity], path)

    def _add_fields(self, entity: Entity, path: tuple[Join, ...]) -> None:
        owners = entity_phrases(entity) if path else []
        for dimension in entity.dimensions.values():
            field = Field(dimension, path)
            for words in dimension_phrases(dimension):
                self._add(words, Name(dimension.name, fields=(field,)))
                for owner in owners:
                    self._add((*owner, *words), Name(dimension.name, fields=(field,)))
            if dimension.unit and not path:
                self._add(phrase(dimension.unit), Name(dimension.unit, units=(field,)))
            for text, value in dimension.values.items():
                for words in typed(text):
                    self._add(words, Name(text, values=((field, value),)))
        for owner in owners:
            field = self._standing_for(entity, path)
            self._add(owner, Name(field.dimension.name, fields=(field,)))

    def _standing_for(self, entity: Entity, path: tuple[Join, ...]) -> Field:
        """What "by customer" is by: each customer, shown with the name, which several may have."""
        join = path[-1]
        key = entity.dimensions.get(join.to_column) or Dimension(join.to_column, kind=KEY)
        shown = next((name for name in ("name", "full_name", "title") if name in entity.dimensions), "")
        if shown and shown != key.name:
            return Field(entity.dimensions[shown], path, identity=key)
        referring = self._semantics.entities[join.entity].dimensions.get(join.column)
        return Field(referring, path[:-1]) if referring else Field(key, path)

    def _add(self, words: Phrase, name: Name) -> None:
        if words:
            self.names[words] = self.names[words].merged(name) if words in self.names else name

    @cached_property
    def longest(self) -> int:
        return max(map(len, self.names), default=0)

    @cached_property
    def stems(self) -> frozenset[str]:
        """Every word of every name."""
        return frozenset(word for words in self.names for word in words)

    def name_at(self, stems: Sequence[str], place: int) -> tuple[Name, int] | None:
        """The longest name that begins at a place, and its length."""
        for length in range(min(self.longest, len(stems) - place), 0, -1):
            if (name := self.names.get(tuple(stems[place : place + length]))) is not None:
                return name, length
        return None

    def text_fields(self) -> Iterator[Field]:
        """The fields in which values are looked up."""
        for entity, path in (
            (self.entity, ()),
            *((self._semantics.entities[p[-1].to_entity], p) for p in self.paths.values()),
        ):
            for dimension in entity.dimensions.values():
                if dimension.kind == TEXT and not (path and self._is_same_as_reference(dimension, path[-1])):
                    yield Field(dimension, path)

    def _is_same_as_reference(self, dimension: Dimension, join: Join) -> bool:
        """Whether a dimension is the key that a dimension of the entity before refers to: its values are there as well."""
        return dimension.name == join.to_column and join.column in self._semantics.entities[join.entity].dimensions

    def entity_of(self, field: Field) -> Entity:
        return self._semantics.entities[field.path[-1].to_entity] if field.path else self.entity


def grammar_at(stems: Sequence[str], place: int) -> tuple[str, str, int] | None:
    """The longest phrase of the grammar that begins at a place: kind, detail and length."""
    for length in range(min(_LONGEST_GRAMMAR, len(stems) - place), 0, -1):
        if (meaning := GRAMMAR.get(tuple(stems[place : place + length]))) is not None:
            return *meaning, length
    return None


def entity_phrases(entity: Entity) -> list[Phrase]:
    """What an entity is called; a drafted one is also called by the name of its table without a prefix such as fct_."""
    texts = [entity.name, *entity.synonyms]
    return list(dict.fromkeys([*_all_typed(texts), (stem(entity.table),)]))


def metric_phrases(metric: Metric) -> list[Phrase]:
    """What a metric is called."""
    return _all_typed((metric.name, *metric.synonyms))


def _all_typed(texts: Iterable[str]) -> list[Phrase]:
    return list(dict.fromkeys(words for text in texts for words in typed(text)))


def dimension_phrases(dimension: Dimension) -> list[Phrase]:
    """What a dimension is called: its name and synonyms; a time also without _at, a boolean without is_."""
    name, kind, synonyms = dimension.name, dimension.kind, dimension.synonyms
    texts = [name, *synonyms]
    if kind == TIME:
        texts += [name.removesuffix(end) for end in ("_at", "_on", "_date", "_time", "_ts") if name.endswith(end)]
    if kind == BOOLEAN:
        texts += [name.removeprefix(start) for start in ("is_", "has_") if name.startswith(start)]
    if "_" in dimension.expression and dimension.expression.isidentifier():
        texts.append(dimension.expression)  # the column
    return _all_typed(filter(None, texts))


_MOST_JOINS = 2


def paths_from(semantics: Semantics, entity: Entity) -> Iterator[tuple[str, tuple[Join, ...]]]:
    """The one path to each entity that an entity's rows belong to; an entity that two paths lead to is left out."""
    paths: dict[str, list[tuple[Join, ...]]] = {}
    frontier: list[tuple[Join, ...]] = [()]
    for _ in range(_MOST_JOINS):
        longer = []
        for path in frontier:
            start = semantics.entities[path[-1].to_entity] if path else entity
            longer += [(*path, join) for join, _ in semantics.joined(start)]
        for path in longer:
            paths.setdefault(path[-1].to_entity, []).append(path)
        frontier = longer
    for name, leading in paths.items():
        if len(leading) == 1 and name != entity.name:
            yield name, leading[0]


class Vocabulary:
    """The words of every entity, to choose those that a question may be about."""

    def __init__(self, semantics: Semantics) -> None:
        self._own: dict[str, frozenset[str]] = {}
        self._semantics = semantics
        stems: dict[int, frozenset[str]] = {}  # by identity: drafted tables with the same column share its dimension
        for name, entity in semantics.entities.items():
            for dimension in entity.dimensions.values():
                if id(dimension) not in stems:
                    stems[id(dimension)] = frozenset(_dimension_stems(dimension))
            own = (stems[id(dimension)] for dimension in entity.dimensions.values())
            self._own[name] = frozenset(_entity_stems(entity)).union(*own)

    @cached_property
    def stems(self) -> frozenset[str]:
        return frozenset().union(*self._own.values()) if self._own else frozenset()

    def of(self, name: str) -> frozenset[str]:
        """The words of an entity and of those that it joins."""
        entity = self._semantics.entities[name]
        joined = [self._own[other] for other, _ in paths_from(self._semantics, entity)]
        return self._own[name].union(*joined)


def _entity_stems(entity: Entity) -> Iterator[str]:
    for words in entity_phrases(entity):
        yield from words
    for metric in entity.metrics.values():
        for words in metric_phrases(metric):
            yield from words


def _dimension_stems(dimension: Dimension) -> Iterator[str]:
    for words in dimension_phrases(dimension):
        yield from words
    yield from phrase(dimension.unit)
    for text in dimension.values:
        for words in typed(text):
            yield from words
