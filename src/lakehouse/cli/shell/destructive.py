"""Recognise statements that destroy something, before which an interactive shell asks."""

from __future__ import annotations

import re

from lakehouse.cli.shell.parser import Command, Sql, Statement, without_literals

_PATTERNS = (
    (re.compile(r"^drop\s+(table|view|namespace|schema|database)\b"), "drops a {0}"),
    (re.compile(r"^truncate\b"), "deletes all rows of a table"),
    (re.compile(r"^insert\s+overwrite\b"), "replaces rows of a table"),
    (re.compile(r"^create\s+or\s+replace\s+table\b"), "replaces a table"),
    (re.compile(r"^alter\s+table\b.*\bdrop\s+(column|columns|partition)\b"), "drops a {0}"),
)
_NEEDS_WHERE = {"delete": "deletes all rows of a table", "update": "changes all rows of a table"}


def danger(statement: Statement) -> str:
    """What a statement destroys, as the end of a sentence; empty if nothing."""
    if isinstance(statement, Command):
        is_drop = statement.name == "branch" and statement.arguments[:1] == ("drop",)
        return "drops a branch and what was not merged" if is_drop else ""
    return _danger_of_sql(statement)


def _danger_of_sql(statement: Sql) -> str:
    text = " ".join(without_literals(statement.text).lower().split())
    for pattern, meaning in _PATTERNS:
        if found := pattern.search(text):
            return meaning.format(*found.groups())
    first = text.partition(" ")[0]
    return _NEEDS_WHERE[first] if first in _NEEDS_WHERE and not re.search(r"\bwhere\b", text) else ""
