"""Functions of dates and times.

Moments are computed as TIMESTAMP in UTC, whose calendar is Java's. Patterns and units are translated only as literals.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from lakehouse.query.sql import ast
from lakehouse.query.translate.casts import epoch_seconds, utc
from lakehouse.query.translate.intervals import add_interval, extracted
from lakehouse.query.translate.operators import shown
from lakehouse.query.translate.rules import Rule, coerce, rule
from lakehouse.query.translate.scope import ExpressionTranslator, Special
from lakehouse.query.translate.types import BIGINT, TIMESTAMP, NotTranslatedError, Type, parse_type
from lakehouse.query.translate.values import Value, literal_text, needs_spark, string

Build = Callable[[Sequence[Value]], str]


def _part(expression: str) -> Build:
    """An expression of the moment in UTC, which is `{0}`."""
    return lambda values: expression.replace("{0}", utc(values[0].sql, values[0].type))


#: Spark's names have no space in them: those with one are only for `extract`.
_DATE_PARTS = {
    "year": "year({0})",
    "quarter": "quarter({0})",
    "month": "month({0})",
    "day": "day({0})",
    "dayofmonth": "day({0})",
    "dayofyear": "dayofyear({0})",
    "dayofweek": "(dayofweek({0}) + 1)",
    "weekday": "(isodow({0}) - 1)",
    "weekofyear": "weekofyear({0})",
    "extract yearofweek": "isoyear({0})",
    "extract dayofweek_iso": "isodow({0})",
}
_CLOCK_PARTS = {"hour": "hour({0})", "minute": "minute({0})", "second": "second({0})"}
_SECONDS = "CAST(CAST(microsecond({0}) AS DECIMAL(8, 0)) * CAST('0.000001' AS DECIMAL(7, 6)) AS DECIMAL(8, 6))"
_AT = ("timestamp_ntz!", "timestamp")


def _parts() -> list[Rule]:
    return [
        *(rule(name, "date", "int", _part(sql), stored=True) for name, sql in _DATE_PARTS.items()),
        *(rule(name, at, "int", _part(sql), stored=True) for name, sql in _CLOCK_PARTS.items() for at in _AT),
        *(rule("extract second", at, "decimal(8,6)", _part(_SECONDS)) for at in _AT),
    ]


def _cast_to(kind: str) -> Build:
    return lambda values: coerce(values[0], parse_type(kind)).sql


#: Days of the week as they are numbered by `isodow`.
_WEEKDAYS = {
    name: number
    for number, day in enumerate("MONDAY TUESDAY WEDNESDAY THURSDAY FRIDAY SATURDAY SUNDAY".split(), start=1)
    for name in (day, day[:3], day[:2])
}


def _next_day(values: Sequence[Value]) -> str:
    day = _WEEKDAYS.get(literal_text(values[1], "next_day with a name").upper())
    return f"({{0}} + CAST(({day} - isodow({{0}}) + 6) % 7 + 1 AS INTEGER))" if day else "CAST(NULL AS DATE)"


# ---- of their parts ----------------------------------------------------------------------------------------------

_MADE_DATE = (
    "CASE WHEN {0} BETWEEN 0 AND 9999 THEN CASE WHEN {1} BETWEEN 1 AND 12 AND {2} BETWEEN 1 AND 31 THEN"
    " CASE WHEN {2} <= day(last_day(make_date({0}, {1}, 1))) THEN make_date({0}, {1}, {2}) END END"
    f" WHEN {{0}} IS NOT NULL AND {{1}} IS NOT NULL AND {{2}} IS NOT NULL THEN {needs_spark('DATE')} END"
)


def _made_timestamp(kind: str) -> Build:
    """Of year to second; a second of 60 is the next minute. Spark fails for a fraction behind it."""

    def build(_values: Sequence[Value]) -> str:
        clock = "({3}::BIGINT * 3600 + {4} * 60) * 1000000 + CAST({5} * 1000000 AS BIGINT)"
        made = f"make_timestamp(epoch_us(CAST({_MADE_DATE} AS TIMESTAMP)) + {clock})"
        return (
            f"CASE WHEN {{5}} >= 0 AND {{5}} <= 60 THEN CASE WHEN {{3}} BETWEEN 0 AND 23 AND {{4}} BETWEEN 0 AND 59"
            f" THEN CAST({made} AS {parse_type(kind).duckdb}) END"
            f" WHEN {{5}} IS NOT NULL THEN {needs_spark(parse_type(kind).duckdb)} END"
        )

    return build


def _made(name: str, kind: str) -> Rule:
    return rule(name, "int int int int int decimal(16,6)", kind, _made_timestamp(kind))


# ---- units -------------------------------------------------------------------------------------------------------

_TRUNCATED = {"year": "year", "yyyy": "year", "yy": "year", "quarter": "quarter", "month": "month", "mm": "month"}
_TRUNCATED |= {"mon": "month", "week": "week"}
_TRUNCATED_TIMES = _TRUNCATED | {"day": "day", "dd": "day", "hour": "hour", "minute": "minute", "second": "second"}
_TRUNCATED_TIMES |= {"millisecond": "millisecond", "microsecond": "microsecond"}


def _truncated(values: Sequence[Value]) -> str:
    kind = values[1].type
    unit = _TRUNCATED_TIMES.get(literal_text(values[0], "date_trunc to a unit").lower())
    start = f"date_trunc('{unit}', {utc('{1}', kind)})" if unit else "NULL"
    return f"CAST({start} AS {kind.duckdb})"


def _truncated_date(values: Sequence[Value]) -> str:
    unit = _TRUNCATED.get(literal_text(values[1], "trunc to a unit").lower())
    return f"CAST(date_trunc('{unit}', {{0}}) AS DATE)" if unit else "CAST(NULL AS DATE)"


_EXTRACTED = {
    "year": "year y years yr yrs",
    "extract yearofweek": "yearofweek",
    "quarter": "quarter qtr",
    "month": "month mon mons months",
    "weekofyear": "week w weeks",
    "day": "day d days",
    "dayofweek": "dayofweek dow",
    "extract dayofweek_iso": "dayofweek_iso dow_iso",
    "dayofyear": "doy",
    "hour": "hour h hours hr hrs",
    "minute": "minute m min mins minutes",
    "extract second": "second s sec seconds secs",
}
_UNIT_RULES = {unit: function for function, units in _EXTRACTED.items() for unit in units.split()}


def _arguments(expressions: ExpressionTranslator, node: ast.Call, *counts: int) -> list[Value]:
    if len(node.arguments) not in counts or node.distinct or node.where or node.over or node.within:
        raise NotTranslatedError(f"{node.name} in this form")
    return [expressions.translate(argument) for argument in node.arguments]


def _extract(template: str) -> Special:
    """`extract(unit FROM x)`, `date_part` and `datepart`, whose names in Spark differ."""

    def translate(expressions: ExpressionTranslator, node: ast.Call) -> Value:
        unit, value = _arguments(expressions, node, 2)
        text = literal_text(unit, "extract of a unit").lower()
        if text not in _UNIT_RULES:
            raise NotTranslatedError(f"extract of {text}")
        if value.type.kind == "interval":
            return extracted(_UNIT_RULES[text], value).named(shown(template, unit, value))
        return expressions.call_rules(_UNIT_RULES[text], [value]).named(shown(template, unit, value))

    return translate


_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_MICROS = {"microsecond": 1, "millisecond": 1000, "second": 10**6, "minute": 60 * 10**6, "hour": 3600 * 10**6}
_MICROS |= {"day": 86400 * 10**6, "week": 7 * 86400 * 10**6}


def _unit(expressions: ExpressionTranslator, node: ast.Call) -> tuple[str, list[Value], str]:
    """The unit, the arguments behind it, and the name of the call."""
    unit, *values = _arguments(expressions, node, 3)
    text = literal_text(unit, "a unit")
    if text.lower() not in {*_MONTHS, *_MICROS, "dayofyear"}:
        raise NotTranslatedError(f"{node.name} {text}")
    return text.lower(), values, text


def _unit_name(node: ast.Call, unit: str, values: Sequence[Value]) -> str:
    """All of these functions have one of two names in Spark."""
    return shown(f"{'timestampadd' if 'add' in node.name else 'timestampdiff'}({unit}, {{}}, {{}})", *values)


def _add_unit(expressions: ExpressionTranslator, node: ast.Call) -> Value:
    """`timestampadd(DAY, 3, ts)`."""
    unit, (count, moment), written = _unit(expressions, node)
    name = _unit_name(node, written, (count, moment))
    function = "add months" if unit in _MONTHS else "add micros"
    size = _MONTHS.get(unit) or _MICROS["day" if unit == "dayofyear" else unit]
    if not count.type.is_integer or count.type == BIGINT:
        raise NotTranslatedError(f"{node.name} of {count.type}")
    total = Value(f"({coerce(count, BIGINT).sql} * {size})", BIGINT, count.name)
    return expressions.call_rules(function, [moment, total]).named(name)


#: Java counts whole days first: the end is a day nearer if its time of day is not reached.
_TIME_OF_DAY = "(epoch_us({at}) - epoch_us(date_trunc('day', {at})))"
_MONTH_AND_DAY = "((year({at})::BIGINT * 12 + month({at})) * 32 + day({at}))"


def _months_between_days(values: Sequence[Value]) -> str:
    start, end = utc("{0}", TIMESTAMP), utc("{1}", TIMESTAMP)
    first, last = f"CAST({start} AS DATE)", f"CAST({end} AS DATE)"
    earlier, later = _TIME_OF_DAY.replace("{at}", start), _TIME_OF_DAY.replace("{at}", end)
    reached = (
        f"({last} + CASE WHEN {last} > {first} AND {later} < {earlier} THEN -1"
        f" WHEN {last} < {first} AND {later} > {earlier} THEN 1 ELSE 0 END)"
    )
    return f"(({_MONTH_AND_DAY.replace('{at}', reached)} - {_MONTH_AND_DAY.replace('{at}', first)}) // 32)"


def _unit_difference(expressions: ExpressionTranslator, node: ast.Call) -> Value:
    """`timestampdiff(DAY, a, b)`: whole units from a to b."""
    unit, values, written = _unit(expressions, node)
    if unit == "dayofyear":
        raise NotTranslatedError(f"{node.name} {written}")
    function = "months between days" if unit in _MONTHS else "micros between"
    whole = expressions.call_rules(function, values)
    return Value(f"({whole.sql} // {(_MONTHS | _MICROS)[unit]})", BIGINT, _unit_name(node, written, values))


#: Spark computes with doubles and whole seconds; the last days of two months are a whole number of months apart.
_MONTHS_BETWEEN = (
    "CASE WHEN day({a}) = day({b}) OR (CAST({a} AS DATE) = last_day({a}) AND CAST({b} AS DATE) = last_day({b})) THEN {whole}"
    " ELSE {whole} + ((day({a}) - day({b})) * 86400 + {sa} - {sb})::DOUBLE / 2678400.0::DOUBLE END"
)


def _months_between(expressions: ExpressionTranslator, node: ast.Call) -> Value:
    start, end, *choice = _arguments(expressions, node, 2, 3)
    is_rounded = choice[0].sql.lower() if choice and choice[0].is_literal else "" if choice else "true"
    if is_rounded not in ("true", "false"):
        raise NotTranslatedError("months_between with a choice that is no literal")
    value = expressions.call_rules(f"months between {is_rounded}", [start, end])
    return value.named(shown(f"months_between({{}}, {{}}, {is_rounded})", start, end))


def _months(is_rounded: bool) -> Build:
    def build(_values: Sequence[Value]) -> str:
        fields = {"{a}": utc("{0}", TIMESTAMP), "{b}": utc("{1}", TIMESTAMP)}
        fields |= {f"{{s{at}}}": f"({_TIME_OF_DAY.replace('{at}', fields[f'{{{at}}}'])} // 1000000)" for at in "ab"}
        months = [f"(year({fields[at]}) * 12 + month({fields[at]}))" for at in ("{a}", "{b}")]
        fields["{whole}"] = f"({months[0]} - {months[1]})::DOUBLE"
        exact = re.sub(r"\{\w+\}", lambda match: fields[match[0]], _MONTHS_BETWEEN)
        return f"(floor(({exact}) * 100000000.0::DOUBLE + 0.5::DOUBLE) / 100000000.0::DOUBLE)" if is_rounded else exact

    return build


# ---- patterns ----------------------------------------------------------------------------------------------------


class _Field(NamedTuple):
    """What letters of a Java pattern write, for the years 1 to 9999, and which digits they read."""

    written: str
    """In the words of DuckDB's strftime."""
    part: str = ""
    """Which part of a moment they read; empty where they are only written."""
    digits: str = ""


