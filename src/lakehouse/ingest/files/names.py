"""Column names out of headers: the same header always becomes the same name."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

LONGEST = 128

#: Words that cannot stand as a column without quotes in Spark's ANSI mode or in DuckDB, and that people do use.
#: Longer lists rename columns that never hurt (`date`, `name`, `type`, `value` work everywhere).
RESERVED = frozenset(
    """all analyse analyze and any array as asc asymmetric authorization both case cast check collate column constraint
    create cross current_date current_time current_timestamp current_user default deferrable desc describe distinct do
    else end except false fetch for foreign from full grant group having in initially inner intersect into join lambda
    lateral leading left limit minus natural not null offset on only or order outer overlaps pivot placing primary
    qualify references returning right select session_user show some summarize symmetric table then to trailing true
    union unique unpivot user using variadic when where window with""".split()
)

#: Columns that belong to Hudi and to us.
_OWNED = ("_hoodie_", "_lake_")

_NOT_PLAIN = re.compile(r"[^a-z0-9]+")
#: Letters that Unicode does not take apart into a base and an accent.
_FOLDED = str.maketrans({"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ł": "l", "ı": "i", "þ": "th", "ð": "d"})


def clean_names(headers: Iterable[str]) -> list[str]:
    """One name per header, all different, each fit for Spark, DuckDB and Hudi; clean names stay as they are.

    Lower case, accents folded, every run of other characters one `_`; a leading digit gets `c_` before it, nothing
    left becomes `column_N`, a reserved word gets `_` after it, and the second `name` is `name_2`.
    """
    singles = [_clean(header) or f"column_{number}" for number, header in enumerate(headers, start=1)]
    # Headers that need no number keep their name, so that cleaning a clean list changes nothing.
    first_of = {name: position for position, name in reversed(list(enumerate(singles)))}
    taken, names = set(first_of), []
    counts: dict[str, int] = {}
    for position, name in enumerate(singles):
        names.append(name if first_of[name] == position else _numbered(name, taken, counts))
    return names


def _clean(header: str) -> str:
    text = header.strip().lower().translate(_FOLDED)
    plain = "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))
    # A clean name may start or end with `_`; of a header, only what stands between the punctuation counts.
    name = text if re.fullmatch(r"[a-z_][a-z0-9_]*", text) else _NOT_PLAIN.sub("_", plain.lower()).strip("_")
    name = name if name.strip("_") else ""
    if name[:1].isdigit():
        name = f"c_{name}"
    if name.startswith(_OWNED):
        name = f"c{name}"
    return _unreserved(name[:LONGEST])


def _unreserved(name: str) -> str:
    return f"{name}_" if name in RESERVED else name


def _numbered(name: str, taken: set[str], counts: dict[str, int]) -> str:
    """`name_2`, `name_3`, ...: the first that no other header has."""
    number = counts.get(name, 1) + 1
    while (candidate := f"{name[: LONGEST - len(str(number)) - 1]}_{number}") in taken:
        number += 1
    counts[name] = number
    taken.add(candidate)
    return candidate
