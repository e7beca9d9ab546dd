"""Words of a question: tokens, stems, typing errors. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from lakehouse.core.dataclass import dataclass

#: Longer questions are refused: nobody asks them, and matching takes time.
MAX_CHARACTERS, MAX_TOKENS = 1_000, 60

_TOKEN = re.compile(
    r"""(?P<quoted>"[^"]*"|'[^']+'(?!\w)|“[^”]*”)
      |(?P<date>\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?)?(?![\w-]))
      |(?P<yearmonth>\d{4}-(?:0[1-9]|1[0-2])(?![\w-]))
      |(?P<number>[$€£]?-?\d+(?:,\d{3})*(?:\.\d+)?(?:%|(?:st|nd|rd|th|[kKmM])\b)?(?![\w]))
      |(?P<sign><=|>=|<>|!=|[<>=])
      |(?P<comma>,)
      |(?P<word>[^\W\d]\w*(?:[.&'’-]\w+)*)
      |(?P<other>\S)""",
    re.VERBOSE,
)
_ENDINGS = re.compile(r"['’]s?$")


@dataclass(frozen=True)
class Token:
    """One word, number, date or quoted text of a question."""

    text: str
    """As it was typed, without quotes."""
    kind: str
    """quoted, date, yearmonth, number, sign, comma, word or other."""
    stem: str
    """In lower case and, if it is a word, in the singular."""

    @property
    def is_shouted(self) -> bool:
        """Typed in capitals, as tickers and codes are."""
        return self.kind == "word" and len(self.text) > 1 and self.text.isupper()

    @property
    def number(self) -> str:
        """The digits of a number as SQL writes it."""
        digits = re.sub(r"[$€£,%]|st$|nd$|rd$|th$", "", self.text)
        scale = {"k": 1_000, "m": 1_000_000}.get(digits[-1:].lower())
        if scale is None:
            return digits
        from decimal import Decimal

        return f"{Decimal(digits[:-1]) * scale:f}"


def tokens(question: str) -> list[Token]:
    """The tokens of a question; full stops and question marks are dropped."""
    listed = []
    for match in _TOKEN.finditer(question):
        kind = str(match.lastgroup)
        if match[0] in "?!.":
            continue
        text = match[0][1:-1] if kind == "quoted" else match[0]
        listed.append(Token(text, kind, stem(text) if kind == "word" else text.lower()))
    if len({token.is_shouted for token in listed if token.kind == "word"} - {True}) == 0:
        # A question that is typed in capitals as a whole emphasizes nothing.
        return [Token(t.text.lower(), t.kind, t.stem) if t.kind == "word" else t for t in listed]
    return listed


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """A word in lower case and in the singular: trips -> trip, cities -> city, boxes -> box."""
    lower = _ENDINGS.sub("", word.lower())
    if len(lower) <= 3 or not lower.endswith("s") or lower.endswith(("ss", "us", "is")):
        return lower
    if lower.endswith("ies") and len(lower) > 4:
        return lower[:-3] + "y"
    if lower.endswith(("ches", "shes", "xes", "sses", "zes")):
        return lower[:-2]
    return lower[:-1]


@lru_cache(maxsize=50_000)
def phrase(text: str) -> tuple[str, ...]:
    """A name as the stems of its words: `payment_type` -> payment, type."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    return tuple(stem(word) for word in re.split(r"[\s_\-]+", spaced) if word)


def typed(text: str) -> list[tuple[str, ...]]:
    """The ways to type a name: as separate words, and as it is written: payment type, payment_type."""
    return list(dict.fromkeys((phrase(text), tuple(stem(word) for word in text.split()))))


_KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_PLACE = {letter: (row, column) for row, keys in enumerate(_KEYS) for column, letter in enumerate(keys)}
_SHORTEST_TYPO = 5


def corrections(word: str, known: Iterable[str]) -> list[str]:
    """The known words that a word is a typing error of: a swap, a missing or extra letter, or a neighbouring key.

    A substitution by a distant key is another word (trims is not trips), and so is a short word or another first letter.
    """
    if len(word) < _SHORTEST_TYPO:
        return []
    return sorted({candidate for candidate in known if _is_typo(word, candidate)})


def _is_typo(word: str, meant: str) -> bool:
    if abs(len(word) - len(meant)) > 1 or word[0] != meant[:1] or len(meant) < _SHORTEST_TYPO - 1:
        return False
    if len(word) == len(meant):
        differing = [place for place, letters in enumerate(zip(word, meant, strict=True)) if letters[0] != letters[1]]
        if len(differing) == 1:
            return _are_neighbours(word[differing[0]], meant[differing[0]])
        return len(differing) == 2 and _are_swapped(word, meant, differing)
    longer, shorter = (word, meant) if len(word) > len(meant) else (meant, word)
    # An `s` at the end is a plural, not an error.
    last = len(longer) - (longer.endswith("s"))
    return any(longer[:place] + longer[place + 1 :] == shorter for place in range(1, last))


def _are_swapped(word: str, meant: str, differing: list[int]) -> bool:
    first, second = differing
    return second == first + 1 and word[first] == meant[second] and word[second] == meant[first]


def _are_neighbours(typed: str, meant: str) -> bool:
    if typed not in _PLACE or meant not in _PLACE:
        return False
    (row, column), (other_row, other_column) = _PLACE[typed], _PLACE[meant]
    return abs(row - other_row) <= 1 and abs(column - other_column) <= 1
