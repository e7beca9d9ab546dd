"""What type a column of texts has: features of its values, counted by DuckDB, and the decision from them.

The rules are all of the form "every value is ...". So the type of the first rows, if every later value fits it, is the
type of the whole column; only an empty column and dates of unclear order may still become something narrower.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields

#: A leading zero or plus makes a code (a zip, a phone number), not a number. `-0` is left to the doubles, which have it.
INTEGER = r" *(?:0|-?[1-9][0-9]*) *"
FRACTION = r" *(?:-?(?:0|[1-9][0-9]*)?\.[0-9]+|-0) *"
EXPONENT = r" *-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]+)?|\.[0-9]+)[eE][-+]?[0-9]{1,3} *"
NOT_FINITE = r" *-?(?i:nan|inf|infinity) *"
BOOLEAN = r" *(?i:true|false) *"

_YEAR = r"(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_SECONDS = r":[0-5][0-9](?:\.[0-9]{1,9})?"
NINE_DIGITS, SIX_DIGITS = "{1,9}", "{1,6}"
DATE = rf" *{_YEAR}(?:-[0-9]{{1,2}}-[0-9]{{1,2}}|/[0-9]{{1,2}}/[0-9]{{1,2}}) *"
TIMESTAMP_NTZ = rf" *{_YEAR}-[0-9]{{2}}-[0-9]{{2}}[ T]{_CLOCK}(?:{_SECONDS})? *"
TIMESTAMP = rf" *{_YEAR}-[0-9]{{2}}-[0-9]{{2}}[ T]{_CLOCK}{_SECONDS} ?(?:[zZ]|UTC|[-+][0-9]{{2}}(?::?[0-9]{{2}})?) *"
_TIME = r"(?: (?:(?:[01]?[0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,6})?)?|(?:0?[1-9]|1[0-2]):[0-5][0-9](?::[0-5][0-9])? ?(?i:[ap]m)))?"
LOCAL = (
    " *(?:" + "|".join(rf"[0-9]{{1,2}}{sep}[0-9]{{1,2}}{sep}[0-9]{{4}}" for sep in ("/", "-", r"\.")) + f"){_TIME} *"
)

#: How a local date looks with every number made 9, and how strptime says it (day first; see `local_format`).
_SHAPES = {
    f"9{sep}9{sep}9{shape}": f"%d{sep}%m{sep}%Y{time}"
    for sep in ("/", "-", ".")
    for shape, time in {
        "": "",
        " 9:9": " %H:%M",
        " 9:9:9": " %H:%M:%S",
        " 9:9:9.9": " %H:%M:%S.%f",
        " 9:9M": " %I:%M%p",
        " 9:9 M": " %I:%M %p",
        " 9:9:9M": " %I:%M:%S%p",
        " 9:9:9 M": " %I:%M:%S %p",
    }.items()
}


@dataclass(frozen=True)
class Features:
    """What was counted in a column. Adding two is counting both columns."""

    values: int = 0
    integers: int = 0
    fractions: int = 0
    exponents: int = 0
    not_finite: int = 0
    booleans: int = 0
    dates: int = 0
    ntz: int = 0
    tz: int = 0
    locals: int = 0
    not_bigint: int = 0
    lossy: int = 0
    """Numbers with more digits than a double gives back."""
    nanos: int = 0
    not_day_first: int = 0
    not_month_first: int = 0
    most_digits: int = 0
    """Before the decimal point."""
    most_scale: int = 0
    least_shape: str = ""
    most_shape: str = ""

    def __add__(self, other: Features) -> Features:
        mine, theirs = vars(self), vars(other)
        merged: dict[str, int | str] = {name: mine[name] + theirs[name] for name in mine if "_shape" not in name}
        for name in ("most_digits", "most_scale", "most_shape"):
            merged[name] = max(mine[name], theirs[name])
        shapes = [shape for shape in (self.least_shape, other.least_shape) if shape]
        return Features(**{**merged, "least_shape": min(shapes, default="")})  # type: ignore[arg-type]  # by name


@dataclass(frozen=True)
class Decision:
    """A type, the format of its dates if not ISO, whether more values could make it narrower, whether times are cut."""

    type: str
    format: str = ""
    open: bool = False
    cut: bool = False


def decide(seen: Features) -> Decision:
    """The narrowest type that holds every value without losing anything of it."""
    if not seen.values:
        return Decision("string", open=True)
    for decision in (_boolean(seen), _number(seen), _date(seen), _local_date(seen)):
        if decision is not None:
            return decision
    return Decision("string")


def features_sql(texts: str) -> str:
    """A query of one row per column out of `texts`, which has the columns i (number), r (raw) and t (text).

    They differ for JSON only, where `r` still has a string's quotes, so that "5" is not taken for a number.
    """
    number = "kind IN ('i', 'f')"
    whole_digits, scale = "length(ltrim(split_part(trim(r), '.', 1), '-'))", "length(split_part(trim(r), '.', 2))"
    return f"""
    SELECT i, count(*) AS "values", {_counts()},
      {_where("kind = 'i'", "TRY_CAST(r AS BIGINT) IS NULL")} AS not_bigint,
      {_where("kind IN ('i', 'f', 'e')", f"NOT {double_keeps('r')}")} AS lossy,
      {_where("kind IN ('n', 'z')", "regexp_matches(t, '[.][0-9]{7}')")} AS nanos,
      {_where("kind = 'l'", f"TRY_CAST({_rearranged('3-2-1')} AS DATE) IS NULL")} AS not_day_first,
      {_where("kind = 'l'", f"TRY_CAST({_rearranged('3-1-2')} AS DATE) IS NULL")} AS not_month_first,
      coalesce(max(CASE WHEN {number} THEN {whole_digits} END), 0) AS most_digits,
      coalesce(max(CASE WHEN kind = 'f' THEN {scale} END), 0) AS most_scale,
      coalesce(min(CASE WHEN kind = 'l' THEN {_shape()} END), '') AS least_shape,
      coalesce(max(CASE WHEN kind = 'l' THEN {_shape()} END), '') AS most_shape
    FROM (SELECT i, r, t, {_kind()} AS kind FROM ({texts}) WHERE t IS NOT NULL) GROUP BY i"""


def _where(kinds: str, condition: str) -> str:
    """How many values of some kinds meet a condition; CASE, because AND would work it out for all the others too."""
    return f"count(*) FILTER (CASE WHEN {kinds} THEN {condition} ELSE false END)"


def features_of(row: Sequence[int | str]) -> Features:
    """A row of `features_sql`, without its first field."""
    return Features(*row)  # type: ignore[arg-type]  # the query names its columns in the order of the fields


def double_keeps(text: str) -> str:
    """SQL: a double gives this number back digit for digit (a leading or trailing zero is no digit)."""
    plain = f"regexp_replace(trim({text}), '[eE].*$', '')"
    digits = f"length(trim(replace(ltrim({plain}, '-'), '.', ''), '0'))"
    small_exponent = f"NOT regexp_matches({text}, '[eE][-+]?(?:29[0-9]|[3-9][0-9]{{2}})')"
    return f"""(CASE WHEN length({text}) <= 16 THEN {small_exponent}
      WHEN {digits} <= 15 AND length({text}) < 250 THEN {small_exponent}
      ELSE lower(trim({text})) = CAST(TRY_CAST({text} AS DOUBLE) AS VARCHAR) END)"""


def matches(text: str, pattern: str) -> str:
    """SQL: the whole text has this form."""
    return f"regexp_full_match({text}, '{pattern}')"


def _boolean(seen: Features) -> Decision | None:
    return Decision("boolean") if seen.booleans == seen.values else None


def _number(seen: Features) -> Decision | None:
    if seen.integers + seen.fractions + seen.exponents + seen.not_finite != seen.values:
        return None
    if seen.integers == seen.values and not seen.not_bigint:
        return Decision("bigint")
    if seen.integers < seen.values and not seen.lossy:
        return Decision("double")
    plain = not (seen.exponents or seen.not_finite)
    if plain and seen.most_digits + seen.most_scale <= 38:
        return Decision(f"decimal(38,{seen.most_scale})")
    return None


def _date(seen: Features) -> Decision | None:
    if seen.dates == seen.values:
        return Decision("date")
    if seen.dates + seen.ntz == seen.values:
        return Decision("timestamp_ntz", cut=seen.nanos > 0)
    return Decision("timestamp", cut=seen.nanos > 0) if seen.tz == seen.values else None


def _local_date(seen: Features) -> Decision | None:
    format = _SHAPES.get(seen.most_shape)
    if seen.locals != seen.values or seen.least_shape != seen.most_shape or format is None:
        return None
    if not seen.not_day_first and not seen.not_month_first:
        return Decision("string", open=True)  # 01/02/2024: nobody can know yet
    if seen.not_day_first and seen.not_month_first:
        return None
    if seen.not_day_first:
        format = re.sub(r"%d(.)%m", r"%m\1%d", format)
    return Decision("timestamp_ntz" if " " in format else "date", format)


_KINDS = {
    "integers": "i",
    "fractions": "f",
    "exponents": "e",
    "not_finite": "s",
    "booleans": "b",
    "dates": "d",
    "ntz": "n",
    "tz": "z",
    "locals": "l",
}
assert [field.name for field in fields(Features)][1 : 1 + len(_KINDS)] == list(_KINDS)


def _counts() -> str:
    return ", ".join(f"count(*) FILTER (kind = '{kind}') AS {name}" for name, kind in _KINDS.items())


def _kind() -> str:
    return f"""CASE WHEN {matches("r", INTEGER)} THEN 'i' WHEN {matches("r", FRACTION)} THEN 'f'
      WHEN {matches("r", EXPONENT)} THEN 'e' WHEN {matches("r", NOT_FINITE)} THEN 's' WHEN {matches("r", BOOLEAN)} THEN 'b'
      WHEN {matches("t", DATE)} AND TRY_CAST(t AS DATE) IS NOT NULL THEN 'd'
      WHEN {matches("t", TIMESTAMP_NTZ)} AND TRY_CAST(t AS TIMESTAMP) IS NOT NULL THEN 'n'
      WHEN {matches("t", TIMESTAMP)} AND TRY_CAST(t AS TIMESTAMPTZ) IS NOT NULL THEN 'z'
      WHEN {matches("t", LOCAL)} THEN 'l' ELSE 'x' END"""


def _rearranged(order: str) -> str:
    target = "-".join(f"\\{place}" for place in order.split("-"))
    return f"regexp_replace(t, '^ *([0-9]+)[-/.]([0-9]+)[-/.]([0-9]{{4}}).*$', '{target}')"


def _shape() -> str:
    return "regexp_replace(regexp_replace(trim(t), '[0-9]+', '9', 'g'), '[aApP][mM]', 'M')"
