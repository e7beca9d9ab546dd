"""Answers questions: reads them with the semantic layer, writes the statement, has it run. Changes are made on branches only, by whoever is passed for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any, Protocol
from zoneinfo import ZoneInfo

from lakehouse.agent.answer import Answer, suggest_chart
from lakehouse.agent.change import Change, LakeWriter, read_change
from lakehouse.agent.draft import draft, shipped
from lakehouse.agent.elements import Element, Scanner, value_spans
from lakehouse.agent.finish import Finisher, merge
from lakehouse.agent.lexicon import ADDING, FOLLOW_UPS, GRAMMAR_STEMS, Lexicon, Vocabulary, entity_phrases
from lakehouse.agent.parser import Parser
from lakehouse.agent.periods import PERIOD_STEMS
from lakehouse.agent.reading import AGGREGATES, Field, Reading
from lakehouse.agent.refusal import Refusal
from lakehouse.agent.semantics import Entity, Semantics
from lakehouse.agent.sql import SqlWriter
from lakehouse.agent.words import MAX_CHARACTERS, MAX_TOKENS, Token, corrections, stem, tokens
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import BranchError, WhenError
from lakehouse.core.quoting import spark_text
from lakehouse.core.result import Result
from lakehouse.core.statement import TableUse
from lakehouse.core.tables import TableInfo

#: Maximum number of rows of an answer.
MAX_ROWS = 10_000
_MOST_ENTITIES = 12
_MOST_CHOICES = 10
_MOST_VALUES = 50


class LakeReader(Protocol):
    """What is needed of a lake, within the rights of whoever asks."""

    def tables(self) -> Sequence[TableInfo]:
        """The tables that may be seen."""

    def query(self, sql: str, limit: int, timeout_s: float | None = None) -> Result:
        """Run a statement, which must be a read, within a time (default: that of any other statement)."""

    def uses(self, sql: str) -> Sequence[TableUse]:
        """The tables that a read names; raises what the guard refuses, and any statement that is no read."""

    def snapshot(self, table: str, when: str) -> str:
        """The id of a table's snapshot at a WHEN; raises WhenError or BranchError."""

    def on(self, branch: str) -> LakeReader:
        """A reader of another branch; raises BranchError."""


@dataclass(frozen=True)
class Clock:
    """When a question is asked, and whose calendar days count."""

    zone: str = "UTC"
    now: datetime | None = None

    @property
    def today(self) -> date:
        return (self.now or datetime.now(ZoneInfo(self.zone))).astimezone(ZoneInfo(self.zone)).date()


def layer_for(tables: Sequence[TableInfo], written: Semantics | None) -> Semantics:
    """The layer of a lake: the one that people wrote; without one what the pipelines ship, and a draft of the other tables."""
    present = {str(info.name): info for info in tables if not info.problem}
    if written is not None:
        return typed(written.of_tables(present), present)
    return typed(shipped().of_tables(present).merged(draft(list(present.values()))), present)


def typed(layer: Semantics, tables: Mapping[str, TableInfo]) -> Semantics:
    """The layer with the types of the columns, without the dimensions whose column is gone."""
    entities = {}
    for name, entity in layer.entities.items():
        types = {column.name: column.type for column in tables[entity.table].columns}
        dimensions = {
            key: dimension if dimension.type else replace(dimension, type=types.get(dimension.expression or key, ""))
            for key, dimension in entity.dimensions.items()
            if dimension.expression or key in types
        }
        time = entity.time if entity.time in dimensions else ""
        entities[name] = replace(entity, dimensions=dimensions, time=time)
    return replace(layer, entities=entities)


