"""Clean column names from headers; the same header always gives the same name."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

MAX_LENGTH = 128

#: Common words that Spark in ANSI mode or DuckDB does not accept as a column without quotes.
#: The list leaves out reserved words that work everywhere, such as `date`, `name`, `type` and `value`.
RESERVED = frozenset(
    """all analyse analyze and any array as asc asymmetric authorization both case cast check collate column constraint
    create cross current_date current_time current_timestamp current_user default deferrable desc describe distinct do
    else end except false fetch for foreign from full grant group having in initially inner intersect into join lambda
    lateral leading left limit minus natural not null offset on only or order outer overlaps pivot placing primary
    qualify references returning right select session_user show some summarize symmetric table then to trailing true
    union unique unpivot user using variadic when where window with""".split()
)

#: Prefixes of columns that Hudi and the lake add.
_RESERVED_PREFIXES = ("_hoodie_", "_lake_")

#: Unicode categories of what a name may consist of: letters, their marks, decimal digits.
_LETTERS = ("L", "M", "Nd")


def clean_names(headers: Iterable[str]) -> list[str]:
    """One unique name per header that is valid in Spark, DuckDB and Hudi; clean names stay the same.

    Names are lower case, with the letters of their language, and other characters become `_`. A leading digit gets the
    prefix `c_`, a reserved word the suffix `_`. An empty name becomes `column_N`, and the second `name` becomes `name_2`.
    """
    singles = [_clean(header) or f"column_{number}" for number, header in enumerate(headers, start=1)]
    # The first header of a name keeps it, so that clean names do not change.
    first_of = {_folded(name): position for position, name in reversed(list(enumerate(singles)))}
    taken, names = set(first_of), []
    counts: dict[str, int] = {}
    for position, name in enumerate(singles):
        names.append(name if first_of[_folded(name)] == position else _numbered(name, taken, counts))
    return names


def _folded(name: str) -> str:
    """What engines that ignore case compare; Java's comparison takes `ı` for `i`, and `ς` for `σ`."""
    return name.upper().casefold()


def _clean(header: str) -> str:
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", header).strip().lower())
    # Only a name that is clean already may start or end with `_`.
    if not re.fullmatch(r"[a-z_][a-z0-9_]*", text):
        words = "".join(letter if unicodedata.category(letter).startswith(_LETTERS) else " " for letter in text).split()
        text = "_".join(words)
    name = text[:MAX_LENGTH]
    name = name if name.strip("_") else ""
    if name and not unicodedata.category(name[0]).startswith("L") and name[0] != "_":
        name = f"c_{name}"
    if name.startswith(_RESERVED_PREFIXES):
        name = f"c{name}"
    return _unreserved(name[:MAX_LENGTH])


def _unreserved(name: str) -> str:
    return f"{name}_" if name in RESERVED else name


def _numbered(name: str, taken: set[str], counts: dict[str, int]) -> str:
    """The first of `name_2`, `name_3`, … that no other header has."""
    number = counts.get(name, 1) + 1
    while (candidate := f"{name[: MAX_LENGTH - len(str(number)) - 1]}_{number}") and _folded(candidate) in taken:
        number += 1
    counts[name] = number
    taken.add(_folded(candidate))
    return candidate
