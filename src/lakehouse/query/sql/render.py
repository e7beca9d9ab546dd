"""Render a statement for an engine, and map error positions back to the user's text."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lakehouse.core.errors import QueryRejectedError
from lakehouse.core.statement import Statement


def for_spark(statement: Statement, names: Mapping[int, str]) -> str:
    """The user's text with the table names at the given positions replaced."""
    text = statement.text
    for use in sorted(statement.uses, key=lambda use: use.start, reverse=True):
        text = text[: use.start] + names[use.start] + text[use.end :]
    return text


def map_error_position(error: QueryRejectedError, statement: Statement) -> QueryRejectedError:
    """The same error, with its position in the user's text instead of the rendered one."""
    if error.sql == statement.text or not error.pointer():
        return error
    assert error.line and error.column
    message = error.message.rsplit(" (line ", 1)[0]
    line_start = sum(len(line) for line in error.sql.splitlines(keepends=True)[: error.line - 1])
    place = _same_word(error.sql, line_start + error.column - 1, statement.text)
    if place is None:
        return QueryRejectedError(message, error.hint, sql=statement.text)
    before = statement.text[:place]
    line, column = before.count("\n") + 1, place - (before.rfind("\n") + 1) + 1
    return QueryRejectedError(message, error.hint, sql=statement.text, line=line, column=column)


_WORD = re.compile(r"""--[^\n]*|/\*.*?\*/|(?P<word>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|[\w$]+)""", re.DOTALL)


def _words(sql: str, name_quotes: str) -> list[tuple[int, int, str]]:
    """Names and string literals of a statement with start and end; names without their quotes."""
    matches = [match for match in _WORD.finditer(sql) if match["word"]]
    return [(match.start(), match.end(), match["word"].strip(name_quotes).lower()) for match in matches]


def _same_word(given: str, place: int, users: str) -> int | None:
    """Position in the user's text of the word at (or after) a position in the rendered text."""
    words = _words(given, '"`')
    pointed = next((number for number, (_, end, _) in enumerate(words) if end > place), None)
    if pointed is None:
        return None
    word = words[pointed][2]
    # In Spark's dialect, which the user writes, double quotes enclose strings.
    written = [start for start, _, other in _words(users, "`") if other == word]
    if len(written) == 1:
        return written[0]
    same = [number for number, (_, _, other) in enumerate(words) if other == word]
    # Several occurrences match only if both texts have the same number of them.
    return written[same.index(pointed)] if len(written) == len(same) else None
