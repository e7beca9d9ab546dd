"""Changes in plain words: rows to delete, or a column to set. They are made on a branch of their own, and never merged here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, Protocol

from lakehouse.agent.answer import Answer
from lakehouse.agent.lexicon import dimension_phrases
from lakehouse.agent.reading import ROWS, Reading
from lakehouse.agent.refusal import Refusal
from lakehouse.agent.semantics import BOOLEAN, Dimension, quoted
from lakehouse.agent.sql import SqlWriter
from lakehouse.agent.words import phrase
from lakehouse.core.dataclass import dataclass
from lakehouse.core.quoting import spark_text

_DELETE = re.compile(r"(?:please )?(?:delete|remove) (?P<rows>.+)", re.IGNORECASE)
_SET = re.compile(
    r"(?:please )?(?:set|change) (?:the )?(?P<column>[\w ]+?) to (?:\"(?P<quoted>[^\"]+)\"|(?P<value>\S+)) (?:for|of|in) (?P<rows>.+)",
    re.IGNORECASE,
)
_EXAMPLES = ("delete the leads in London", 'set city to "New York" for leads with score over 8')
_NUMBER = re.compile(r"-?\d{1,30}(\.\d{1,30})?")
_NUMERIC = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")


@dataclass(frozen=True)
class Change:
    """A change that was understood."""

    sentence: str
    sql: str


@dataclass(frozen=True)
class BranchDiff:
    """What a change did, on the branch that was made for it."""

    branch: str
    summary: str
    """How many rows were added, removed and changed, by table."""
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    """The changed rows, cut at a hundred."""
    snapshots: Mapping[str, str]
    """The snapshot of each changed table on the branch."""

    def answer(self, sentence: str, sql: str) -> Answer:
        """The answer: the changed rows, and the commands for the person who decides."""
        reading = f"{sentence} Made on the branch {self.branch}; main is as before. {self.summary}"
        return Answer(True, reading, sql, self.columns, self.rows, self.snapshots, choices=next_steps(self.branch))


class LakeWriter(Protocol):
    """Changes a lake on new branches, within the rights of whoever asks."""

    def change(self, sql: str, message: str) -> BranchDiff:
        """Run a statement that changes rows of one table on a new branch, and leave the branch; raises what the guard refuses,
        and Refusal if no row changes. A branch is left only if the change is on it."""


def next_steps(branch: str) -> tuple[str, ...]:
    """What a person does with an agent's branch."""
    return tuple(f"lake branch {verb} {branch}" for verb in ("diff", "merge", "drop"))


def read_change(request: str, read: Callable[[str], Reading], zone: str) -> Change:
    """The change that a request asks for; raises Refusal unless it names rows in words that are all understood.

    Args:
        read: reads a question.
    """
    if deleting := _DELETE.fullmatch(request.strip().rstrip(".")):
        reading = _rows(deleting["rows"], read)
        condition = SqlWriter.condition_of(reading, zone)
        sentence = reading.sentence().replace("The rows", "Delete the rows", 1)
        return Change(sentence, f"DELETE FROM {reading.entity.table}\nWHERE {condition}")
    if setting := _SET.fullmatch(request.strip().rstrip(".")):
        reading = _rows(setting["rows"], read)
        column = _column(reading, setting["column"])
        value = _literal(column, setting["quoted"] or setting["value"])
        condition = SqlWriter.condition_of(reading, zone)
        sentence = reading.sentence().replace("The rows", f"Set {column.name} to {value} in the rows", 1)
        return Change(
            sentence, f"UPDATE {reading.entity.table}\nSET {quoted(column.name)} = {value}\nWHERE {condition}"
        )
    raise Refusal("I can delete rows, or set one column of rows.", _EXAMPLES)


def _rows(text: str, read: Callable[[str], Reading]) -> Reading:
    reading = read(f"list {text}")
    fields = [condition.field for condition in reading.conditions]
    if reading.shape != ROWS or reading.limit or reading.when or reading.comparison or reading.groups:
        raise Refusal("I do not know which rows you mean.", _EXAMPLES)
    if reading.corrections:
        word, meant = reading.corrections[0]
        raise Refusal(f'Is "{word}" meant to be "{meant}"? A change is made for what is written only.')
    if any(field.path for field in fields):
        raise Refusal("Rows are changed by their own columns only, not by those of other tables.")
    if not fields and not reading.period:
        raise Refusal("All rows would change: say which ones.", _EXAMPLES)
    return reading


def _column(reading: Reading, text: str) -> Dimension:
    words = phrase(text)
    named = [dimension for dimension in reading.entity.dimensions.values() if words in dimension_phrases(dimension)]
    if len(named) != 1 or named[0].expression:
        own = [name for name, dimension in reading.entity.dimensions.items() if not dimension.expression]
        raise Refusal(f'{reading.entity.table} has no one column "{text}" to set.', own)
    if named[0].name in reading.entity.key:
        raise Refusal(f"{named[0].name} is the key of {reading.entity.table}: it stays.")
    return named[0]


def _literal(column: Dimension, value: str) -> str:
    kind = column.type.partition("(")[0]
    if kind == "string":
        return spark_text(column.values.get(value, value))
    if kind in _NUMERIC and _NUMBER.fullmatch(value):
        return value
    if column.kind == BOOLEAN and value.lower() in ("true", "false"):
        return value.lower()
    if kind == "date" and _is_day(value):
        return f"DATE '{value}'"
    raise Refusal(f'"{value}" is no value of {column.name}, whose type is {column.type}.')


def _is_day(text: str) -> bool:
    try:
        return str(date.fromisoformat(text)) == text
    except ValueError:
        return False
