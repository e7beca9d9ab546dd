"""The tokens of a statement, and its text without comments."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import QueryRejectedError

#: Longer statements would take seconds to parse.
_LONGEST = 1_000_000
#: A parenthesis in front keeps sqlglot from taking all that follows CALL, SHOW or EXPLAIN as one piece of text.
_PREFIX = "( "
_VALUE = "\0"
_HINT = re.compile(r"/\*\+[\w\s(),.'-]*\*/")


@dataclass(frozen=True)
class Token:
    """A word, sign or literal. `text` is lower case and without quotes."""

    text: str
    start: int
    end: int
    kind: str
    """`name` (a word, a sign, or a name in quotes), `string`, `number` or `hint`."""
    quoted: bool = False


def tokenize(text: str, dialect: str) -> list[Token]:
    """Split a statement into tokens.

    Raises:
        QueryRejectedError: it is too long, or a quote or comment is not closed.
    """
    import sqlglot
    from sqlglot.errors import TokenError

    if len(text) > _LONGEST:
        raise QueryRejectedError(
            f"The statement is longer than {_LONGEST:,} characters.", "Load rows with lake ingest."
        )
    try:
        tokens = sqlglot.tokenize(_PREFIX + text, dialect)[1:]
    except TokenError as exc:
        raise QueryRejectedError("A quote or a comment is not closed.", sql=text) from exc
    return [
        Token(
            token.text.lower(), token.start - len(_PREFIX), token.end + 1 - len(_PREFIX), *_kind(token.token_type.name)
        )
        for token in tokens
    ]


def _kind(name: str) -> tuple[str, bool]:
    if name.endswith("STRING"):
        return "string", True
    if name in ("IDENTIFIER", "NUMBER", "HINT"):
        return {"IDENTIFIER": "name", "NUMBER": "number", "HINT": "hint"}[name], name == "IDENTIFIER"
    return "name", False


def blank_comments(text: str, tokens: list[Token]) -> str:
    """The text with spaces in place of comments, so that an engine sees exactly the tokens that were checked.

    Engines disagree on where a comment ends: Spark nests them and continues one after a backslash, Trino does neither.
    """
    parts, position = [], 0
    for token in tokens:
        parts.append(re.sub(r"[^\n]", " ", text[position : token.start]))
        # sqlglot makes three tokens of `21L`, all with the same position.
        written = text[max(token.start, position) : token.end]
        if token.kind == "hint" and not _HINT.fullmatch(written):
            raise QueryRejectedError("A hint has names and numbers only.", "For example: /*+ BROADCAST(t) */", sql=text)
        parts.append(written)
        position = token.end
    return "".join(parts)


def split_name(tokens: Sequence[Token]) -> tuple[list[str], Sequence[Token]]:
    """The parts of `[IF EXISTS] a.b.c`, and the tokens after it."""
    if [token.text for token in tokens[:2]] == ["if", "exists"]:
        tokens = tokens[2:]
    end = 1
    while end < len(tokens) and tokens[end].text == ".":
        end += 2
    return [token.text for token in tokens[:end:2]], tokens[end:]


def property_names(tokens: Sequence[Token]) -> list[str]:
    """The names in a list of `name = value`, up to its closing parenthesis."""
    names, name, depth = [], "", 0
    for token in tokens:
        sign = "" if token.quoted else token.text
        depth += (sign in ("(", "[")) - (sign in (")", "]"))
        if depth < 0:
            break
        if depth == 0 and sign in ("=", ","):
            # After `=` comes the value, whose tokens are no part of a name.
            if sign == "=":
                names.append(name)
            name = "" if sign == "," else _VALUE
        elif name != _VALUE:
            name += token.text
    return [*names, name] if name not in ("", _VALUE) else names
