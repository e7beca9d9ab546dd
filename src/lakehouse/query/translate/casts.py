"""Casts, explicit and implicit, as Spark does them without ANSI mode: what does not fit is NULL, never an error.

`{0}` is the value. Where DuckDB fails (an integer that does not fit, which Spark wraps around), Spark runs the statement.
"""

from __future__ import annotations

from collections.abc import Callable

from lakehouse.core.quoting import text
from lakehouse.query.translate.types import (
    DATE,
    DOUBLE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    NotTranslatedError,
    Type,
    decimal,
)
from lakehouse.query.translate.values import needs_spark

#: Spark trims these characters from text before it parses a number.
_TRIM = r"regexp_replace({0}, '^[\x00-\x20\x7f]+|[\x00-\x20\x7f]+$', '', 'g')"
_TRIM_SPACES = r"regexp_replace({0}, '^[\x00-\x20]+|[\x00-\x20]+$', '', 'g')"
_BOUNDS = {
    "tinyint": (-(2**7), 2**7 - 1),
    "smallint": (-(2**15), 2**15 - 1),
    "int": (-(2**31), 2**31 - 1),
    "bigint": (-(2**63), 2**63 - 1),
}
#: The first and the last moment of the years 1 to 9999, which both engines write and parse in the same way.
_USUAL_YEARS = "BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"

Template = Callable[[Type, Type], str]


def cast_sql(sql: str, given: Type, to: Type) -> str:
    """The SQL of a cast.

    Raises:
        NotTranslatedError: there is no rule for the two types.
    """
    if given == to:
        return sql
    if given.kind == "void":
        return f"CAST(NULL AS {to.duckdb})"
    if given.is_nested or to.is_nested:
        return _nested(sql, given, to)
    rule = _RULES.get((_family(given), _family(to)))
    if rule is None:
        raise NotTranslatedError(f"a cast of {given} to {to}")
    return rule(given, to).replace("{0}", sql)


def _family(kind: Type) -> str:
    return "integer" if kind.is_integer else "fraction" if kind.is_fraction else kind.kind


def _nested(sql: str, given: Type, to: Type) -> str:
    kinds = given.kind, to.kind
    if kinds == ("array", "array"):
        inner = cast_sql("x", given.parts[0], to.parts[0])
        return f"CAST(list_transform({sql}, lambda x: {inner}) AS {to.duckdb})"
    if kinds == ("struct", "struct") and len(given.parts) == len(to.parts):
        fields = [
            f"{text(new)}: {cast_sql(f'struct_extract({sql}, {text(name)})', part, new_part)}"
            for new, new_part, name, part in zip(to.names, to.parts, given.names, given.parts, strict=True)
        ]
        return f"CASE WHEN {sql} IS NOT NULL THEN CAST({{{', '.join(fields)}}} AS {to.duckdb}) END"
    if kinds == ("map", "map") and given.parts[0] == to.parts[0]:
        values = _nested(f"map_values({sql})", *(Type("array", parts=(kind.parts[1],)) for kind in (given, to)))
        return f"map(map_keys({sql}), {values})"
    if to.kind == "string":
        return _nested_text(sql, given)
    raise NotTranslatedError(f"a cast of {given} to {to}")


def _nested_text(sql: str, given: Type) -> str:
    """`[1, null]`, `{a -> 1}` or `{1, x}`."""

    def written(sql: str, kind: Type) -> str:
        return f"coalesce({cast_sql(sql, kind, STRING)}, 'null')"

    if given.kind == "struct":
        fields = [
            written(f"struct_extract({sql}, {text(n)})", part) for n, part in zip(given.names, given.parts, strict=True)
        ]
        listed = " || ', ' || ".join(fields)
        return f"CASE WHEN {sql} IS NOT NULL THEN '{{' || {listed} || '}}' END"
    if given.kind == "array":
        pieces, brackets = f"list_transform({sql}, lambda x: {written('x', given.parts[0])})", "[]"
    else:
        key, value = (
            written(f"struct_extract(x, '{n}')", part) for n, part in zip(("key", "value"), given.parts, strict=True)
        )
        pieces, brackets = f"list_transform(map_entries({sql}), lambda x: {key} || ' -> ' || {value})", "{}"
    return f"('{brackets[0]}' || array_to_string({pieces}, ', ') || '{brackets[1]}')"


