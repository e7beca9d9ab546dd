"""Plain statements: those that mean the same to Spark and DuckDB, letter by letter.

Only what is on the lists below is plain. Whatever is not recognised goes to sqlglot, so a list that is too short
costs time and never an answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lakehouse.core.names import TableName
from lakehouse.serve.sql.model import Statement, TableUse

_TOKEN = re.compile(
    r"\s*(?:(?P<word>[a-z_][a-z0-9_]*)|(?P<number>\d+(?:\.\d+)?)(?![a-z0-9_.])|(?P<text>'[^'\\]*')"
    r"|(?P<sign><>|<=|>=|!=|[=<>+\-*,().]))",
    re.IGNORECASE,
)
#: Functions that Spark and DuckDB agree on for every input.
_SHARED_FUNCTIONS = {"count", "sum", "min", "max", "avg", "coalesce", "lower", "upper", "abs"}
_BEFORE_PARENTHESIS = {"in", "and", "or", "not", "on", "where", "select", "by", "having", "from", "join", "as", "when"}
_MAY_OPEN = _SHARED_FUNCTIONS | _BEFORE_PARENTHESIS
_AFTER_TABLE = set(
    "where group order having limit join left right full inner outer cross on union intersect except".split()
)
#: Words that one of the two reads differently, or that need more understanding than a list of tokens gives.
_NOT_PLAIN = set(
    "with div rlike regexp lateral pivot unpivot date timestamp time interval version tablesample qualify cluster"
    " distribute sort transform values table cast try_cast filter over window within rollup cube grouping minus"
    " natural semi anti exists any all some array map struct escape using offset fetch explain describe show call"
    " insert update delete merge create drop alter truncate set use reset refresh cache replace overwrite into"
    " current_date current_timestamp current_user extract position substring trim overlay unnest sets default".split()
)


@dataclass(frozen=True)
class _Token:
    text: str
    start: int
    kind: str


_END = _Token("", -1, "end")


def parse_plain(text: str) -> Statement | None:
    """The statement if it is plain; else None."""
    tokens = _tokens(text)
    if not tokens or tokens[0].text != "select" or not all(map(_is_plain, tokens, [*tokens[1:], _END])):
        return None
    uses: list[TableUse] = []
    in_from = False
    for place, token in enumerate(tokens):
        if token.text in {"from", "join"}:
            in_from = True
            if tokens[place + 1 : place + 2] and tokens[place + 1].text != "(":
                use = _table(tokens, place + 1)
                if use is None:
                    return None
                uses.append(use)
        elif token.text in {"where", "group", "order", "having", "limit", "select", "on"}:
            in_from = False
        elif token.text == "," and in_from:
            # `from a, b`: only a parser can tell such a comma from others.
            return None
    return Statement(text, "read", tuple(uses))


def _tokens(text: str) -> list[_Token]:
    """The text cut into tokens; empty if any of it is not a plain token."""
    found: list[_Token] = []
    position = 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            return []
        kind = str(token.lastgroup)
        found.append(_Token(token[kind].lower(), token.start(kind), kind))
        position = token.end()
    return found


def _is_plain(token: _Token, following: _Token) -> bool:
    if token.kind != "word":
        return True
    return token.text not in _NOT_PLAIN and (following.text != "(" or token.text in _MAY_OPEN)


def _table(tokens: list[_Token], place: int) -> TableUse | None:
    """`namespace.table` at this place, and nothing more complicated."""
    parts = tokens[place : place + 3]
    after = tokens[place + 3] if place + 3 < len(tokens) else _END
    if [part.kind for part in parts] != ["word", "sign", "word"] or parts[1].text != "." or after.text in {".", "("}:
        return None
    name = TableName.parse(f"{parts[0].text}.{parts[2].text}")
    alias = after.text if after.kind == "word" and after.text not in _AFTER_TABLE else ""
    return TableUse(name, parts[0].start, parts[2].start + len(parts[2].text), alias=alias)
