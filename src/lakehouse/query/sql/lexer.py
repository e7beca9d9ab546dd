"""The tokens of a query in Spark's SQL, and how a parser reads them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from lakehouse.core.dataclass import dataclass
from lakehouse.query.sql import ast

T = TypeVar("T")

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|--[^\r\n]*)
  | (?P<comment>/\*)
  | (?P<number>(?:\d+\.?\d*|\.\d+)(?P<exponent>[eE][+-]?\d+)?(?P<suffix>[lL]|[sS]|[yY]|[dD]|[fF]|[bB][dD])?(?![A-Za-z0-9_]))
  | (?P<raw>[rR](?:'[^']*'|"[^"]*"))
  | (?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
  | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<quoted>`(?:[^`]|``)*`)
  | (?P<sign><=>|<>|!=|<=|>=|==|\|\||->|=>|::|[-+*/%(),.<>=\[\]&|^~!:;])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7][0-7]|.)", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


#: Deeper nesting would end in a RecursionError of Python.
_DEEPEST = 60


class NotParsedError(Exception):
    """The text has syntax that this parser does not know."""


@dataclass(frozen=True)
class Token:
    """A word, sign or literal.

    `text` is what it means: a word in lower case, a name or string without its quotes, a number without its suffix.
    """

    kind: str
    """`word`, `quoted` (a name in backquotes), `number`, `string`, `sign` or `end`."""
    text: str
    start: int
    end: int
    written: str = ""
    """A word as it was written; the suffix of a number."""


def tokenize(text: str) -> list[Token]:
    """Split a query into tokens, with one of the kind `end` behind them."""
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise NotParsedError(f"unexpected {text[position]!r}")
        position = match.end()
        if match["comment"]:
            position = _end_of_comment(text, match.start())
        elif not match["space"]:
            tokens.append(_token(match))
    return [*tokens, Token("end", "", len(text), len(text))]


def without_comments(text: str, tokens: list[Token]) -> str:
    """The text with spaces in place of comments, so that Spark sees exactly the tokens that were parsed.

    Spark continues a comment behind a backslash at the end of its line, for example, and this lexer does not.
    """
    parts, position = [], 0
    for token in (token for token in tokens if token.text != ";" or token.kind != "sign"):
        parts.append(re.sub(r"[^\r\n]", " ", text[position : token.start]))
        parts.append(text[token.start : token.end])
        position = token.end
    return "".join(parts)


def _token(match: re.Match[str]) -> Token:
    start, end, text = match.start(), match.end(), match[0]
    if match["word"]:
        return Token("word", text.lower(), start, end, text)
    if match["quoted"]:
        return Token("quoted", text[1:-1].replace("``", "`"), start, end, text[1:-1].replace("``", "`"))
    if match["number"]:
        suffix = match["suffix"] or ""
        return Token("number", text.removesuffix(suffix), start, end, suffix.upper())
    if match["raw"]:
        return Token("string", text[2:-1], start, end)
    if match["string"]:
        return Token("string", unescape(text[1:-1]), start, end)
    return Token("sign", {"==": "=", "<>": "!="}.get(text, text), start, end)


def unescape(content: str) -> str:
    """The text that a string literal stands for. `\\%` and `\\_` keep their backslash, for LIKE."""

    def character(match: re.Match[str]) -> str:
        escaped = match[1]
        if len(escaped) in (5, 9):
            return chr(int(escaped[1:], 16))
        if len(escaped) == 3:
            return chr(int(escaped, 8))
        return match[0] if escaped in "%_" else _ESCAPED.get(escaped, escaped)

    return _ESCAPE.sub(character, content) if "\\" in content else content


def _end_of_comment(text: str, start: int) -> int:
    """Spark nests comments; a hint (`/*+`) is left to Spark."""
    if text.startswith("/*+", start):
        raise NotParsedError("a hint")
    depth = 0
    for match in re.compile(r"/\*|\*/").finditer(text, start):
        depth += 1 if match[0] == "/*" else -1
        if depth == 0:
            return match.end()
    raise NotParsedError("a comment without an end")


class TokenReader:
    """Reads the tokens of a query in their order, and keeps the tables and functions that its parsers find."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens, self._position, self._depth = tokens, 0, 0
        self.tables: list[ast.Table] = []
        self.functions: list[str] = []
        self.table_functions: list[str] = []

    @property
    def next(self) -> Token:
        return self._tokens[self._position]

    @property
    def previous(self) -> Token:
        return self._tokens[self._position - 1]

    def ahead(self, count: int = 1) -> Token:
        return self._tokens[min(self._position + count, len(self._tokens) - 1)]

    def advance(self) -> Token:
        token = self.next
        self._position += 1
        return token

    def skip(self, count: int) -> None:
        self._position += count

    def place(self) -> tuple[int, int, int, int]:
        return self._position, len(self.tables), len(self.functions), len(self.table_functions)

    def return_to(self, place: tuple[int, int, int, int]) -> None:
        """Read on from an earlier place, and forget what was found behind it."""
        self._position, tables, functions, table_functions = place
        del self.tables[tables:], self.functions[functions:], self.table_functions[table_functions:]

    def at(self, *texts: str) -> bool:
        """Whether the next tokens are these words or signs."""
        if self.ahead(0).text != texts[0]:  # mostly
            return False
        ahead = [self.ahead(number) for number in range(len(texts))]
        return all(
            token.text == text and token.kind in ("word", "sign") for token, text in zip(ahead, texts, strict=True)
        )

    def at_query(self, ahead: int = 0) -> bool:
        """Whether a query starts at the next token, or so many tokens behind it."""
        token = self.ahead(ahead)
        return token.kind == "word" and token.text in ("select", "with", "values")

    def opens_query(self) -> bool:
        """Whether what follows an opening parenthesis is a query and not a joined table."""
        ahead = 0
        while self.ahead(ahead).text == "(":
            ahead += 1
        return self.at_query(ahead)

    def accept(self, *texts: str) -> bool:
        if not self.at(*texts):
            return False
        self._position += len(texts)
        return True

    def expect(self, *texts: str) -> None:
        if not self.accept(*texts):
            raise NotParsedError(f"expected {' '.join(texts).upper()} before {self.next.text!r}")

    def identifier(self) -> str:
        token = self.advance()
        if token.kind not in ("word", "quoted"):
            raise NotParsedError(f"expected a name before {token.text!r}")
        return token.written

    def listed(self, item: Callable[[], T]) -> tuple[T, ...]:
        items = [item()]
        while self.accept(","):
            items.append(item())
        return tuple(items)

    def in_parentheses(self, item: Callable[[], T]) -> tuple[T, ...]:
        self.expect("(")
        items = () if self.at(")") else self.listed(item)
        self.expect(")")
        return items

    def deeper(self, parse: Callable[[], T]) -> T:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise NotParsedError("deep nesting")
        result = parse()
        self._depth -= 1
        return result