def _fixed(template: str) -> Template:
    return lambda _given, to: template.replace("{to}", to.duckdb)


def _text_to_integer(_given: Type, to: Type) -> str:
    """Digits behind a decimal point are cut off; an exponent makes it no number."""
    pattern = r"[+-]?(\d+(\.\d*)?|\.\d*)"
    # A number without digits before the point is 0.
    whole = f"regexp_extract({_TRIM}, '^[+-]?\\d+')"
    return (
        f"CASE WHEN regexp_full_match({_TRIM}, '{pattern}')"
        f" THEN TRY_CAST(CASE WHEN {whole} = '' THEN '0' ELSE {whole} END AS {to.duckdb}) END"
    )


def _text_to_fraction(_given: Type, to: Type) -> str:
    number = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
    trimmed = _TRIM_SPACES
    # Java also reads hexadecimal numbers with an exponent, and a letter for the type behind a number.
    return (
        f"CASE WHEN regexp_full_match({trimmed}, '{number}') THEN TRY_CAST({trimmed} AS {to.duckdb})"
        f" WHEN regexp_full_match({trimmed}, '{number}[dDfF]') THEN TRY_CAST(left({trimmed}, -1) AS {to.duckdb})"
        f" WHEN regexp_full_match(lower({trimmed}), '\\+?inf(inity)?') THEN 'Infinity'::{to.duckdb}"
        f" WHEN regexp_full_match(lower({trimmed}), '-inf(inity)?') THEN '-Infinity'::{to.duckdb}"
        f" WHEN lower({trimmed}) = 'nan' THEN 'NaN'::{to.duckdb}"
        f" WHEN regexp_matches({trimmed}, '^[+-]?(0[xX].*[pP]|NaN|Infinity)') THEN {needs_spark(to.duckdb)} END"
    )


def _text_to_decimal(_given: Type, to: Type) -> str:
    number = r"[+-]?(\d+\.?\d*|\.\d+)"
    return (
        f"CASE WHEN regexp_full_match({_TRIM}, '{number}') THEN TRY_CAST({_TRIM} AS {to.duckdb})"
        f" WHEN regexp_full_match({_TRIM}, '{number}[eE][+-]?\\d+') THEN {needs_spark(to.duckdb)} END"
    )


def _text_to_boolean(_given: Type, _to: Type) -> str:
    word = f"lower({_TRIM})"
    return (
        f"CASE WHEN {word} IN ('t', 'true', 'y', 'yes', '1') THEN TRUE"
        f" WHEN {word} IN ('f', 'false', 'n', 'no', '0') THEN FALSE END"
    )


_DATE_TEXT = r"^(\d{4})(-(\d\d?)(-(\d\d?)([ T].*)?)?)?$"


def _text_to_date(_given: Type, _to: Type) -> str:
    def part(group: int, default: str) -> str:
        digits = f"regexp_extract({_TRIM}, '{_DATE_TEXT}', {group}, 's')"
        return f"CASE {digits} WHEN '' THEN '{default}' ELSE {digits} END"

    iso = f"regexp_extract({_TRIM}, '{_DATE_TEXT}', 1, 's') || '-' || {part(3, '1')} || '-' || {part(5, '1')}"
    # Years with a sign or more than four digits are left to Spark.
    return (
        f"CASE WHEN regexp_full_match({_TRIM}, '\\d{{4}}-\\d\\d-\\d\\d') AND {_TRIM} >= '0001'"
        f" THEN TRY_CAST({_TRIM} AS DATE)"
        f" WHEN regexp_matches({_TRIM}, '{_DATE_TEXT}', 's') AND {_TRIM} >= '0001' THEN TRY_CAST({iso} AS DATE)"
        f" WHEN regexp_matches({_TRIM}, '^[+-]?\\d{{4,7}}(-\\d\\d?(-\\d\\d?([ T].*)?)?)?$', 's') THEN {needs_spark('DATE')} END"
    )


