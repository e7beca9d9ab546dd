"""Sets statements out in lines, for people who read them. Only white space changes, so the meaning cannot."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import field

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import QueryRejectedError
from lakehouse.query.sql.tokens import tokenize

_WIDTH, _STEP, _DEEPEST = 88, 2, 100
#: A subquery that is longer than this has lines of its own.
_INLINE_QUERY = 50
_JOIN = re.compile(r"(natural )?((inner|cross|left|right|full) )?((outer|semi|anti) )?join|lateral view( outer)?")
_HEADS = {
    *("with", "select", "from", "where", "group by", "having", "order by", "sort by", "cluster by", "distribute by"),
    *("limit", "offset", "window", "union", "except", "intersect", "minus", "qualify"),
}
#: Words that begin a clause only in some statements; elsewhere they are names. All other statements may have VALUES.
_HEADS_OF = {
    "update": {"set"},
    "merge": {"using", "on", "when"},
    "create": {"using", "partitioned by", "tblproperties", "location"},
}
_CONDITIONS = {"where", "having", "on", "when", "qualify"}
_QUERIES = {"select", "with", "from", "values"}
_SPACED = {"=", "<", ">", "<=", ">=", "<>", "!=", "==", "<=>", "+", "||", "&&"}
_LONGEST_HEAD = 4


@dataclass
class _Token:
    """A word, sign or literal as it is written, with the comments around it."""

    text: str
    word: str = ""
    """In lower case; empty for literals and quoted names, which begin no clause."""
    is_apart: bool = False
    """White space is written before it."""
    before: str = ""
    """Comments on lines of their own before it."""
    after: str = ""
    """A comment behind it on the same line."""


@dataclass
class _Group:
    """What stands between parentheses."""

    opening: _Token
    items: list[_Item] = field(default_factory=list)
    closing: _Token = field(default_factory=lambda: _Token(")"))
    flat: str | None = None
    """All of it on one line; None if a comment forbids that."""

    @property
    def is_query(self) -> bool:
        return bool(self.items) and isinstance(self.items[0], _Token) and self.items[0].word in _QUERIES


_Item = _Token | _Group


def set_out(text: str) -> str:
    """Statements with a line for each clause and indented subqueries; comments and all words stay as they are.

    Raises:
        QueryRejectedError: a quote, comment or parenthesis is not closed.
    """
    writer = _Writer()
    for statement in _statements(_tree(_tokens(text))):
        writer.statement(statement)
    result = writer.text()
    return result if _without_space(result) == _without_space(text) else text


def _without_space(text: str) -> list[str]:
    """The tokens and comments of a text."""
    parts, position = [], 0
    for token in tokenize(text, "spark"):
        parts += ["".join(text[position : token.start].split()), text[max(token.start, position) : token.end]]
        position = max(position, token.end)
    return [part for part in (*parts, "".join(text[position:].split())) if part]


def _tokens(text: str) -> list[_Token]:
    tokens, position = [_Token("")], 0
    for token in tokenize(text, "spark"):
        written = text[max(token.start, position) : token.end]
        if not written:
            continue  # a further part of a token such as 21L
        gap = text[position : token.start]
        behind, above = _comments(gap)
        tokens[-1].after = behind if tokens[-1].text else ""
        above = above if tokens[-1].text else gap.strip()
        is_word = token.kind == "name" and not token.quoted
        tokens.append(_Token(written, token.text if is_word else "", bool(gap), above))
        position = token.end
    behind, above = _comments(text[position:])
    tokens[-1].after = behind if len(tokens) > 1 else ""
    rest = above if len(tokens) > 1 else text.strip()
    return [*tokens[1:], *([_Token("", before=rest)] if rest else [])]


def _comments(gap: str) -> tuple[str, str]:
    """The comment behind the token before a gap, and those on lines of their own."""
    if gap.lstrip(" \t\r").startswith("\n"):
        return "", gap.strip()
    if gap.lstrip().startswith("--"):
        behind, _, above = gap.partition("\n")
        return behind.strip(), above.strip()
    return gap.strip(), ""


def _tree(tokens: Sequence[_Token]) -> list[_Item]:
    top: list[_Item] = []
    open_groups: list[_Group] = []
    for token in tokens:
        items = open_groups[-1].items if open_groups else top
        if token.word == "(":
            group = _Group(token)
            items.append(group)
            open_groups.append(group)
        elif token.word == ")" and open_groups:
            group = open_groups.pop()
            group.closing, group.flat = token, _flat([group.opening, *group.items, token])
        else:
            items.append(token)
        if len(open_groups) > _DEEPEST:
            raise QueryRejectedError("The statement is nested too deeply.", "Use common table expressions.")
    if open_groups:
        raise QueryRejectedError("A parenthesis is not closed.", "Close it, and format again.")
    return top


def _statements(items: Sequence[_Item]) -> Iterator[list[_Item]]:
    start = 0
    for position, item in enumerate(items):
        if isinstance(item, _Token) and item.word == ";":
            yield list(items[start : position + 1])
            start = position + 1
    if start < len(items):
        yield list(items[start:])


def _flat(items: Sequence[_Item]) -> str | None:
    """Items on one line, or None if a comment forbids it."""
    text, last = "", ""
    for item in items:
        first = item.opening if isinstance(item, _Group) else item
        written = item.flat if isinstance(item, _Group) else item.text
        comments = first.before + (item.closing.after if isinstance(item, _Group) else item.after)
        if written is None or "\n" in comments or "--" in comments or first.before:
            return None
        text += (" " if _needs_space(last, first) else "") + written + (f" {comments}" if comments else "")
        last = comments or (item.closing.text if isinstance(item, _Group) else item.text)
    return text


def _needs_space(last: str, token: _Token) -> bool:
    if not last or last in ("(", ".") or token.text in (",", ")", ";", "."):
        return False
    return token.is_apart or last == "," or last in _SPACED or token.text in _SPACED or last.endswith("*/")


def _head(items: Sequence[_Item], position: int, heads: set[str]) -> int:
    """How many tokens of a clause's name begin here; 0 if none does."""
    words = [item.word if isinstance(item, _Token) else "" for item in items[position : position + _LONGEST_HEAD]]
    if not words[0] or (position and isinstance(items[position - 1], _Token) and _ends_name(items[position - 1])):
        return 0
    for count in range(len(words), 0, -1):
        name = " ".join(words[:count])
        if all(words[:count]) and (name in heads or _JOIN.fullmatch(name)):
            return count
    return 0