class Asker:
    """Answers questions about the tables of one reader."""

    def __init__(self, reader: LakeReader, written: Semantics | None = None, clock: Clock | None = None) -> None:
        self._reader, self._clock, self._written = reader, clock or Clock(), written
        self._tables = {str(info.name): info for info in reader.tables()}
        self._layer = layer_for(list(self._tables.values()), written)
        self._vocabulary = Vocabulary(self._layer)

    @property
    def layer(self) -> Semantics:
        """The semantic layer with which questions are read."""
        return self._layer

    def ask(self, question: str, conversation: Sequence[str] = (), run: bool = True) -> Answer:
        """Answer a question.

        Args:
            conversation: the questions before it, which it may refer to.
            run: False only reads the question and writes the statement.
        """
        try:
            reading = self._in_conversation(question, conversation)
            return self._answer(reading, run)
        except Refusal as refusal:
            return Answer(False, reason=refusal.reason, choices=refusal.choices[:_MOST_CHOICES])
        except (WhenError, BranchError) as exc:
            return Answer(False, reason=exc.message)

    def change(self, request: str, writer: LakeWriter, run: bool = True) -> Answer:
        """Make a change on a branch of its own; nobody merges it but a person.

        Args:
            run: False only reads the request and writes the statement.
        """
        try:
            change = self._read_change(request)
            if not run:
                return Answer(True, change.sentence, change.sql)
            return writer.change(change.sql, change.sentence).answer(change.sentence, change.sql)
        except Refusal as refusal:
            return Answer(False, reason=refusal.reason, choices=refusal.choices[:_MOST_CHOICES])

    def _read_change(self, request: str) -> Change:
        self._tokens(request)
        return read_change(request, lambda text: self._read(text, None), self._clock.zone)

    def _in_conversation(self, question: str, conversation: Sequence[str]) -> Reading:
        previous = None
        for earlier in conversation:
            try:
                previous = self._read(earlier, previous)
            except Refusal:
                continue  # it was refused when it was asked
        return self._read(question, previous)

    # ---- reading -------------------------------------------------------------------------------------------------

    def _read(self, question: str, previous: Reading | None) -> Reading:
        words = self._tokens(question)
        rest, adds = _without_lead(words)
        if previous is not None and len(rest) < len(words):
            return self._follow_up(rest, previous, adds)
        try:
            return self._alone(words)
        except Refusal as alone:
            if previous is None:
                raise
            try:
                return self._follow_up(words, previous)
            except Refusal as continued:
                raise min(alone, continued, key=lambda refusal: len(refusal.unknown)) from continued

    def _tokens(self, question: str) -> Sequence[Token]:
        if len(question) > MAX_CHARACTERS or not question.isprintable():
            raise Refusal(f"A question is one line of up to {MAX_CHARACTERS} characters.")
        words = tokens(question)
        if not words or len(words) > MAX_TOKENS:
            raise Refusal("The question is empty." if not words else f"A question has up to {MAX_TOKENS} words.")
        return words

    def _follow_up(self, words: Sequence[Token], previous: Reading, adds: bool = False) -> Reading:
        entity = self._layer.entities[previous.entity.name]
        return self._parsed(words, entity, previous, adds)

    def _alone(self, words: Sequence[Token]) -> Reading:
        """Read a question with what people wrote about the lake, and only then with a draft."""
        entities = list(self._layer.entities.values())
        named = [entity for entity in entities if any(token.stem == stem(entity.table) for token in words)]
        refusals: list[Refusal] = []
        for is_draft in (False, True):
            group = [entity for entity in named or entities if entity.is_draft == is_draft]
            readings = self._readings(words, group, refusals)
            if len(readings) == 1:
                return readings[0]
            if readings:
                choices = [f"{reading.entity.table}: {reading.sentence()}" for reading in readings]
                raise Refusal("The question may be about several tables; name the one you mean.", choices)
            if understood := [refusal for refusal in refusals if not refusal.unknown]:
                raise understood[0]  # every word is known, so other tables are not what is meant
        if not refusals:
            raise Refusal("There is no table to ask about.")
        raise min(refusals, key=lambda refusal: len(refusal.unknown))

    def _readings(self, words: Sequence[Token], entities: Sequence[Entity], refusals: list[Refusal]) -> list[Reading]:
        readings = []
        try:
            candidates = self._candidates(words, entities)
        except Refusal as refusal:
            refusals.append(refusal)
            return []
        stems = {token.stem for token in words}
        is_named_refused = False
        for entity in candidates:
            try:
                readings.append(self._parsed(words, entity))
            except Refusal as refusal:
                refusals.append(refusal)
                is_named_refused = is_named_refused or (not refusal.unknown and _names(stems, entity))
        nearest = _nearest(readings, stems)
        # What the question names was understood and refused: another table is not what is meant.
        return [] if is_named_refused and not any(_names(stems, reading.entity) for reading in nearest) else nearest

    def _candidates(self, words: Sequence[Token], entities: Sequence[Entity]) -> list[Entity]:
        """The entities whose names cover most of the question; raises Refusal if there are too many."""
        content = [token for token in words if token.kind == "word" and token.stem not in GRAMMAR_STEMS | PERIOD_STEMS]
        known = self._vocabulary.stems
        fixed = {token.stem: corrections(token.stem, known) for token in content if token.stem not in known}
        missing: dict[str, int] = {}
        for entity in entities:
            own = self._vocabulary.of(entity.name)
            unknown = [t for t in content if t.stem not in own and own.isdisjoint(fixed.get(t.stem, ()))]
            missing[entity.name] = len(unknown)
        fewest = min(missing.values(), default=0)
        best = [entity for entity in entities if missing[entity.name] == fewest]
        if len(entities) > 1 and fewest == len(content):
            texts = [token.text for token in content]
            reason = _unknown_reason(texts) if texts else "I do not know what the question is about."
            raise Refusal(reason, self._names(), texts or ["?"])
        if len(best) > _MOST_ENTITIES:
            reason = "The question may be about many tables; name the one you mean."
            raise Refusal(reason, self._closest(best, words), ["?"])
        return best

    def _closest(self, entities: Sequence[Entity], words: Sequence[Token]) -> list[str]:
        stems = {token.stem for token in words}

        def shared(entity: Entity) -> int:
            return max(len(stems & set(phrase)) for phrase in entity_phrases(entity))

        return [entity.table for entity in sorted(entities, key=lambda entity: (-shared(entity), entity.table))]

    def _parsed(
        self, words: Sequence[Token], entity: Entity, previous: Reading | None = None, adds: bool = False
    ) -> Reading:
        lexicon = Lexicon(self._layer, entity)
        today = self._clock.today
        read, elements, fixes = self._elements(words, lexicon, today)
        try:
            draft_reading = Parser(elements, read, lexicon, _fields(previous) if previous else ()).parse()
            if previous is not None:
                draft_reading = merge(previous, draft_reading, adds)
            return replace(Finisher(draft_reading, lexicon, today).reading(), corrections=fixes)
        except Refusal as refusal:
            if refusal.choices:
                raise
            raise Refusal(refusal.reason, self._names(entity), refusal.unknown) from refusal

    def _elements(
        self, words: Sequence[Token], lexicon: Lexicon, today: date
    ) -> tuple[Sequence[Token], list[Element], tuple[tuple[str, str], ...]]:
        """The elements of a question. What is no name may be a value in a column, and else a typing error."""
        scanner = Scanner(words, lexicon, today)
        elements = scanner.elements({})
        spans = value_spans(elements, words)
        if spans:
            elements = scanner.elements(self._values(spans, lexicon))
        unknown = [element for element in elements if element.kind == "unknown"]
        if not unknown:
            return words, elements, ()
        fixed = list(words)
        fixes = []
        for element in unknown:
            token = words[element.start]
            if token.stem in lexicon.stems:
                continue  # a part of a name, whose other part may be the error
            meant = (
                corrections(token.stem, lexicon.stems | GRAMMAR_STEMS | PERIOD_STEMS) if token.kind == "word" else []
            )
            if len(meant) != 1:
                texts = [element.detail for element in unknown]
                raise Refusal(_unknown_reason(texts), meant or self._names(lexicon.entity), texts)
            fixed[element.start] = replace(token, stem=meant[0])
            fixes.append((token.text, meant[0]))
        scanner = Scanner(fixed, lexicon, today)
        elements = scanner.elements({})
        if spans := value_spans(elements, fixed):
            elements = scanner.elements(self._values(spans, lexicon))
        if texts := [element.detail for element in elements if element.kind == "unknown"]:
            raise Refusal(_unknown_reason(texts), self._names(lexicon.entity), texts)
        return fixed, elements, tuple(fixes)

    def _values(
        self, spans: Mapping[tuple[int, int], Sequence[str]], lexicon: Lexicon
    ) -> dict[tuple[int, int], tuple[tuple[Field, str], ...]]:
        """Look the spans up in the text columns: as they are stored, whatever the case."""
        by_table: dict[str, list[Field]] = {}
        for near in lexicon.text_fields():
            by_table.setdefault(lexicon.entity_of(near).table, []).append(near)
        texts = ", ".join(
            spark_text(text) for text in dict.fromkeys(text for forms in spans.values() for text in forms)
        )
        matches: dict[str, list[tuple[Field, str]]] = {}
        for table, fields in by_table.items():
            selects = [
                f"SELECT DISTINCT {number} AS field, {near.dimension.sql} AS value FROM {table}"
                f" WHERE lower({near.dimension.sql}) IN ({texts})"
                for number, near in enumerate(fields)
            ]
            for number, value in self._reader.query("\nUNION ALL\n".join(selects), _MOST_VALUES):
                matches.setdefault(value.lower(), []).append((fields[number], value))
        stored = {span: next((text for text in forms if text in matches), "") for span, forms in spans.items()}
        return {span: tuple(sorted(matches[text], key=str)) for span, text in stored.items() if text}

    def _names(self, entity: Entity | None = None) -> list[str]:
        """Some of what can be asked for."""
        entities = [entity] if entity else [e for e in self._layer.entities.values() if not e.is_draft]
        named = [name for e in entities for name in (*e.metrics, f"how many {e.name}")]
        return named or [e.name for e in self._layer.entities.values()]

    # ---- answering -----------------------------------------------------------------------------------------------

    def _answer(self, reading: Reading, run: bool) -> Answer:
        if reading.comparison and reading.comparison.branch:
            return self._of_branches(reading, reading.comparison.branch, run)
        pins = dict(self._pins(reading))
        sql = SqlWriter(self._layer, zone=self._clock.zone).statement(reading)
        shown = Answer(True, reading.sentence(), sql, snapshots=_snapshots(pins))
        if not run:
            return shown
        result = self._reader.query(SqlWriter(self._layer, pins, self._clock.zone).statement(reading), MAX_ROWS + 1)
        rows = tuple(tuple(row) for row in result.rows())
        if len(rows) > MAX_ROWS:
            shown = replace(shown, reading=f"{shown.reading} Only the first {MAX_ROWS} rows are shown.")
        rows, columns = rows[:MAX_ROWS], tuple(result.names)
        groups = len(reading.groups) if reading.shape == AGGREGATES and not reading.of_groups else 0
        return replace(
            shown, columns=columns, rows=rows, chart=suggest_chart(columns, rows, groups, reading.sentence())
        )

    def _of_branches(self, reading: Reading, branch: str, run: bool) -> Answer:
        """One statement on both branches, side by side: no statement reads two."""
        other = Asker(self._reader.on(branch), self._written, self._clock)
        alone = replace(reading, comparison=None, descending=None, limit=0)
        here, there = (asker._answer(alone, run) for asker in (self, other))
        snapshots = {**here.snapshots, **{f"{table} on {branch}": pin for table, pin in there.snapshots.items()}}
        sentence = f"{reading.sentence()} The statement runs on both branches."
        shown = Answer(True, sentence, here.sql, snapshots=snapshots)
        if not run:
            return shown
        columns, rows = side_by_side(reading, here.rows, there.rows)
        return replace(shown, columns=columns, rows=rows[: reading.limit or MAX_ROWS])

    def _pins(self, reading: Reading) -> Iterator[tuple[tuple[str, str], str]]:
        """The snapshot of each table at each moment that the reading is about."""
        fields = _fields(reading)
        tables = [reading.entity.table]
        tables += [self._layer.entities[join.to_entity].table for near in fields for join in near.path]
        moments = [reading.when, *([reading.comparison.when] if reading.comparison else [])]
        for table in dict.fromkeys(tables):
            for when in dict.fromkeys(moments):
                current = self._tables[table].current
                pin = self._reader.snapshot(table, when) if when else current.id if current else ""
                if pin:
                    yield (table, when), pin