#: The forms of a timestamp: parts from the right may be missing, of a zone only those that are plain offsets are read.
_TIME_TEXT = r"(\d{4})(?:-(\d\d?)(?:-(\d\d?)(?:[ T](\d\d?)(?::(\d\d?)(?::(\d\d?)(?:\.(\d*))?{zone})?)?)?)?)?"
_OFFSET = r" ?(Z|UTC|[+-](?:0\d|1[0-7]):[0-5]\d)?"
_TIME_PARTS = {"y": "", "mo": "1", "d": "1", "h": "0", "mi": "0", "s": "0", "f": "0", "z": "+00:00"}
#: Years of other lengths and other zones, which only Spark reads.
_ONLY_SPARK = r"[+-]?\d{4,6}(-\d\d?(-\d\d?([ T]\d\d?(:\d\d?(:\d\d?(\.\d*)?([^0-9.].*)?)?)?)?)?)?"
#: A time alone has the date of today; without a zone it is no timestamp.
_TIME_ALONE = r"|T\d.*|\d\d?:.*"


def _text_to_timestamp(_given: Type, to: Type) -> str:
    form = "^" + _TIME_TEXT.replace("{zone}", _OFFSET) + "$"
    parts = f"regexp_extract({_TRIM}, '{form}', {list(_TIME_PARTS)})"

    def part(name: str) -> str:
        return f"coalesce(nullif({parts}.{name}, ''), '{_TIME_PARTS[name]}')"

    clock = f"{part('h')} || ':' || {part('mi')} || ':' || {part('s')} || '.' || left({part('f')}, 6)"
    # Through TIMESTAMP, whose calendar goes back to year 1 as Spark's does. DuckDB takes 24:00 for the next day.
    moment = f"TRY_CAST({parts}.y || '-' || {part('mo')} || '-' || {part('d')} || ' ' || {clock} AS TIMESTAMP)"
    value = f"CASE WHEN CAST({part('h')} AS INTEGER) < 24 THEN {moment} END"
    if to == TIMESTAMP:
        minutes = f"(CAST(substr({part('z')}, 2, 2) AS INTEGER) * 60 + CAST(substr({part('z')}, 5, 2) AS INTEGER))"
        offset = f"CASE left({part('z')}, 1) WHEN '+' THEN {minutes} WHEN '-' THEN -{minutes} ELSE 0 END"
        value = f"CAST(make_timestamp(epoch_us({value}) - 60000000 * CAST({offset} AS BIGINT)) AS TIMESTAMPTZ)"
    only_spark = _ONLY_SPARK + (_TIME_ALONE if to == TIMESTAMP else "")
    return (
        f"CASE WHEN regexp_matches({_TRIM}, '{form}') AND {_TRIM} >= '0001' THEN {value}"
        f" WHEN regexp_full_match({_TRIM}, '{only_spark}', 's') THEN {needs_spark(to.duckdb)} END"
    )


def last_bits(sql: str, to: Type) -> str:
    """A longer integer as a shorter one has its last bits: a cast would fail, or not even that, as part of a comparison."""
    highest = _BOUNDS[to.kind][1]
    wide = "HUGEINT" if to.kind == "bigint" else "BIGINT"
    return f"CAST(xor({sql} & {2 * highest + 1}::{wide}, {highest + 1}::{wide}) - {highest + 1}::{wide} AS {to.duckdb})"


def _integer_to_integer(given: Type, to: Type) -> str:
    is_shorter = _BOUNDS[given.kind][1] > _BOUNDS[to.kind][1]
    return last_bits("CAST({0} AS BIGINT)", to) if is_shorter else f"CAST({{0}} AS {to.duckdb})"


def _decimal_to_integer(_given: Type, to: Type) -> str:
    bits = last_bits("CAST(trunc({0}) AS HUGEINT)", Type("bigint"))
    return bits if to.kind == "bigint" else last_bits(bits, to)