def _ends_name(item: _Item) -> bool:
    """Whether what follows is the rest of a name, or an alias."""
    return isinstance(item, _Token) and item.word in (".", "as")


def _clauses(items: Sequence[_Item], heads: set[str]) -> list[list[_Item]]:
    """Items by clause; words within CASE … END begin none."""
    parts: list[list[_Item]] = [[]]
    cases, rest_of_head = 0, 0
    for position, item in enumerate(items):
        word = item.word if isinstance(item, _Token) else ""
        cases += (word == "case") - (word == "end" and cases > 0)
        count = 0 if cases or rest_of_head else _head(items, position, heads)
        if count and parts[-1]:
            parts.append([])
        rest_of_head = count - 1 if count else max(rest_of_head - 1, 0)
        parts[-1].append(item)
    return parts


def _pieces(items: Sequence[_Item], is_condition: bool) -> list[list[_Item]]:
    """Items of a clause by comma, or by AND, OR and ON."""
    parts: list[list[_Item]] = [[]]
    cases, betweens = 0, 0
    for item in items:
        word = item.word if isinstance(item, _Token) else ""
        cases += (word == "case") - (word == "end" and cases > 0)
        betweens += word == "between"
        if is_condition and word in ("and", "or", "on") and not cases and parts[-1]:
            if word == "and" and betweens:
                betweens -= 1
            else:
                parts.append([])
        parts[-1].append(item)
        if not is_condition and word == "," and not cases:
            parts.append([])
    return [part for part in parts if part]