def side_by_side(
    reading: Reading, here: Sequence[Sequence[Any]], there: Sequence[Sequence[Any]]
) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]]:
    """The groups of two branches with the number of each and the difference; groups that one branch lacks stay."""
    assert reading.comparison is not None
    metric, groups = reading.metrics[0], len(reading.groups)
    absent = 0 if metric.aggregate == "count" else None
    numbers: dict[tuple[Any, ...], list[Any]] = {}
    for side, rows in enumerate((here, there)):
        for row in rows:
            numbers.setdefault(tuple(row[:groups]), [absent, absent])[side] = row[groups]
    joined = [
        (*group, own, other, None if own is None or other is None else own - other)
        for group, (own, other) in numbers.items()
    ]
    if reading.descending is not None:
        sign = -1 if reading.descending else 1
        joined.sort(key=lambda row: (row[groups] is None, sign * (row[groups] or 0)))
    else:
        joined.sort(key=lambda row: [(value is None, value) for value in row[:groups]])
    names = [*(group.name for group in reading.groups), metric.column]
    return (*names, f"{metric.column}_{reading.comparison.branch}", "change"), tuple(joined)


def _nearest(readings: list[Reading], stems: set[str]) -> list[Reading]:
    """Of several readings those whose entity the question names, and else those that need no join: a name belongs to the
    table that has it."""
    named = [reading for reading in readings if _names(stems, reading.entity)]
    own = [reading for reading in named or readings if not any(near.path for near in _fields(reading))]
    return own if len(own) == 1 else named or readings