_FIELDS = {
    "yyyy": _Field("%Y", "year", r"\d{4}"),
    "yy": _Field("%y"),
    "y": _Field("%Y"),
    "MM": _Field("%m", "month", r"\d\d"),
    "M": _Field("%-m", "month", r"\d{1,2}"),
    "MMM": _Field("%b"),
    "MMMM": _Field("%B"),
    "LL": _Field("%m"),
    "L": _Field("%-m"),
    "dd": _Field("%d", "day", r"\d\d"),
    "d": _Field("%-d", "day", r"\d{1,2}"),
    "DDD": _Field("%j"),
    "D": _Field("%-j"),
    "E": _Field("%a"),
    "EE": _Field("%a"),
    "EEE": _Field("%a"),
    "EEEE": _Field("%A"),
    "HH": _Field("%H", "hour", r"\d\d"),
    "H": _Field("%-H", "hour", r"\d{1,2}"),
    "hh": _Field("%I"),
    "h": _Field("%-I"),
    "a": _Field("%p"),
    "mm": _Field("%M", "minute", r"\d\d"),
    "m": _Field("%-M", "minute", r"\d{1,2}"),
    "ss": _Field("%S", "second", r"\d\d"),
    "s": _Field("%-S", "second", r"\d{1,2}"),
    "SSS": _Field("%g", "fraction", r"\d{3}"),
    "SSSSSS": _Field("%f", "fraction", r"\d{6}"),
    "G": _Field("AD"),
    **{letters: _Field("Z") for letters in ("X", "XXX")},
    **{letters: _Field("UTC") for letters in ("z", "VV")},
    "x": _Field("+00"),
    "xxx": _Field("+00:00"),
    "Z": _Field("+0000"),
}
#: Letters that strftime has no word for.
_COMPUTED = {
    "Q": "CAST(quarter({at}) AS VARCHAR)",
    "QQ": "'0' || CAST(quarter({at}) AS VARCHAR)",
    "QQQ": "'Q' || CAST(quarter({at}) AS VARCHAR)",
    "k": "CASE hour({at}) WHEN 0 THEN '24' ELSE CAST(hour({at}) AS VARCHAR) END",
    "S": "left(strftime({at}, '%f'), 1)",
    "SS": "left(strftime({at}, '%f'), 2)",
    "SSSS": "left(strftime({at}, '%f'), 4)",
}
_PIECES = re.compile(r"(?P<letters>([A-Za-z])\2*)|'(?P<quoted>[^']+)'|(?P<plain>[^A-Za-z'\[\]{}#]+)|(?P<other>.)", re.S)