class _Writer:
    """The lines written so far."""

    def __init__(self) -> None:
        self.lines = [""]
        self.indent = 0
        self.last = ""
        self.heads = _HEADS
        self.must_break = False
        """A comment ends with its line."""

    def text(self) -> str:
        return "\n".join(self.lines).strip()

    def statement(self, items: Sequence[_Item]) -> None:
        if self.lines != [""]:
            self.lines += ["", ""]
        first = items[0]
        self.heads = _HEADS | _HEADS_OF.get(first.word if isinstance(first, _Token) else "", {"values"})
        self.indent, self.last, self.must_break = 0, "", False
        self.write_clauses(items, 0)

    def new_line(self, indent: int) -> None:
        if self.lines[-1].strip():
            self.lines.append("")
        self.lines[-1], self.indent, self.last, self.must_break = " " * indent, indent, "", False

    def write_clauses(self, items: Sequence[_Item], indent: int) -> None:
        for number, clause in enumerate(_clauses(items, self.heads)):
            if number:
                self.new_line(indent)
            self.write_clause(clause, indent)

    def write_clause(self, items: Sequence[_Item], indent: int) -> None:
        count = _head(items, 0, self.heads)
        name = " ".join(item.word for item in items[:count] if isinstance(item, _Token))
        is_condition = name in _CONDITIONS or bool(_JOIN.fullmatch(name))
        if self.fits(items):
            self.write_items(items, indent)
            return
        pieces = _pieces(items[count:], is_condition)
        self.write_items(items[:count], indent)
        if is_condition or len(pieces) <= 1:
            self.write_items(pieces[0] if pieces else [], indent)
            pieces = pieces[1:]
        for piece in pieces:
            self.new_line(indent + _STEP)
            self.write_items(piece, indent + _STEP)

    def fits(self, items: Sequence[_Item]) -> bool:
        """Whether items may stand on the rest of this line."""
        flat = _flat(items)
        has_long_query = any(
            isinstance(item, _Group) and item.is_query and len(item.flat or "") > _INLINE_QUERY for item in items
        )
        return flat is not None and len(self.lines[-1]) + len(flat) < _WIDTH and not has_long_query

    def write_items(self, items: Sequence[_Item], indent: int) -> None:
        for item in items:
            if isinstance(item, _Token):
                self.write(item)
            elif self.fits([item]):
                self.write(item.opening, item.flat)
                self.last = ")"
                self.comment(item.closing.after)
            else:
                self.write_group(item, indent)

    def write_group(self, group: _Group, indent: int) -> None:
        self.write(group.opening)
        if not group.items:
            self.write(group.closing)
            return
        self.new_line(indent + _STEP)
        if group.is_query:
            self.write_clauses(group.items, indent + _STEP)
        else:
            pieces = _pieces(group.items, False)
            for number, piece in enumerate(pieces if len(pieces) > 1 else _pieces(group.items, True)):
                if number:
                    self.new_line(indent + _STEP)
                self.write_items(piece, indent + _STEP)
        self.new_line(indent)
        self.write(group.closing)

    def write(self, token: _Token, text: str | None = None) -> None:
        indent = self.indent
        if token.before:
            for line in token.before.split("\n"):
                self.new_line(indent)
                self.lines[-1] += line.strip() if token.before.startswith("--") else line
            self.must_break = True
        if self.must_break:
            self.new_line(indent)
        written = (" " if _needs_space(self.last, token) else "") + (token.text if text is None else text)
        first, *others = written.split("\n")
        self.lines[-1] += first
        self.lines += others
        self.last = token.text
        if text is None:
            self.comment(token.after)

    def comment(self, text: str) -> None:
        if text:
            first, *others = text.split("\n")
            self.lines[-1] += f" {first}"
            self.lines += others
            self.must_break, self.last = "--" in text, "*/"
