"""Regular expressions: Java's syntax, written anew for RE2 as far as both match the same.

What is not in the list below (lookaround, references, possessive quantifiers, …) runs on Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import field

from lakehouse.core.dataclass import dataclass
from lakehouse.query.translate.rules import rule, written
from lakehouse.query.translate.scope import Special
from lakehouse.query.translate.types import NotTranslatedError
from lakehouse.query.translate.values import Value, literal_int, literal_text, needs_spark, string

_LINE_ENDS = "\\n\\r\x85\u2028\u2029"
#: Inside brackets. Java's `\s` has the vertical tab, RE2's has not.
_CLASSES = {
    "d": "0-9",
    "D": "\\D",
    "w": "0-9A-Za-z_",
    "W": "\\W",
    "s": "\\x09-\\x0d\\x20",
    "S": "\\x00-\\x08\\x0e-\\x1f\\x21-\U0010ffff",
}
#: Java's names of ASCII characters.
_NAMED = {"Alpha": "A-Za-z", "Digit": "0-9", "Alnum": "0-9A-Za-z", "Upper": "A-Z", "Lower": "a-z", "Punct": "[:punct:]"}
_NAMED |= {"Space": _CLASSES["s"], "XDigit": "0-9A-Fa-f"}
#: Categories of Unicode, whose members differ between versions: only for text in ASCII.
_CATEGORIES = {"L": "A-Za-z", "Lu": "A-Z", "Ll": "a-z", "N": "0-9", "Nd": "0-9"}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_ANCHORS = {"A": "\\A", "z": "\\z", "Z": "\\z", "b": "\\b", "B": "\\B"}
_QUANTIFIER = re.compile(r"([*+?]|\{(\d{1,3})(?:(,)(\d{1,3})?)?\})(\??)(?![*+?{])")
_NAME = re.compile(r"\{(\w+)\}")
_CODE = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})")


@dataclass
class Pattern:
    """A regular expression of Java in RE2's syntax, and where it holds."""

    java: str
    re2: str = ""
    is_nullable: bool = False
    """It may match the empty text, between characters and behind another match: there the two differ."""
    has_anchors: bool = False
    groups: int = 0
    repeated: set[int] = field(default_factory=set)
    """Groups within a repeated group: which of the repetitions they show may differ."""
    needs_ascii: bool = False
    """`\\b` and ignoring case mean letters of ASCII in one engine, all letters in the other."""
    needs_no_line_end: bool = False
    """`$` also matches before a line end at the end of the text in Java."""

    def where(self, text: str, sql: str, kind: str) -> str:
        """The expression for texts for which both engines match the same; Spark answers for others."""
        conditions = [f"strlen({text}) = length({text})"] if self.needs_ascii else []
        if self.needs_no_line_end:
            conditions.append(f"NOT regexp_matches({text}, '[{_LINE_ENDS}]\\z')")
        if not conditions:
            return sql
        return f"CASE WHEN {' AND '.join(conditions)} THEN {sql} WHEN {text} IS NOT NULL THEN {needs_spark(kind)} END"


def translated(java: str) -> Pattern:
    """Write a regular expression for RE2.

    Raises:
        NotTranslatedError: a part of it is not in the list of what both match in the same way.
    """
    return _Reader(java).read()