def _pieces(pattern: str, function: str) -> list[tuple[str, str]]:
    """The letters and the plain texts of a Java pattern, one of each pair empty."""
    pieces = []
    for match in _PIECES.finditer(pattern):
        if match["other"] or (match["letters"] and match["letters"] not in {*_FIELDS, *_COMPUTED}):
            raise NotTranslatedError(f"{function} with the pattern {pattern}")
        pieces.append((match["letters"] or "", match["quoted"] or match["plain"] or ""))
    if not pieces:
        raise NotTranslatedError(f"{function} with an empty pattern")
    return pieces


def _written(moment: str, pattern: str, function: str) -> str:
    """The text of a moment in UTC."""
    pieces = _pieces(pattern, function)
    texts = [
        _COMPUTED[letters].replace("{at}", moment)
        if letters in _COMPUTED
        else f"strftime({moment}, {string(_FIELDS[letters].written if letters else plain.replace('%', '%%'))})"
        for letters, plain in pieces
    ]
    # A year with one letter has no zeros before it.
    first = 1000 if any(letters == "y" for letters, _ in pieces) else 1
    return (
        f"CASE WHEN year({moment}) BETWEEN {first} AND 9999 THEN {' || '.join(texts)}"
        f" WHEN {moment} IS NOT NULL THEN {needs_spark('VARCHAR')} END"
    )