def _fraction_to_integer(given: Type, to: Type) -> str:
    """Cut off towards zero; what is too large becomes the largest value, and NaN becomes 0."""
    lowest, highest = _BOUNDS["bigint" if to.kind == "bigint" else "int"]
    # As doubles: the largest float or double below 2^63 is exact in a BIGINT.
    wide = "BIGINT" if to.kind == "bigint" else "INTEGER"
    value = "CAST({0} AS DOUBLE)" if given.kind == "float" else "{0}"
    sql = (
        f"CASE WHEN isnan({value}) THEN 0 WHEN {value} >= {highest}::DOUBLE THEN {highest}"
        f" WHEN {value} <= {lowest}::DOUBLE THEN ({lowest}) ELSE CAST(trunc({value}) AS {wide}) END"
    )
    return sql if to.kind in ("bigint", "int") else last_bits(f"CAST({sql} AS BIGINT)", to)


def _fraction_to_decimal(_given: Type, to: Type) -> str:
    """Through the text that Java writes for a double, which may have a digit too many: see `fraction_digits`."""
    value = "CAST({0} AS DOUBLE)"
    below, above = (double_as_decimal(f"nextafter({value}, '{end}'::DOUBLE)", to) for end in ("-inf", "inf"))
    return (
        f"CASE WHEN NOT isfinite({value}) THEN NULL"
        f" WHEN {DIGITS.replace('{0}', value)} <= 15 THEN {double_as_decimal(value, to)}"
        # Where the numbers next to it make the same decimal, so does every text of it.
        f" WHEN {below} IS NOT DISTINCT FROM {above} THEN {below} ELSE {needs_spark(to.duckdb)} END"
    )


def double_as_decimal(sql: str, to: Type) -> str:
    """The shortest text of a double as a decimal; NULL if it does not fit. DuckDB rounds text with a negative exponent wrongly."""
    return (
        f"CASE WHEN NOT contains(CAST({sql} AS VARCHAR), 'e-') THEN TRY_CAST(CAST({sql} AS VARCHAR) AS {to.duckdb})"
        f" WHEN abs({sql}) < 0.49e-{to.scale} THEN CAST(0 AS {to.duckdb})"
        f" WHEN {sql} IS NOT NULL THEN {needs_spark(to.duckdb)} END"
    )


#: How many digits the shortest text of a number has.
DIGITS = "length(regexp_replace(regexp_replace(CAST({0} AS VARCHAR), 'e.*', ''), '[-.]|^-?0\\.0*', '', 'g'))"


def fraction_digits(given: Type) -> str:
    """The shortest text of a number. Java 17 writes some numbers with a digit more, which have 16 or more of them."""
    longest = 15 if given.kind == "double" else 7
    return f"CASE WHEN {DIGITS} > {longest} THEN {needs_spark('VARCHAR')} ELSE CAST({{0}} AS VARCHAR) END"


def _fraction_to_text(given: Type, _to: Type) -> str:
    return (
        "CASE WHEN isnan({0}) THEN 'NaN' WHEN {0} = 'Infinity' THEN 'Infinity' WHEN {0} = '-Infinity' THEN '-Infinity'"
        f" WHEN {{0}} = 0 OR (abs({{0}}) >= 0.001 AND abs({{0}}) < 10000000) THEN {fraction_digits(given)}"
        f" ELSE {needs_spark('VARCHAR')} END"
    )


def _decimal_to_text(given: Type, to: Type) -> str:
    """Spark writes an exponent from the seventh zero behind the point on."""
    if given.scale == given.precision:  # DuckDB leaves out the zero before the point
        if given.precision == 38:
            raise NotTranslatedError(f"a cast of {given} to string")
        given = decimal(given.precision + 1, given.scale)
        return _decimal_to_text(given, to).replace("{0}", f"CAST({{0}} AS {given.duckdb})")
    if given.scale <= 6:
        return "CAST({0} AS VARCHAR)"
    return (
        f"CASE WHEN {{0}} > -0.000001::{given.duckdb} AND {{0}} < 0.000001::{given.duckdb}"
        f" THEN {needs_spark('VARCHAR')} ELSE CAST({{0}} AS VARCHAR) END"
    )


def _decimal_to_fraction(given: Type, to: Type) -> str:
    # Up to 15 digits are exact in a double; beyond, DuckDB's own cast may be off by one in the last place.
    if given.precision <= 15 and to == DOUBLE:
        return "CAST({0} AS DOUBLE)"
    return f"CAST(CAST({{0}} AS VARCHAR) AS {to.duckdb})"