class _Reader:
    """Reads one regular expression from left to right."""

    def __init__(self, java: str) -> None:
        self.pattern, self.rest, self.any = Pattern(java), java, f"[^{_LINE_ENDS}]"

    def read(self) -> Pattern:
        flags = ""
        if match := re.match(r"\(\?([is]+)\)", self.rest):
            self.rest = self.rest[match.end() :]
            if "s" in match[1]:
                self.any = "(?s:.)"
            if "i" in match[1]:
                flags, self.pattern.needs_ascii = "(?i)", True
                if not self.pattern.java.isascii() or "\\p" in self.rest:
                    raise self._refusal()
        sql, self.pattern.is_nullable = self._alternatives()
        if self.rest:
            raise self._refusal()
        self.pattern.re2 = flags + sql
        return self.pattern

    def _refusal(self) -> NotTranslatedError:
        return NotTranslatedError(f"the regular expression {self.pattern.java}")

    def _take(self, count: int = 1) -> str:
        taken, self.rest = self.rest[:count], self.rest[count:]
        if len(taken) < count:
            raise self._refusal()
        return taken

    def _alternatives(self) -> tuple[str, bool]:
        branches = [self._branch()]
        while self.rest.startswith("|"):
            self._take()
            branches.append(self._branch())
        return "|".join(sql for sql, _ in branches), any(nullable for _, nullable in branches)

    def _branch(self) -> tuple[str, bool]:
        pieces, is_nullable = [], True
        while self.rest and self.rest[0] not in "|)":
            sql, may_be_empty = self._piece()
            pieces.append(sql)
            is_nullable = is_nullable and may_be_empty
        return "".join(pieces), is_nullable

    def _piece(self) -> tuple[str, bool]:
        first_group = self.pattern.groups + 1
        is_group = self.rest.startswith("(")
        captures = is_group and not self.rest.startswith("(?")
        sql, is_nullable = self._atom()
        match = _QUANTIFIER.match(self.rest)
        if match is None:
            if self.rest and self.rest[0] in "*+?{":
                raise self._refusal()
            return sql, is_nullable
        if is_nullable:  # also `^*`
            raise self._refusal()
        self._take(match.end())
        self.pattern.repeated |= set(range(first_group + captures, self.pattern.groups + 1))
        quantifier = match[1]
        if match[2]:
            # Never `{2}`, which would be a field in the template of a rule.
            quantifier = f"{{{match[2]},{match[4] or ('' if match[3] else match[2])}}}"
            if match[4] and int(match[4]) < int(match[2]):
                raise self._refusal()
        return sql + quantifier + match[5], match[1] in "*?" or match[2] in ("0", "00", "000")

    def _atom(self) -> tuple[str, bool]:
        char = self._take()
        match char:
            case "(":
                return self._group()
            case "[":
                return self._brackets(), False
            case ".":
                return self.any, False
            case "^" | "$":
                return self._anchor("A" if char == "^" else "Z"), True
            case "\\":
                return self._escape()
            case "*" | "+" | "?" | "{":
                raise self._refusal()
        return _plain(char), False

    def _anchor(self, letter: str) -> str:
        self.pattern.has_anchors = True
        self.pattern.needs_ascii |= letter in "bB"
        self.pattern.needs_no_line_end |= letter == "Z"
        return _ANCHORS[letter]

    def _group(self) -> tuple[str, bool]:
        start = "("
        if self.rest.startswith("?:"):
            start += self._take(2)
        elif self.rest.startswith("?"):
            raise self._refusal()
        else:
            self.pattern.groups += 1
        sql, is_nullable = self._alternatives()
        if self._take() != ")":
            raise self._refusal()
        return f"{start}{sql})", is_nullable

    def _escape(self) -> tuple[str, bool]:
        if self.rest[:1] in _ANCHORS:
            return self._anchor(self._take()), True
        members, is_class = self._escaped()
        return (f"[{members}]" if is_class else members), False

    def _escaped(self) -> tuple[str, bool]:
        """What a backslash stands for, inside brackets or outside, and whether that is a class of characters."""
        if match := _CODE.match(self.rest):
            self._take(match.end())
            return _plain(chr(int(match[1] or match[2], 16))), False
        letter = self._take()
        if letter in _CLASSES:
            return _CLASSES[letter], True
        if letter == "p" and (match := _NAME.match(self.rest)) and match[1] in _NAMED | _CATEGORIES:
            self._take(match.end())
            self.pattern.needs_ascii |= match[1] in _CATEGORIES
            return (_NAMED | _CATEGORIES)[match[1]], True
        if letter in _CONTROLS:
            return _plain(_CONTROLS[letter]), False
        if letter.isascii() and not letter.isalnum():
            return _plain(letter), False
        raise self._refusal()

    def _brackets(self) -> str:
        start = "[" + (self._take() if self.rest.startswith("^") else "")
        members: list[str] = []
        while not self.rest.startswith("]"):
            member, is_class = self._member()
            if self.rest.startswith("-") and not self.rest.startswith("-]"):
                self._take()
                end, is_end_class = self._member()
                is_odd = self.rest.startswith("-") or end == _plain("-")  # `[a-c-e]`, `[+--]`
                if is_odd or is_class or is_end_class or _code(end) < _code(member):
                    raise self._refusal()
                member = f"{member}-{end}"
            members.append(member)
        self._take()
        if not members:
            raise self._refusal()
        return f"{start}{''.join(members)}]"

    def _member(self) -> tuple[str, bool]:
        char = self._take()
        if char == "\\":
            return self._escaped()
        if char == "[" or (char == "&" and self.rest.startswith("&")):
            raise self._refusal()
        return _plain(char), False


def _plain(char: str) -> str:
    """A character that stands for itself, without the braces of a field in the template of a rule."""
    if "\ud800" <= char <= "\udfff":
        raise NotTranslatedError("a regular expression with half a character")
    return f"\\x{ord(char):02x}" if char < "\x80" and not (char.isalnum() or char == "_") else char


def _code(plain: str) -> int:
    return int(plain[2:], 16) if plain.startswith("\\x") else ord(plain)


# ---- functions ---------------------------------------------------------------------------------------------------


def _pattern(values: Sequence[Value]) -> Pattern:
    return translated(literal_text(values[1], "a regular expression"))


def _searched(sql: str, kind: str) -> Callable[[Sequence[Value]], str]:
    """An expression with the first match, `{1}` being the pattern."""

    def build(values: Sequence[Value]) -> str:
        pattern = _pattern(values)
        return pattern.where("{0}", sql.replace("{1}", string(pattern.re2)), kind)

    return build


def _every(sql: str, kind: str) -> Callable[[Sequence[Value]], str]:
    """An expression with all matches."""

    def build(values: Sequence[Value]) -> str:
        pattern = _pattern(values)
        if pattern.is_nullable:
            raise NotTranslatedError(f"all matches of {pattern.java}, which may be empty")
        return pattern.where("{0}", sql.replace("{1}", string(pattern.re2)), kind)

    return build