def _formatted(values: Sequence[Value]) -> str:
    pattern = literal_text(values[1], "date_format with a pattern")
    return _written(utc(values[0].sql, values[0].type), pattern, "date_format")


DEFAULT_PATTERN = "yyyy-MM-dd HH:mm:ss"


def _from_seconds(values: Sequence[Value]) -> str:
    pattern = literal_text(values[1], "from_unixtime with a pattern") if len(values) > 1 else DEFAULT_PATTERN
    return _written(f"make_timestamp({values[0].sql} * 1000000)", pattern, "from_unixtime")


def _parsed(sql: str, pattern: str, function: str) -> str:
    """The TIMESTAMP that a text stands for.

    Text that does not match is NULL, unless the parser of Spark 2 reads it, for which Spark raises an error. That parser
    needs the plain characters too, and digits or a sign at the start.
    """
    pieces = _pieces(pattern, function)
    fields = [_FIELDS.get(letters, _Field("")) for letters, _ in pieces if letters]
    parts = [field.part for field in fields]
    adjacent = any(before and after for (before, _), (after, _) in zip(pieces, pieces[1:], strict=False))
    is_variable = any("," in field.digits for field in fields)
    if (
        parts[:1] == [""]
        or "" in parts
        or len(set(parts)) < len(parts)
        or not pieces[0][0]
        or (adjacent and is_variable)
    ):
        raise NotTranslatedError(f"{function} with the pattern {pattern}")
    if (
        "year" not in parts
        or ("day" in parts and "month" not in parts)
        or ("fraction" in parts and "second" not in parts)
    ):
        raise NotTranslatedError(f"{function} with the pattern {pattern}")
    usual = "".join(f"({_FIELDS[letters].digits})" if letters else re.escape(plain) for letters, plain in pieces)
    lenient = ".*".join(re.escape(mark) for _, plain in pieces for mark in plain if not mark.isspace())

    def part(name: str, default: str) -> str:
        return (
            f"regexp_extract({sql}, {string(f'^{usual}$')}, {parts.index(name) + 1})"
            if name in parts
            else f"'{default}'"
        )

    fraction = f" || '.' || {part('fraction', '')}" if "fraction" in parts else ""
    iso = " || '-' || ".join((part("year", ""), part("month", "1"), part("day", "1")))
    clock = " || ':' || ".join(part(name, "0") for name in ("hour", "minute", "second"))
    moment = f"TRY_CAST({iso} || ' ' || {clock}{fraction} AS TIMESTAMP)"
    hour = f" AND {part('hour', '0')} < '24'" if "hour" in parts else ""
    in_range = f"{part('year', '')} >= '0001'{hour}"
    return (
        f"CASE WHEN regexp_matches({sql}, {string(f'^{usual}$')}) AND {in_range}"
        f" THEN coalesce({moment}, {needs_spark('TIMESTAMP')})"
        f" WHEN {sql} = '' OR regexp_matches({sql}, {string('^[!-*,./:-MO-~]')})"
        f" OR NOT regexp_matches({sql}, {string(lenient)}, 's') THEN NULL"
        f" WHEN {sql} IS NOT NULL THEN {needs_spark('TIMESTAMP')} END"
    )