def utc(sql: str, kind: Type) -> str:
    """A timestamp or date as a TIMESTAMP in UTC, whose functions need no time zone."""
    if kind == TIMESTAMP:
        return f"make_timestamp(epoch_us({sql}))"
    return f"CAST({sql} AS TIMESTAMP)" if kind == DATE else sql


def _time_to_text(given: Type, _to: Type) -> str:
    moment = utc("{0}", given) if given != DATE else "{0}"
    return (
        f"CASE WHEN CAST({moment} AS DATE) {_USUAL_YEARS} THEN CAST({moment} AS VARCHAR)"
        f" WHEN {{0}} IS NOT NULL THEN {needs_spark('VARCHAR')} END"
    )


def _time_to_time(given: Type, to: Type) -> str:
    moment = utc("{0}", given)
    return moment if to == TIMESTAMP_NTZ else f"CAST({moment} AS {to.duckdb})"


def epoch_seconds(sql: str) -> str:
    """Whole seconds since 1970, rounded down."""
    return f"(epoch_us({sql}) - (epoch_us({sql}) % 1000000 + 1000000) % 1000000) // 1000000"


def _timestamp_to_number(_given: Type, to: Type) -> str:
    if to.kind == "double":
        return "CAST(epoch_us({0}) AS DOUBLE) / 1000000"
    if to.is_integer:
        return f"CAST({epoch_seconds('{0}')} AS {to.duckdb})"
    raise NotTranslatedError(f"a cast of timestamp to {to}")


_CAST = _fixed("CAST({0} AS {to})")
_TRY = _fixed("TRY_CAST({0} AS {to})")
_RULES: dict[tuple[str, str], Template] = {
    ("boolean", "string"): _CAST,
    ("boolean", "integer"): _CAST,
    ("boolean", "fraction"): _fixed("CAST(CAST({0} AS INTEGER) AS {to})"),
    ("boolean", "decimal"): _fixed("TRY_CAST(CAST({0} AS INTEGER) AS {to})"),
    ("integer", "boolean"): _fixed("({0} <> 0)"),
    ("fraction", "boolean"): _fixed("({0} <> 0)"),
    ("decimal", "boolean"): _fixed("({0} <> 0)"),
    ("integer", "integer"): _integer_to_integer,
    ("integer", "fraction"): _CAST,
    ("integer", "decimal"): _TRY,
    ("integer", "string"): _CAST,
    ("integer", "timestamp"): _fixed("make_timestamptz(CAST({0} AS BIGINT) * 1000000)"),
    ("fraction", "fraction"): _CAST,
    ("fraction", "integer"): _fraction_to_integer,
    ("fraction", "decimal"): _fraction_to_decimal,
    ("fraction", "string"): _fraction_to_text,
    ("decimal", "decimal"): _TRY,
    ("decimal", "integer"): _decimal_to_integer,
    ("decimal", "fraction"): _decimal_to_fraction,
    ("decimal", "string"): _decimal_to_text,
    ("string", "integer"): _text_to_integer,
    ("string", "fraction"): _text_to_fraction,
    ("string", "decimal"): _text_to_decimal,
    ("string", "boolean"): _text_to_boolean,
    ("string", "date"): _text_to_date,
    ("string", "timestamp"): _text_to_timestamp,
    ("string", "timestamp_ntz"): _text_to_timestamp,
    ("string", "binary"): _fixed("encode({0})"),
    ("binary", "string"): _fixed("decode({0})"),
    ("date", "string"): _time_to_text,
    ("timestamp", "string"): _time_to_text,
    ("timestamp_ntz", "string"): _time_to_text,
    ("date", "timestamp"): _time_to_time,
    ("date", "timestamp_ntz"): _time_to_time,
    ("timestamp", "date"): _time_to_time,
    ("timestamp_ntz", "date"): _time_to_time,
    ("timestamp", "timestamp_ntz"): _time_to_time,
    ("timestamp_ntz", "timestamp"): _time_to_time,
    ("timestamp", "integer"): _timestamp_to_number,
    ("timestamp", "fraction"): _timestamp_to_number,
}
