"""Answers questions with the planner and a model: the model proposes, the same guard and engine decide, the answer says who gave it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, Protocol

from lakehouse.agent import AgentSettings
from lakehouse.agent.answer import Answer, suggest_chart
from lakehouse.agent.ask import Asker, Clock, LakeReader
from lakehouse.agent.change import LakeWriter
from lakehouse.agent.plan import Proposal, to_reading
from lakehouse.agent.prompt import describe, message, relevant
from lakehouse.agent.reading import AGGREGATES
from lakehouse.agent.refusal import ModelFailure, Refusal
from lakehouse.agent.semantics import Semantics
from lakehouse.agent.sql import SqlWriter
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import LakeError

_LONGEST_SENTENCE = 300
_MOST_EARLIER = 5


@dataclass(frozen=True)
class CheckedProposal:
    """A proposal that passed the guard and the dry run."""

    answer: Answer
    """Without rows."""
    statement: str = ""
    """On pinned snapshots; empty if the model refused."""
    groups: int = 0
    """The number of columns that the rows are grouped by."""


class Model(Protocol):
    """A model that proposes how to answer a question."""

    @property
    def name(self) -> str:
        """As the settings have it."""

    def propose(
        self, prompt: str, check: Callable[[Proposal], CheckedProposal], writes: bool = False
    ) -> CheckedProposal:
        """Ask for a proposal until one passes the check, at most three times; raises ModelFailure.

        Args:
            check: raises Refusal or LakeError with what is wrong, which the model is told.
            writes: a change is asked for.
        """


class AdvisedAsker(Asker):
    """Answers questions with a model's help."""

    def __init__(
        self, reader: LakeReader, model: Model, settings: AgentSettings, written: Semantics | None, clock: Clock
    ) -> None:
        super().__init__(reader, written, clock)
        self._model, self._settings = model, settings

    def ask(self, question: str, conversation: Sequence[str] = (), run: bool = True) -> Answer:
        """Answer a question: the planner and the model each on their own; the planner's answer is used where it has one."""
        planned = super().ask(question, conversation, run)
        try:
            self._tokens(question)
        except Refusal:
            return planned
        if planned.answered and not run:
            return planned  # a statement is only compared by its rows
        try:
            proposed = self._proposed(question, conversation, run)
        except ModelFailure as failure:
            return self._said(planned, f"The model {self._model.name} {failure.reason}")
        return self._compared(planned, proposed)

    def change(self, request: str, writer: LakeWriter, run: bool = True) -> Answer:
        """Make a change on a branch: that of the planner if it understands it, else that of the model."""
        planned = super().change(request, writer, run)
        if planned.answered:
            return planned

        def made(proposal: Proposal) -> CheckedProposal:
            """Run the statement on a branch, which is its dry run, too: a branch is left only if that works."""
            if proposal.refusal.strip() and not proposal.sql.strip():
                return CheckedProposal(Answer(False, reason=_sentence(proposal.refusal)))
            if not proposal.sql.strip():
                raise Refusal("Give sql: one DELETE, UPDATE, INSERT or MERGE; or a refusal.")
            sql, sentence = proposal.sql.strip().rstrip(";").rstrip(), self._reading_of(proposal)
            if not run:
                return CheckedProposal(Answer(True, sentence, sql))
            return CheckedProposal(writer.change(sql, sentence).answer(sentence, sql))

        try:
            proposed = self._model.propose(self._prompt(request, ()), made, writes=True).answer
        except ModelFailure as failure:
            return self._said(planned, f"The model {self._model.name} {failure.reason}")
        return self._compared(planned, proposed)

    # ---- the model's answer ----------------------------------------------------------------------------------------

    def _proposed(self, question: str, conversation: Sequence[str], run: bool) -> Answer:
        checked = self._model.propose(self._prompt(question, conversation), self._checked)
        if not run or not checked.answer.answered:
            return checked.answer
        try:
            return self._with_rows(checked)
        except LakeError as exc:
            raise ModelFailure(f"proposed a statement that failed: {exc.message}") from exc

    def _prompt(self, question: str, conversation: Sequence[str]) -> str:
        earlier = list(conversation)[-_MOST_EARLIER:]
        texts = [question, *earlier]
        entities = relevant(self._layer, self._vocabulary, texts)
        facts = {
            "today": str(self._clock.today),
            "time_zone": self._clock.zone,
            "conversation": earlier,
            "entities": describe(self._layer, entities, texts, self._rows),
        }
        return message(question, facts)

    def _rows(self, sql: str, limit: int) -> Sequence[Sequence[Any]]:
        try:
            return self._reader.query(sql, limit, self._settings.timeout_s).rows()
        except LakeError:
            return []  # the model does without examples

    def _checked(self, proposal: Proposal) -> CheckedProposal:
        given = [bool(proposal.plan), bool(proposal.sql.strip()), bool(proposal.refusal.strip())]
        if sum(given) != 1:
            raise Refusal("Give exactly one of plan, sql and refusal.")
        if proposal.refusal.strip():
            return CheckedProposal(Answer(False, reason=_sentence(proposal.refusal)))
        checked = self._of_plan(proposal) if proposal.plan else self._of_sql(proposal)
        # LIMIT 0 is planned, with every name and type, and reads no row.
        self._reader.query(f"SELECT * FROM (\n{checked.statement}\n) LIMIT 0", 1, self._settings.timeout_s).rows()
        return checked

    def _of_plan(self, proposal: Proposal) -> CheckedProposal:
        assert proposal.plan is not None
        reading = to_reading(proposal.plan, self._layer)
        pins = dict(self._pins(reading))
        groups = len(reading.groups) if reading.shape == AGGREGATES else 0
        pinned = SqlWriter(self._layer, pins, self._clock.zone).statement(reading)
        return CheckedProposal(self._answer(reading, run=False), pinned, groups)

    def _of_sql(self, proposal: Proposal) -> CheckedProposal:
        sql = proposal.sql.strip().rstrip(";").rstrip()
        pinned, snapshots = sql, {}
        for use in sorted(self._reader.uses(sql), key=lambda use: -use.start):
            table, info = str(use.name), self._tables.get(str(use.name))
            if use.metadata_table or info is None:
                continue
            pin = self._reader.snapshot(table, use.as_of) if use.as_of else info.current.id if info.current else ""
            if pin:
                pinned = f"{pinned[: use.start]}{table} VERSION AS OF {pin}{pinned[use.end :]}"
                snapshots[f"{table} as of {use.as_of}" if use.as_of else table] = pin
        return CheckedProposal(Answer(True, self._reading_of(proposal), sql, snapshots=snapshots), pinned, 1)

    def _reading_of(self, proposal: Proposal) -> str:
        return f"The model's reading: {_sentence(proposal.reading) or 'not given.'}"

    def _with_rows(self, checked: CheckedProposal) -> Answer:
        most = self._settings.max_rows
        result = self._reader.query(checked.statement, most + 1, self._settings.timeout_s)
        rows, columns, answer = tuple(tuple(row) for row in result.rows()), tuple(result.names), checked.answer
        if len(rows) > most:
            answer = replace(answer, reading=f"{answer.reading} Only the first {most} rows are shown.")
        chart = suggest_chart(columns, rows[:most], checked.groups, answer.reading) if len(columns) == 2 else None
        return replace(answer, columns=columns, rows=rows[:most], chart=chart)

    # ---- both ------------------------------------------------------------------------------------------------------

    def _compared(self, planned: Answer, proposed: Answer) -> Answer:
        name = self._model.name
        if planned.answered and not proposed.answered:
            return self._said(planned, f"The planner answered; the model {name} refused: {proposed.reason}")
        if planned.answered:
            if same_rows(planned.rows, proposed.rows):
                return self._said(planned, f"The planner answered; the model {name} has the same result.")
            other = f"The planner answered; the model {name} has another result, whose SQL is the choice. {proposed.reading}"
            return replace(self._said(planned, other), choices=(proposed.sql,))
        if not proposed.answered:
            return self._said(planned, f"The model {name} refused, too: {proposed.reason}")
        return self._said(proposed, f"The model {name} answered; the planner did not: {planned.reason}")

    def _said(self, answer: Answer, sentence: str) -> Answer:
        """The answer with a sentence about who gave it."""
        if answer.answered:
            return replace(answer, reading=f"{answer.reading} {sentence}")
        return replace(answer, reason=f"{answer.reason} {sentence}")


def same_rows(left: Sequence[Sequence[Any]], right: Sequence[Sequence[Any]]) -> bool:
    """Whether both have the same rows, in any order of rows and columns; doubles may differ in their last digits."""
    return Counter(map(_comparable, left)) == Counter(map(_comparable, right))


def _comparable(row: Sequence[Any]) -> tuple[str, ...]:
    values = (f"{float(v):.9g}" if isinstance(v, int | float | Decimal) else str(v) for v in row)
    return tuple(sorted(values))


def _sentence(text: str) -> str:
    """A text of the model as one sentence of one line, cut."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    if len(line) > _LONGEST_SENTENCE:
        return line[:_LONGEST_SENTENCE] + "…"
    return line if not line or line[-1] in ".!?" else line + "."