def _read(kind: str) -> Build:
    """Text by a pattern, in a type."""

    def build(values: Sequence[Value]) -> str:
        pattern = literal_text(values[1], "a pattern of a timestamp")
        return f"CAST({_parsed(values[0].sql, pattern, 'to_timestamp')} AS {parse_type(kind).duckdb})"

    return build


def _read_seconds(values: Sequence[Value]) -> str:
    pattern = literal_text(values[1], "a pattern of a timestamp") if len(values) > 1 else DEFAULT_PATTERN
    return f"(epoch_us({_parsed(values[0].sql, pattern, 'unix_timestamp')}) // 1000000)"


def _added(span: str) -> Build:
    return lambda values: f"CAST(({utc('{0}', values[0].type)} + {span}) AS {values[0].type.duckdb})"


#: Zones without rules of their own, by which both engines compute the same.
_OFFSET = re.compile(r"(?:UTC|Z|([+-])(0\d|1[0-7]):([0-5]\d))")


def _zoned(function: str) -> Build:
    def build(values: Sequence[Value]) -> str:
        match = _OFFSET.fullmatch(literal_text(values[1], f"{function} with a zone"))
        if match is None:
            raise NotTranslatedError(f"{function} with the zone {values[1].constant}")
        minutes = int(match[2]) * 60 + int(match[3]) if match[1] else 0
        is_later = (match[1] == "+") == (function == "from_utc_timestamp")
        return f"make_timestamptz(epoch_us({{0}}) {'+' if is_later else '-'} {minutes * 60_000_000})"

    return build


