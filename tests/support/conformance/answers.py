"""The file with Spark's answers."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.conformance.canonical import Answer, difference

_SHAPE = re.compile(r"select (?P<id>id, )?(?P<expressions>.*?)(?P<rest> from edge\.\w+(?: where .*)?)?", re.DOTALL)
FILE = Path(__file__).parent / "spark_answers.jsonl.gz"


@dataclass(frozen=True)
class Recorded:
    """A statement with Spark's answer."""

    group: str
    sql: str
    answer: Answer | None
    """None if Spark refuses the statement."""
    mode: str = ""
    """How to compare: `close`, `sets`, `ordered` or, exactly but in any order, an empty string."""

    def difference(self, got: Answer) -> str:
        """How an answer differs from the recorded one; empty if it does not."""
        assert self.answer is not None
        return difference(self.answer, got, self.mode == "close", self.mode == "ordered", self.mode == "sets")

    @property
    def source(self) -> str:
        """What statements have in common that can be asked as one, if there is such a thing."""
        shape = _SHAPE.fullmatch(self.sql)
        return (
            f"{shape['id'] or ''}{shape['rest'] or ' literals'}"
            if shape and self.group not in ("examples", "queries") and self.answer
            else ""
        )

    @property
    def expressions(self) -> str:
        shape = _SHAPE.fullmatch(self.sql)
        assert shape is not None
        return shape["expressions"]

    @property
    def numbered(self) -> int:
        """How many columns come before those of the expressions: `id` or none."""
        return int(self.sql.startswith("select id, "))

    def select(self, expressions: str) -> str:
        """The same statement with other expressions."""
        shape = _SHAPE.fullmatch(self.sql)
        assert shape is not None
        return f"select {shape['id'] or ''}{expressions}{shape['rest'] or ''}"

    def to_json(self) -> dict[str, Any]:
        line: dict[str, Any] = {"group": self.group, "sql": self.sql, "mode": self.mode}
        return line if self.answer is None else {**line, "columns": self.answer.columns, "rows": self.answer.rows}


@dataclass(frozen=True)
class Record:
    """What Spark answered."""

    spark: str
    """Its version."""
    functions: list[str]
    """The names of its built-in functions."""
    statements: list[Recorded]


@cache
def load() -> Record:
    """Read the file."""
    with gzip.open(FILE, "rt", encoding="utf-8") as lines:
        head = json.loads(next(lines))
        return Record(head["spark"], head["functions"], [_recorded(json.loads(line)) for line in lines])


def _recorded(line: dict[str, Any]) -> Recorded:
    answer = Answer(line["columns"], line["rows"]) if "columns" in line else None
    return Recorded(line["group"], line["sql"], answer, line["mode"])


def save(spark: str, functions: list[str], statements: Iterable[Recorded]) -> None:
    """Write the file; the same answers make the same bytes."""
    lines = [{"spark": spark, "functions": functions}, *(statement.to_json() for statement in statements)]
    text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
    with FILE.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as file:
        file.write(text.encode())
