"""Detect the dialect of a CSV file by trying the usual ones on its first rows."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, takewhile

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import BadSettingError
from lakehouse.core.requests import ReadOptions
from lakehouse.ingest.files.model import Dialect

_DELIMITERS = (",", ";", "\t", "|")
#: The delimiter of files with one column: the unit separator, which does not occur in text.
NO_DELIMITER = "\x1f"
_QUOTES = ('"', "'")
_MAX_ROWS = 500
_YEAR = re.compile(r"(19|20)[0-9]{2}")
_VALUE = re.compile(
    r"[-+]?[0-9.]*[0-9](e[-+]?[0-9]+)?|true|false|[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}([ T][0-9:.]+.*)?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class InferredDialect:
    """A dialect and the first rows as it reads them."""

    delimiter: str
    quote: str
    escape: str
    rows: list[list[str]]


def detect_dialect(text: str, whole: bool, settings: ReadOptions) -> InferredDialect:
    """Detect the dialect that splits the first rows into columns most evenly."""
    for name in ("delimiter", "quote", "escape"):
        if len(getattr(settings, name) or "") > 1:
            raise BadSettingError(
                f"{name}={getattr(settings, name)!r} has more than one character.", "Use a single character."
            )
    scored = [
        (_score(candidate), -index, candidate)
        for index, candidate in enumerate(_candidates(text, whole, settings))
        if candidate.rows
    ]
    if not scored:
        return InferredDialect(settings.delimiter or ",", '"', '"', [])
    (evenness, *_), _, best = max(scored, key=lambda score: score[:2])
    if evenness > 0 or settings.delimiter or len(best.rows[0]) > 1:
        return best
    # One column: a delimiter in later rows is part of their text.
    rows = _read(text, whole, NO_DELIMITER, best.quote, best.escape)
    return InferredDialect(NO_DELIMITER, best.quote, best.escape, rows)


def has_header(
    rows: Sequence[Sequence[str]], known: frozenset[str], clean: Sequence[str], nulls: Sequence[str]
) -> bool:
    """Whether the first row is a header.

    It is where it has text above a column of numbers or dates. It is not where it has such values itself. If all
    columns are text it is, because almost all files have a header.
    """
    first, rest = rows[0], rows[1:]
    if known and sum(name in known for name in clean) * 2 >= len(clean):
        return True
    votes = [_vote(cell, [row[index] for row in rest if index < len(row)], nulls) for index, cell in enumerate(first)]
    return 1 in votes or -1 not in votes


def _vote(cell: str, below: list[str], nulls: Sequence[str]) -> int:
    """1: a name above values; -1: a value; 0: undecided."""
    values = [value.strip() for value in below if value not in nulls]
    typed_below = bool(values) and all(_VALUE.fullmatch(value) for value in values)
    if cell in nulls:
        return 0
    if _YEAR.fullmatch(cell.strip()):
        return 0  # a header may have one column per year
    if _VALUE.fullmatch(cell.strip()):
        return -1
    return 1 if typed_below else 0


def _candidates(text: str, whole: bool, settings: ReadOptions) -> list[InferredDialect]:
    delimiters = [settings.delimiter] if settings.delimiter else _DELIMITERS
    quotes = [settings.quote] if settings.quote is not None else [quote for quote in _QUOTES if quote in text] or ['"']
    dialects = []
    for delimiter in delimiters:
        for quote in quotes:
            for escape in _escapes(text, quote, settings):
                rows = _read(text, whole, delimiter, quote, escape)
                dialects.append(InferredDialect(delimiter, quote, escape, rows))
    return dialects


def _escapes(text: str, quote: str, settings: ReadOptions) -> list[str]:
    if not quote:
        return [""]
    if settings.escape is not None:
        return [settings.escape or quote]
    return [quote, "\\"] if f"\\{quote}" in text else [quote]


def csv_rows(lines: Iterable[str], dialect: Dialect) -> Iterator[list[str]]:
    """Read lines with Python's csv module."""
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
            if len(rows) > _MAX_ROWS:
                return [row for row in rows if row]
    except csv.Error:
        return []
    if not whole and len(rows) > 1:
        rows.pop()  # the last row is incomplete
    return [row for row in rows if row]


def after_lines(text: str, count: int) -> str:
    """The text without its first lines; empty if it has no more than these."""
    return text[sum(map(len, islice(_lines(text), count))) :]


def count_blank_lines(text: str) -> int:
    """The number of blank lines at the start."""
    return sum(1 for _ in takewhile(lambda line: not line.strip("\r\n"), _lines(text)))


def _lines(text: str) -> Iterator[str]:
    """Lines with their line ends; a single CR is a line end too."""
    return (line[0] for line in re.finditer(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z", text))


def _score(candidate: InferredDialect) -> tuple[float, int, int]:
    """Prefer more columns if the rows agree on their number; an unpaired quote in a value counts against a dialect."""
    widths = Counter(len(row) for row in candidate.rows)
    width, count = widths.most_common(1)[0]
    unpaired = sum(_has_unpaired_quote(cell) for row in candidate.rows for cell in row)
    # A delimiter that the first row lacks is punctuation in the text of other rows.
    evenness = count / len(candidate.rows) if width > 1 and len(candidate.rows[0]) > 1 else 0.0
    return (round(evenness, 1) - (0.5 if unpaired else 0.0), width if evenness else 1, -unpaired)


def _has_unpaired_quote(cell: str) -> bool:
    """Whether a value has a quote at one end only, or still has its quotes: the dialect does not fit."""
    return bool(cell) and (
        (cell[0] in _QUOTES) != (cell[-1] in _QUOTES) or (len(cell) > 1 and cell[0] == cell[-1] == '"')
    )