def _day_rules() -> list[Rule]:
    """Dates plus and minus days, which Spark takes in no longer integer than INT, or intervals."""
    rules = []
    for operator, names in (("+", ("date_add", "dateadd", "try_add")), ("-", ("date_sub", "try_subtract"))):
        for name in names:
            given = "date!" if name.startswith("try") else "date"
            shown_name = "date_add" if name == "dateadd" else ""
            for count in ("int!", "smallint!", "tinyint!"):
                sql = f"({{0}} {operator} {{1}}::INTEGER)"
                rules.append(rule(name, f"{given} {count}", "date", sql, shown=shown_name))
        rules.append(_shift_rule(names[-1], operator))
    return rules


def _shift_rule(name: str, operator: str) -> Rule:
    def kind(values: Sequence[Value]) -> Type:
        return _shifted(values, operator).type

    return rule(name, "time interval", kind, lambda values: _shifted(values, operator).sql)


def _shifted(values: Sequence[Value], operator: str) -> Value:
    return add_interval(values[0], values[1], operator, "")


def _of_decimal_seconds(values: Sequence[Value]) -> str:
    """Spark fails where digits are smaller than a microsecond."""
    kind = values[0].type
    if kind.scale > 6 or kind.precision - kind.scale > 24:
        raise NotTranslatedError(f"timestamp_seconds of {kind}")
    return "make_timestamptz(CAST(CAST({0} AS DECIMAL(30, 6)) * 1000000 AS BIGINT))"


def _readers() -> list[Rule]:
    """Functions that read text, by a pattern or without one, and take dates and timestamps as they are."""
    kinds = {"to_date": "date", "to_timestamp": "timestamp", "to_timestamp_ltz": "timestamp"}
    kinds |= {"to_timestamp_ntz": "timestamp_ntz", "try_to_timestamp": "timestamp"}
    rules = []
    for name, kind in kinds.items():
        for given in ("string",) if name.startswith("try") else ("string", "date", "timestamp", "timestamp_ntz"):
            rules.append(rule(name, f"{given}!", kind, _cast_to(kind)))
            rules.append(rule(name, f"{given}! string!", kind, _read(kind) if given == "string" else _cast_to(kind)))
    rules.append(rule("to_timestamp", "integer", "timestamp", _cast_to("timestamp")))
    for name in ("unix_timestamp", "to_unix_timestamp"):
        default = f"{name}({{0}}, {DEFAULT_PATTERN})"
        rules.append(rule(name, "string!", "bigint", _read_seconds, shown=default))
        rules.append(rule(name, "string! string!", "bigint", _read_seconds))
        rules.append(rule(name, "time", "bigint", _seconds, shown=default))
        rules.append(rule(name, "time string!", "bigint", _seconds))
    return rules


