"""Infer the type of a column of strings from statistics that DuckDB counts.

Every rule has the form "all values are …". If all later values match the type of the first rows, that is therefore the
type of the whole column; only an empty column and ambiguous dates may still get a narrower type.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields

from lakehouse.core import quoting
from lakehouse.core.dataclass import dataclass
from lakehouse.core.requests import ReadOptions

#: A leading zero or plus means a code (zip code, phone number), not a number. Only doubles have `-0`.
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
_DAY = rf"{_YEAR}(?:-[0-9]{{2}}-[0-9]{{2}}|/[0-9]{{2}}/[0-9]{{2}})"
TIMESTAMP_NTZ = rf" *{_DAY}[ T]{_CLOCK}(?:{_SECONDS})? *"
TIMESTAMP = rf" *{_DAY}[ T]{_CLOCK}{_SECONDS} ?(?:[zZ]|UTC|[-+][0-9]{{2}}(?::?[0-9]{{2}})?) *"
_TIME = r"(?: (?:(?:[01]?[0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,6})?)?|(?:0?[1-9]|1[0-2]):[0-5][0-9](?::[0-5][0-9])? ?(?i:[ap]m)))?"
LOCAL = (
    " *(?:" + "|".join(rf"[0-9]{{1,2}}{sep}[0-9]{{1,2}}{sep}[0-9]{{4}}" for sep in ("/", "-", r"\.")) + f"){_TIME} *"
)

#: Shapes of local dates, with 9 for every number, and their strptime format with the day first.
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
class ColumnStats:
    """Counts of the values of a column; the sum of two is the count of both parts."""

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
    """Numbers with more digits than a double preserves."""
    nanos: int = 0
    not_day_first: int = 0
    not_month_first: int = 0
    max_digits: int = 0
    """Maximum number of digits before the decimal point."""
    max_scale: int = 0
    """Maximum number of digits after the decimal point, without zeros at the end."""
    min_shape: str = ""
    max_shape: str = ""

    def __add__(self, other: ColumnStats) -> ColumnStats:
        left, right = vars(self), vars(other)
        merged: dict[str, int | str] = {name: left[name] + right[name] for name in left if "_shape" not in name}
        for name in ("max_digits", "max_scale", "max_shape"):
            merged[name] = max(left[name], right[name])
        shapes = [shape for shape in (self.min_shape, other.min_shape) if shape]
        return ColumnStats(**{**merged, "min_shape": min(shapes, default="")})  # type: ignore[arg-type]  # by name


@dataclass(frozen=True)
class InferredType:
    """A type, the format of its dates if not ISO, and whether it may become narrower or truncates times."""

    type: str
    format: str = ""
    undetermined: bool = False
    truncated: bool = False


def infer_type(stats: ColumnStats) -> InferredType:
    """The narrowest type that represents every value exactly."""
    if not stats.values:
        return InferredType("string", undetermined=True)
    for inferred in (_boolean(stats), _number(stats), _date(stats), _local_date(stats)):
        if inferred is not None:
            return inferred
    return InferredType("string")


def stats_sql(texts: str) -> str:
    """A query for one row of statistics per column. `texts` has the columns i (index), r (raw value) and t (string).

    r and t differ for JSON only: r keeps the quotes of a string, so that "5" does not count as a number.
    """
    number = "kind IN ('i', 'f')"
    whole_digits = "length(ltrim(split_part(trim(r), '.', 1), '-'))"
    # Zeros at the end add no digit, however many a program writes.
    scale = "greatest(length(rtrim(split_part(trim(r), '.', 2), '0')), 1)"
    return f"""
    SELECT i, count(*) AS "values", {_counts()},
      {_count_where("kind = 'i'", "TRY_CAST(r AS BIGINT) IS NULL")} AS not_bigint,
      {_count_where("kind IN ('i', 'f', 'e')", f"NOT {double_preserves('r')}")} AS lossy,
      {_count_where("kind IN ('n', 'z')", "regexp_matches(t, '[.][0-9]{7}')")} AS nanos,
      {_count_where("kind = 'l'", f"TRY_CAST({_reordered_date('3-2-1')} AS DATE) IS NULL")} AS not_day_first,
      {_count_where("kind = 'l'", f"TRY_CAST({_reordered_date('3-1-2')} AS DATE) IS NULL")} AS not_month_first,
      coalesce(max(CASE WHEN {number} THEN {whole_digits} END), 0) AS max_digits,
      coalesce(max(CASE WHEN kind = 'f' THEN {scale} END), 0) AS max_scale,
      coalesce(min(CASE WHEN kind = 'l' THEN {_shape()} END), '') AS min_shape,
      coalesce(max(CASE WHEN kind = 'l' THEN {_shape()} END), '') AS max_shape
    FROM (SELECT i, r, t, {_kind()} AS kind FROM ({texts}) WHERE t IS NOT NULL) GROUP BY i"""


def _count_where(kinds: str, condition: str) -> str:
    """Count values of some kinds that meet a condition; AND would evaluate the condition for all kinds, CASE does not."""
    return f"count(*) FILTER (CASE WHEN {kinds} THEN {condition} ELSE false END)"


def stats_from_row(row: Sequence[int | str]) -> ColumnStats:
    """Build statistics from a row of `stats_sql` without its first field."""
    return ColumnStats(*row)  # type: ignore[arg-type]  # the query selects the fields in order


def double_preserves(text: str) -> str:
    """SQL for whether a double preserves all digits of a number, apart from leading and trailing zeros."""
    plain = f"regexp_replace(trim({text}), '[eE].*$', '')"
    digits = f"length(trim(replace(ltrim({plain}, '-'), '.', ''), '0'))"
    shortest = f"regexp_replace(lower(trim({text})), '([.][0-9]+?)0+$', '\\1')"
    small_exponent = f"NOT regexp_matches({text}, '[eE][-+]?(?:29[0-9]|[3-9][0-9]{{2}})')"
    return f"""(CASE WHEN length({text}) <= 16 THEN {small_exponent}
      WHEN {digits} <= 15 AND length({text}) < 250 THEN {small_exponent}
      ELSE {shortest} = CAST(TRY_CAST({text} AS DOUBLE) AS VARCHAR) END)"""


def number_sql(text: str, settings: ReadOptions) -> str:
    """SQL for a number of a CSV in the way of SQL: without separators of thousands, with a decimal point.

    With separators of the user's own, digits that are written otherwise are no number: it would be a different one.
    """
    if settings.decimal == "." and not settings.thousands:
        return text
    decimal, thousands = re.escape(settings.decimal), re.escape(settings.thousands)
    grouped = f"[0-9]{{1,3}}(?:{thousands}[0-9]{{3}})+|" if thousands else ""
    shape = f" *-?(?:{grouped}[0-9]*)(?:{decimal}[0-9]+)?(?:[eE][-+]?[0-9]+)? *"
    plain = f"replace(replace({text}, {quoting.text(settings.thousands)}, ''), {quoting.text(settings.decimal)}, '.')"
    if not thousands:
        plain = f"replace({text}, {quoting.text(settings.decimal)}, '.')"
    written = f"regexp_full_match({text}, {quoting.text(shape)})"
    return f"CASE WHEN {written} THEN {plain} WHEN regexp_matches({text}, '[0-9]') THEN NULL ELSE {text} END"


def matches(text: str, pattern: str) -> str:
    """SQL for whether the whole string matches a pattern."""
    return f"regexp_full_match({text}, '{pattern}')"


def _boolean(stats: ColumnStats) -> InferredType | None:
    return InferredType("boolean") if stats.booleans == stats.values else None


def _number(stats: ColumnStats) -> InferredType | None:
    if stats.integers + stats.fractions + stats.exponents + stats.not_finite != stats.values:
        return None
    if stats.integers == stats.values and not stats.not_bigint:
        return InferredType("bigint")
    if stats.integers < stats.values and not stats.lossy:
        return InferredType("double")
    plain = not (stats.exponents or stats.not_finite)
    if plain and stats.max_digits + stats.max_scale <= 38:
        return InferredType(f"decimal(38,{stats.max_scale})")
    return None


def _date(stats: ColumnStats) -> InferredType | None:
    if stats.dates == stats.values:
        return InferredType("date")
    if stats.dates + stats.ntz == stats.values:
        return InferredType("timestamp_ntz", truncated=stats.nanos > 0)
    return InferredType("timestamp", truncated=stats.nanos > 0) if stats.tz == stats.values else None


def _local_date(stats: ColumnStats) -> InferredType | None:
    format = _SHAPES.get(stats.max_shape)
    if stats.locals != stats.values or stats.min_shape != stats.max_shape or format is None:
        return None
    if not stats.not_day_first and not stats.not_month_first:
        return InferredType("string", undetermined=True)  # 01/02/2024 is ambiguous
    if stats.not_day_first and stats.not_month_first:
        return None
    if stats.not_day_first:
        format = re.sub(r"%d(.)%m", r"%m\1%d", format)
    return InferredType("timestamp_ntz" if " " in format else "date", format)


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
assert [field.name for field in fields(ColumnStats)][1 : 1 + len(_KINDS)] == list(_KINDS)


def _counts() -> str:
    return ", ".join(f"count(*) FILTER (kind = '{kind}') AS {name}" for name, kind in _KINDS.items())


def _kind() -> str:
    return f"""CASE WHEN {matches("r", INTEGER)} THEN 'i' WHEN {matches("r", FRACTION)} THEN 'f'
      WHEN {matches("r", EXPONENT)} THEN 'e' WHEN {matches("r", NOT_FINITE)} THEN 's' WHEN {matches("r", BOOLEAN)} THEN 'b'
      WHEN {matches("t", DATE)} AND TRY_CAST(t AS DATE) IS NOT NULL THEN 'd'
      WHEN {matches("t", TIMESTAMP_NTZ)} AND TRY_CAST(t AS TIMESTAMP) IS NOT NULL THEN 'n'
      WHEN {matches("t", TIMESTAMP)} AND TRY_CAST(t AS TIMESTAMPTZ) IS NOT NULL THEN 'z'
      WHEN {matches("t", LOCAL)} THEN 'l' ELSE 'x' END"""


def _reordered_date(order: str) -> str:
    target = "-".join(f"\\{group}" for group in order.split("-"))
    return f"regexp_replace(t, '^ *([0-9]+)[-/.]([0-9]+)[-/.]([0-9]{{4}}).*$', '{target}')"


def _shape() -> str:
    return "regexp_replace(regexp_replace(trim(t), '[0-9]+', '9', 'g'), '[aApP][mM]', 'M')"
