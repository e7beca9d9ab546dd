"""How a CSV file is written, found by trying the usual ways on its first rows."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lakehouse.core.errors import BadSettingError
from lakehouse.core.requests import ReadOptions
from lakehouse.ingest.files.model import Dialect

_DELIMITERS = (",", ";", "\t", "|")
#: The delimiter of files with one column: the unit separator, which no text has.
NO_DELIMITER = "\x1f"
_QUOTES = ('"', "'")
_MOST_ROWS = 500
_YEAR = re.compile(r"(19|20)[0-9]{2}")
_VALUE = re.compile(
    r"[-+]?[0-9.]*[0-9](e[-+]?[0-9]+)?|true|false|[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}([ T][0-9:.]+.*)?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Guess:
    """A way to read the first rows, and what they are when read so."""

    delimiter: str
    quote: str
    escape: str
    rows: list[list[str]]


def find_dialect(text: str, whole: bool, settings: ReadOptions) -> Guess:
    """The dialect that cuts the first rows most evenly into columns."""
    for name in ("delimiter", "quote", "escape"):
        if len(getattr(settings, name) or "") > 1:
            raise BadSettingError(f"{name}={getattr(settings, name)!r} is more than one character.", "Give just one.")
    tried = [
        (_score(guess), -place, guess) for place, guess in enumerate(_guesses(text, whole, settings)) if guess.rows
    ]
    if not tried:
        return Guess(settings.delimiter or ",", '"', '"', [])
    (even, *_), _, best = max(tried, key=lambda one: one[:2])
    if even > 0 or settings.delimiter or len(best.rows[0]) > 1:
        return best
    # One column: whatever delimiter later rows may hold, it is part of their text.
    rows = _read(text, whole, NO_DELIMITER, best.quote, best.escape)
    return Guess(NO_DELIMITER, best.quote, best.escape, rows)


def has_header(
    rows: Sequence[Sequence[str]], known: frozenset[str], clean: Sequence[str], nulls: Sequence[str]
) -> bool:
    """Whether the first row names the columns.

    It does where it has text above columns of numbers or dates. It does not where it holds such values itself. Rows
    of nothing but text start with a header, as almost all files do.
    """
    first, rest = rows[0], rows[1:]
    if known and sum(name in known for name in clean) * 2 >= len(clean):
        return True
    votes = [_vote(cell, [row[place] for row in rest if place < len(row)], nulls) for place, cell in enumerate(first)]
    return 1 in votes or -1 not in votes


def dialect_of(guess: Guess, encoding: str, header: bool, row_bytes: int) -> Dialect:
    return Dialect(guess.delimiter, guess.quote, guess.escape, encoding, header, row_bytes)


def _vote(cell: str, below: list[str], nulls: Sequence[str]) -> int:
    """1: a name above values; -1: a value itself; 0: says nothing."""
    values = [value.strip() for value in below if value not in nulls]
    typed_below = bool(values) and all(_VALUE.fullmatch(value) for value in values)
    if cell in nulls:
        return 0
    if _YEAR.fullmatch(cell.strip()):
        return 0  # tables with one column per year are common
    if _VALUE.fullmatch(cell.strip()):
        return -1
    return 1 if typed_below else 0


def _guesses(text: str, whole: bool, settings: ReadOptions) -> list[Guess]:
    # Where a line is blank or cut off in the middle, it says nothing about the dialect.
    delimiters = [settings.delimiter] if settings.delimiter else _DELIMITERS
    quotes = [settings.quote] if settings.quote is not None else [quote for quote in _QUOTES if quote in text] or ['"']
    found = []
    for delimiter in delimiters:
        for quote in quotes:
            for escape in _escapes(text, quote, settings):
                rows = _read(text, whole, delimiter, quote, escape)
                found.append(Guess(delimiter, quote, escape, rows))
    return found


def _escapes(text: str, quote: str, settings: ReadOptions) -> list[str]:
    if not quote:
        return [""]
    if settings.escape is not None:
        return [settings.escape or quote]
    return [quote, "\\"] if f"\\{quote}" in text else [quote]


def csv_rows(lines: Iterable[str], dialect: Dialect) -> Iterator[list[str]]:
    """What Python's reader makes of some lines."""
    csv.field_size_limit(1 << 30)
    doubled = dialect.escape == dialect.quote
    return csv.reader(
        lines,
        delimiter=dialect.delimiter,
        quotechar=dialect.quote or None,
        quoting=csv.QUOTE_MINIMAL if dialect.quote else csv.QUOTE_NONE,
        doublequote=doubled,
        escapechar=None if doubled or not dialect.escape else dialect.escape,
    )


def _read(text: str, whole: bool, delimiter: str, quote: str, escape: str) -> list[list[str]]:
    rows: list[list[str]] = []
    try:
        for row in csv_rows(_lines(text), Dialect(delimiter, quote, escape)):
            rows.append(row)
            if len(rows) > _MOST_ROWS:
                return [kept for kept in rows if kept]
    except csv.Error:
        return []
    if not whole and len(rows) > 1:
        rows.pop()  # the last one is cut off
    return [kept for kept in rows if kept]


def _lines(text: str) -> Iterator[str]:
    """Lines with their ends; a lone CR ends one too."""
    return (line[0] for line in re.finditer(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z", text))


def _score(guess: Guess) -> tuple[float, int, int]:
    """More columns are better, if the rows agree on them; a quote left over in a value counts against the quoting."""
    widths = Counter(len(row) for row in guess.rows)
    width, often = widths.most_common(1)[0]
    stray = sum(_stray(cell) for row in guess.rows for cell in row)
    # A delimiter that the first row lacks is one that stands in somebody's sentences.
    even = often / len(guess.rows) if width > 1 and len(guess.rows[0]) > 1 else 0.0
    return (round(even, 1) - (0.5 if stray else 0.0), width if even else 1, -stray)


def _stray(cell: str) -> bool:
    """A quote at only one end of a value: it was cut in the middle, or its quotes were not seen as such."""
    return bool(cell) and (
        (cell[0] in _QUOTES) != (cell[-1] in _QUOTES) or (len(cell) > 1 and cell[0] == cell[-1] == '"')
    )