def _seconds(values: Sequence[Value]) -> str:
    """Whole seconds, rounded towards zero."""
    return f"(epoch_us({utc('{0}', values[0].type)}) // 1000000)"


# ---- the table ---------------------------------------------------------------------------------------------------

RULES = [
    *_parts(),
    *_day_rules(),
    rule("datediff", "date date", "int", "({0} - {1})", stored=True),
    rule("date_diff", "date date", "int", "({0} - {1})", stored=True),
    rule("add_months", "date int", "date", "CAST(({0} + to_months({1})) AS DATE)"),
    rule("last_day", "date", "date", "last_day({0})"),
    rule("next_day", "date string", "date", _next_day),
    rule("months between true", "timestamp timestamp", "double", _months(is_rounded=True)),
    rule("months between false", "timestamp timestamp", "double", _months(is_rounded=False)),
    rule("months between days", "timestamp timestamp", "bigint", _months_between_days),
    rule("micros between", "timestamp timestamp", "bigint", "(epoch_us({1}) - epoch_us({0}))"),
    *(rule("add months", f"{at} bigint", "0", _added("to_months(CAST({1} AS INTEGER))")) for at in _AT),
    *(rule("add micros", f"{at} bigint", "0", _added("to_microseconds({1})")) for at in _AT),
    rule("trunc", "date string", "date", _truncated_date),
    rule("date_trunc", "string timestamp", "timestamp", _truncated),
    rule("make_date", "int int int", "date", _MADE_DATE),
    _made("make_timestamp", "timestamp"),
    _made("make_timestamp_ltz", "timestamp"),
    _made("make_timestamp_ntz", "timestamp_ntz"),
    rule("unix_date", "date!", "int", "({0} - DATE '1970-01-01')", stored=True),
    rule("date_from_unix_date", "int", "date", "(DATE '1970-01-01' + {0})"),
    rule("unix_micros", "timestamp!", "bigint", "epoch_us({0})"),
    rule("unix_millis", "timestamp!", "bigint", "((epoch_us({0}) - ((epoch_us({0}) % 1000) + 1000) % 1000) // 1000)"),
    rule("unix_seconds", "timestamp!", "bigint", f"({epoch_seconds('{0}')})"),
    rule("timestamp_micros", "integer", "timestamp", "make_timestamptz({0}::BIGINT)"),
    rule("timestamp_millis", "integer", "timestamp", "make_timestamptz({0}::BIGINT * 1000)"),
    rule("timestamp_seconds", "integer", "timestamp", "make_timestamptz({0}::BIGINT * 1000000)"),
    rule("timestamp_seconds", "decimal", "timestamp", _of_decimal_seconds),
    *(rule("date_format", f"{at} string", "string", _formatted) for at in _AT),
    rule("from_unixtime", "bigint", "string", _from_seconds, shown=f"from_unixtime({{0}}, {DEFAULT_PATTERN})"),
    rule("from_unixtime", "bigint string", "string", _from_seconds),
    *_readers(),
    rule("curdate", "", "date", "CAST(make_timestamp(epoch_us(now())) AS DATE)", shown="current_date"),
    rule("localtimestamp", "", "timestamp_ntz", "make_timestamp(epoch_us(now()))"),
    rule("current_timezone", "", "string", "'UTC'"),
    *(rule(name, "timestamp string", "timestamp", _zoned(name)) for name in ("from_utc_timestamp", "to_utc_timestamp")),
]
SPECIAL: dict[str, Special] = {
    "extract": _extract("extract({} FROM {})"),
    "datepart": _extract("datepart({} FROM {})"),
    "date_part": _extract("date_part({}, {})"),
    "months_between": _months_between,
    **{f"{name} unit": _add_unit for name in ("dateadd", "date_add", "timestampadd")},
    **{f"{name} unit": _unit_difference for name in ("datediff", "date_diff", "timestampdiff")},
}