def _group(values: Sequence[Value], pattern: Pattern) -> int:
    group = literal_int(values[2], "the group of a regular expression") if len(values) > 2 else 1
    if not 0 <= group <= pattern.groups or group in pattern.repeated:
        raise NotTranslatedError(f"group {group} of {pattern.java}")
    return group


def _extracted(values: Sequence[Value]) -> str:
    group = _group(values, _pattern(values))
    return _searched(f"regexp_extract({{0}}, {{1}}, {group})", "VARCHAR")(values)


def _all_extracted(values: Sequence[Value]) -> str:
    group = _group(values, _pattern(values))
    texts = f"list_transform(regexp_extract_all({{0}}, {{1}}, {group}), lambda x: coalesce(x, ''))"
    return _every(texts, "VARCHAR[]")(values)


def _replaced(values: Sequence[Value]) -> str:
    pattern = _pattern(values)
    java = literal_text(values[2], "a replacement")
    pieces = []
    for escaped, group, plain, other in re.findall(r"\\(.)|\$(\d)(?!\d)|([^\\$]+)|(.)", java, re.DOTALL):
        if other or (group and (int(group) > pattern.groups or int(group) in pattern.repeated)):
            raise NotTranslatedError(f"the replacement {java}")
        pieces.append(f"\\{group}" if group else "\\\\" if escaped == "\\" else escaped or plain)
    return _every(f"regexp_replace({{0}}, {{1}}, {written(''.join(pieces))}, 'g')", "VARCHAR")(values)


def _place(values: Sequence[Value]) -> str:
    """Java counts the two halves of characters beyond 16 bits."""
    match = string(f"\\A((?s:.)*?)(?:{_pattern(values).re2})")
    if _pattern(values).re2.startswith("(?i)"):
        raise NotTranslatedError("regexp_instr that ignores case")
    place = f"CASE WHEN regexp_matches({{0}}, {{1}}) THEN length(regexp_extract({{0}}, {match}, 1)) + 1 ELSE 0 END"
    return _searched(
        f"CASE WHEN regexp_matches({{0}}, '[\U00010000-\U0010ffff]') THEN {needs_spark('INTEGER')}"
        f" WHEN {{0}} IS NOT NULL THEN {place} END",
        "INTEGER",
    )(values)


def _split(values: Sequence[Value]) -> str:
    limit = literal_int(values[2], "split into a number of parts") if len(values) > 2 else -1
    if literal_text(values[1], "a regular expression") == "" and limit <= 0:
        return "string_split({0}, '')"
    pattern = _pattern(values)
    if pattern.has_anchors or limit > 2:
        raise NotTranslatedError(f"split by {pattern.java}")
    if limit == 1:
        return "CASE WHEN {0} IS NOT NULL THEN [{0}] END"
    if limit == 2:
        at = string(f"\\A((?s:.)*?)(?:{pattern.re2})((?s:.)*)\\z")
        if pattern.groups or pattern.needs_ascii:
            raise NotTranslatedError(f"split into two by {pattern.java}")
        parts = f"[regexp_extract({{0}}, {at}, 1), regexp_extract({{0}}, {at}, 2)]"
        return _every(
            f"CASE WHEN regexp_matches({{0}}, {{1}}) THEN {parts} WHEN {{0}} IS NOT NULL THEN [{{0}}] END", "VARCHAR[]"
        )(values)
    return _every("string_split_regex({0}, {1})", "VARCHAR[]")(values)


_MATCHES = _searched("regexp_matches({0}, {1})", "BOOLEAN")
RULES = [
    rule("rlike", "string string", "boolean", _MATCHES, shown="RLIKE"),
    rule("regexp", "string string", "boolean", _MATCHES, shown="REGEXP"),
    rule("regexp_like", "string string", "boolean", _MATCHES, shown="REGEXP_LIKE"),
    rule("regexp_extract", "string string", "string", _extracted, shown="regexp_extract({0}, {1}, 1)"),
    rule("regexp_extract", "string string int", "string", _extracted),
    rule("regexp_extract_all", "string string", "array<string>", _all_extracted, shown="regexp_extract_all({0}, {1}, 1)"),
    rule("regexp_extract_all", "string string int", "array<string>", _all_extracted),
    rule("regexp_substr", "string string", "string", _searched("nullif(regexp_extract({0}, {1}), '')", "VARCHAR")),
    rule("regexp_count", "string string", "int", _every("len(regexp_extract_all({0}, {1}))", "INTEGER"), stored=True),
    rule("regexp_instr", "string string", "int", _place, stored=True, shown="regexp_instr({0}, {1}, 0)"),
    rule("regexp_replace", "string string string", "string", _replaced, shown="regexp_replace({0}, {1}, {2}, 1)"),
    rule("split", "string string", "array<string>", _split, shown="split({0}, {1}, -1)"),
    rule("split", "string string int", "array<string>", _split),
]  # fmt: skip
SPECIAL: dict[str, Special] = {}