def _names(stems: set[str], entity: Entity) -> bool:
    return any(stems.issuperset(words) for words in entity_phrases(entity))


def _fields(reading: Reading) -> list[Field]:
    return [*reading.groups, *(condition.field for condition in (*reading.conditions, *reading.part))]


def _snapshots(pins: Mapping[tuple[str, str], str]) -> dict[str, str]:
    return {f"{table} as of {when}" if when else table: pin for (table, when), pin in pins.items()}


def _without_lead(words: Sequence[Token]) -> tuple[Sequence[Token], bool]:
    """The words without those that refer to the question before, and whether these add to it: "and …", "… too"."""
    stems = [token.stem for token in words]
    for end, adds in (("instead", False), ("too", True), ("as well", True)):
        parts = end.split()
        if stems[-len(parts) :] == parts and len(stems) > len(parts):
            return _without_lead(words[: -len(parts)])[0], adds
    for lead in sorted(FOLLOW_UPS, key=len, reverse=True):
        parts = lead.split()
        if stems[: len(parts)] == parts and len(stems) > len(parts):
            return words[len(parts) :], lead in ADDING
    return words, False


def _unknown_reason(texts: Sequence[str]) -> str:
    listed = ", ".join(f'"{text}"' for text in dict.fromkeys(texts))
    return f"I do not know the word{'s' * (len(set(texts)) > 1)} {listed}."
