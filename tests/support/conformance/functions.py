"""Statements with functions: all of Spark's with a column of every type, and the usual calls with their literals."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from functools import cache

from lakehouse.core.errors import QueryRejectedError
from lakehouse.core.tables import Column, Scan
from lakehouse.query.translate.functions import FAMILIES, family, is_aggregate
from lakehouse.query.translate.statement import translate_over
from lakehouse.query.translate.types import NotTranslatedError
from tests.support.conformance.examples import LEFT_OUT
from tests.support.conformance.statements import Question
from tests.support.conformance.values import TYPES, tables

#: Functions that make or remove rows, or of large numbers so much text or so many elements that memory ends.
_LARGE = (
    "window session_window explode explode_outer posexplode posexplode_outer inline inline_outer stack json_tuple sequence repeat space lpad rpad array_repeat"
    " format_number range schema_of_json schema_of_csv from_json from_csv raise_error assert_true bitmap_construct_agg bitmap_or_agg"
).split()
#: Aggregates whose answer depends on the order of rows, which Spark does not determine, or that are approximate.
_UNDETERMINED = "first first_value last last_value any_value mode max_by min_by approx_count_distinct count_min_sketch hll_sketch_agg histogram_numeric".split()
_SKIPPED = {*_LARGE, *_UNDETERMINED, *" ".join(LEFT_OUT.values()).split()}
#: Functions that are operators by another name, of which the pairs of all types are recorded as such.
_OPERATORS = set(
    "coalesce nvl ifnull nullif equal_null like ilike struct named_struct array map concat mod if count count_if ltrim rtrim dateadd date_diff getbit pow substr".split()
)
_NESTED_COLUMNS = ("ai", "sa", "ad", "ms", "st")


def of_one_value(functions: Sequence[str]) -> Iterator[Question]:
    """Each function with a column of each type. Spark refuses most of them."""
    for name, kind in itertools.product(functions, TYPES):
        yield Question("functions of one value", (f"{name}({kind.of(kind.column)})",), kind.table)
    for name, column in itertools.product(functions, _NESTED_COLUMNS):
        yield Question("functions of one value", (f"{name}({column})",), "nested")


#: Types of pairs; the casts show the others.
_OF_PAIRS = "bo i bi d d5 d38 s by da ts tn".split()
_SECOND = ("id", "1", "'a'", "null", "1.0D", "2.5", "cast(1 as bigint)")


def of_two_values() -> Iterator[Question]:
    """Each function of two values that DuckDB runs, with the pairs of types that have a rule."""
    kinds = [kind for kind in TYPES if kind.column in _OF_PAIRS]
    for name in sorted(_of_two_arguments()):
        for left, right in itertools.product(kinds, kinds):
            call = f"{name}(l_{left.column}, r_{right.column})"
            if (left.table == right.table or "texts" in (left.table, right.table)) and _has_rule(call, "pairs"):
                # Of extreme values and of all pairs together nothing is left but the rounding, which depends on the order of rows.
                where = "id < 64 and id % 3 = 0" if is_aggregate(name) else ""
                yield Question("functions of two values", (call,), "pairs", where, is_aggregate(name))
        for left_column, second in itertools.product(_NESTED_COLUMNS, (*_NESTED_COLUMNS, *_SECOND)):
            if _has_rule(call := f"{name}({left_column}, {second})", "nested"):
                yield Question("functions of two values", (call,), "nested")


def _of_two_arguments() -> set[str]:
    names = {rule.function for name in FAMILIES for rule in family(name).RULES if rule.patterns(2) is not None}
    names |= {name for module in FAMILIES for name in family(module).SPECIAL}
    return names - _OPERATORS - set(_LARGE)


@cache
def _scans() -> dict[str, Scan]:
    """The tables of edge values as Iceberg describes them to the translation."""
    kinds = {f"{side}{kind.column}": kind.name for kind in TYPES for side in ("", "l_", "r_")}
    kinds |= {"id": "int", "ai": "array<int>", "sa": "array<string>", "ad": "array<double>", "ms": "map<string,int>"}
    kinds["st"] = "struct<a:int,b:string>"
    return {
        name: Scan(tuple(Column(column, kinds[column]) for column in rows.column_names))
        for name, rows in tables().items()
        if name in ("pairs", "nested")
    }


def _has_rule(call: str, table: str) -> bool:
    try:
        translate_over(f"select {call} as c from {table}", _scans())
    except (NotTranslatedError, QueryRejectedError):
        return False
    return True


def called_by_name(functions: Sequence[str]) -> list[str]:
    """The functions that are called by a name and have a determined answer."""
    return [name for name in functions if re.fullmatch(r"[a-z]\w*", name) and name not in _SKIPPED]


def usual_calls() -> Iterator[Question]:
    """The functions that statements use most, with literals."""
    for table, calls in _USUAL.items():
        for call in filter(None, map(str.strip, calls.splitlines())):
            yield Question("usual calls", (call,), table)
    yield from _calls_of_times()
    for aggregate, column in itertools.product(_AGGREGATES, ("bo", "i", "bi", "d", "f", "d5", "d18", "d3818")):
        call = re.sub(r"\bx\b", column, aggregate)
        yield Question("aggregates", (call,), "numbers", "id between 6 and 14", aggregate=True)


def _calls_of_times() -> Iterator[Question]:
    """Dates and times with each unit and each pattern."""
    units = "year quarter month week day hour minute second millisecond microsecond".split()
    extracted = "year yearofweek quarter month week day dow dayofweek dayofweek_iso doy hour minute second".split()
    for unit, call in itertools.product(
        (*units, "bad"), ("date_trunc('{}', ts)", "trunc(da, '{}')", "date_trunc('{}', da)")
    ):
        yield Question("usual calls", (call.format(unit),), "times")
    for unit, column in itertools.product(extracted, ("ts", "da", "tn")):
        yield Question("usual calls", (f"extract({unit} from {column})",), "times")
    for unit in units:
        yield Question("usual calls", (f"timestampadd({unit}, 3, ts)",), "times", "id between 6 and 20")
        yield Question("usual calls", (f"timestampdiff({unit}, ts, timestamp'2020-02-29 12:30:45')",), "times")
    for pattern in _DATE_PATTERNS:
        yield Question("usual calls", (f"date_format(ts, '{pattern}')",), "times")
        yield Question("usual calls", (f"to_timestamp(s, '{pattern}')",), "texts")


_DATE_PATTERNS = (
    "yyyy-MM-dd", "yyyy-MM-dd HH:mm:ss", "yyyy-MM-dd HH:mm", "yyyyMMdd", "dd/MM/yyyy", "d.M.yy", "MMM d, yyyy", "MMMM yyyy", "EEE", "EEEE", "D", "Q", "yyyy", "MM",
    "hh:mm a", "HH:mm:ss.SSS", "ss.SSSSSS", "yyyy-MM-dd''T''HH:mm:ss", "G", "X", "z", "k",
)  # fmt: skip
_AGGREGATES = (
    "sum(x)", "avg(x)", "min(x)", "max(x)", "count(x)", "count(distinct x)", "sum(distinct x)", "stddev(x)", "stddev_pop(x)", "variance(x)", "var_pop(x)",
    "skewness(x)", "kurtosis(x)", "median(x)", "percentile(x, 0.3)", "percentile_approx(x, 0.5)", "corr(x, id)", "covar_samp(x, id)", "covar_pop(x, id)", "bit_xor(x)",
    "collect_list(x)", "collect_set(x)", "bool_or(x)", "every(x)", "count_if(x)", "try_sum(x)", "max_by(x, id)", "min_by(id, x)", "approx_count_distinct(x)", "regr_slope(x, id)",
    "sum(x) filter (where id > 8)", "percentile_cont(0.25) within group (order by x)", "percentile_disc(0.5) within group (order by x desc)",
)  # fmt: skip

_USUAL = {
    "times": """
        add_months(da, 1)
        add_months(da, -1)
        add_months(ts, 13)
        date_add(da, -1)
        date_sub(da, -1)
        datediff(da, date'2020-03-01')
        datediff(ts, '2020-03-01')
        months_between(ts, timestamp'2020-02-29 12:30:45')
        months_between(da, date'2020-02-29', false)
        next_day(da, 'Mon')
        next_day(da, 'bad')
        last_day(da)
        from_utc_timestamp(ts, 'America/New_York')
        from_utc_timestamp(ts, 'Europe/Berlin')
        from_utc_timestamp(ts, 'Asia/Kolkata')
        to_utc_timestamp(ts, 'Europe/Berlin')
        to_utc_timestamp(ts, 'America/New_York')
        convert_timezone('UTC', 'Europe/Berlin', tn)
        unix_timestamp(ts)
        to_unix_timestamp(da)
        unix_date(da)
        unix_micros(ts)
        unix_millis(ts)
        unix_seconds(ts)
        weekofyear(da)
        weekday(da)
        dayofweek(ts)
        dayofyear(da)
        date_part('seconds', ts)
        date_part('week', da)
        to_date(ts)
        date(ts)
        to_timestamp(da)
        timestamp(da)
        make_date(year(da), month(da), 1)
        make_date(year(da), 2, 30)
        make_timestamp(2020, month(da), day(da), 1, 2, 3.5)
        date_from_unix_date(day(da))
        timestamp_seconds(day(da))
        timestamp_millis(hour(ts))
        from_unixtime(day(da) * 86400)
        from_unixtime(day(da) * 86400, 'yyyy/MM/dd')
        ts - timestamp'2020-02-29 12:30:45'
        da - date'2020-02-29'
        da between '2020-01-01' and '2020-12-31'
        ts >= '2020-02-29'
        ts = '2020-02-29 12:30:45.123456'
        da = '2020-2-29'
        da in ('2020-02-29', '1970-01-01')
        greatest(da, date'2000-01-01')
        least(ts, tn)
        coalesce(da, date'1970-01-01')
        cast(ts as date) = da
        date_format(da, 'yyyy')
        string(ts)
        concat(da, ' ', ts)
        hash(da)
        hash(ts)
        xxhash64(da)
        typeof(ts)
    """,
    "texts": r"""
        substring(s, 1, 2)
        substring(s, 0, 2)
        substring(s, -3, 2)
        substring(s, 2)
        substr(s, 5, -1)
        left(s, 2)
        right(s, 2)
        instr(s, 'a')
        locate('a', s, 2)
        position('b' in s)
        lpad(s, 5, '*')
        rpad(s, 5, 'xy')
        lpad(s, 3)
        repeat(s, 2)
        repeat(s, -1)
        replace(s, 'a', 'bb')
        replace(s, 'a')
        translate(s, 'abc', 'xy')
        split(s, '[ab]')
        split(s, ',', 2)
        split(s, '')
        split(s, '-')[1]
        split_part(s, '-', 2)
        split_part(s, '-', -1)
        regexp_replace(s, '[0-9]+', '#')
        regexp_replace(s, '(\\w)(\\d)', '$2$1')
        regexp_extract(s, '(\\d+)-(\\d+)', 1)
        regexp_extract(s, '\\d+', 0)
        regexp_extract_all(s, '\\d+', 0)
        regexp_count(s, '\\d')
        regexp_instr(s, '\\d')
        regexp_substr(s, '\\d+')
        regexp_like(s, '^\\s*\\d+')
        s rlike '^[a-z]+$'
        s rlike '(?i)SPARK'
        s rlike '\\p{L}'
        s rlike '\\bSQL\\b'
        concat(s, 'x')
        concat_ws('-', s, 'x', null)
        trim(s)
        ltrim(s)
        rtrim(s)
        trim(both 'a' from s)
        trim(leading '0' from s)
        btrim(s, 'a ')
        upper(s)
        lower(s)
        initcap(s)
        length(s)
        char_length(s)
        bit_length(s)
        octet_length(s)
        ascii(s)
        reverse(s)
        soundex(s)
        levenshtein(s, 'abc')
        substring_index(s, '-', 2)
        substring_index(s, '-', -1)
        overlay(s placing '_' from 2)
        format_string('%s-%d', s, 1)
        md5(s)
        sha1(s)
        sha2(s, 256)
        crc32(s)
        base64(s)
        hex(s)
        unhex(s)
        encode(s, 'UTF-8')
        decode(encode(s, 'UTF-16BE'), 'UTF-16BE')
        get_json_object(s, '$.a')
        get_json_object(s, '$.b[1]')
        from_json(s, 'a int, b array<int>')
        json_array_length(s)
        parse_url(s, 'HOST')
        parse_url(s, 'QUERY', 'q')
        contains(s, 'a')
        startswith(s, 'a')
        endswith(s, 'b')
        find_in_set(s, 'a,b,abc')
        nullif(s, '')
        nvl(s, 'none')
        nvl2(s, 1, 2)
        ifnull(s, 'x')
        coalesce(s, 1)
        isnull(s)
        s = 1
        s = 1.5
        s > 0
        s in (1, 2)
        s = true
        s between 1 and 10
        s + 1
        s || 1
        -s
        s > 'a'
        greatest(s, 'b')
        least(s, 'b')
        if(s > 'a', s, 'z')
        case s when 'a' then 1 when '1' then 2 else 0 end
        decode(s, 'a', 1, 'A', 2, 0)
        to_date(s)
        to_date(s, 'yyyy-MM-dd')
        to_timestamp(s)
        date(s)
        year(s)
        date_add(s, 1)
        datediff(s, '2020-01-01')
        unix_timestamp(s)
        unix_timestamp(s, 'yyyy-MM-dd')
        try_to_timestamp(s)
        int(s)
        double(s)
        boolean(s)
        to_number(s, '999')
        try_to_number(s, '999.9')
        conv(s, 16, 10)
        str_to_map(s, ',', ':')
        sentences(s)
        mask(s)
        luhn_check(s)
        hash(s)
        xxhash64(s)
        url_encode(s)
        char(ascii(s))
        elt(2, s, 'b')
        typeof(s)
        size(split(s, ' '))
        array(s, 'x')
        map('k', s)
        struct(s, 1)
        named_struct('a', s)
    """,
    "numbers": """
        round(d)
        round(d, 1)
        round(d, -1)
        round(f, 2)
        round(d18)
        round(d18, 2)
        round(d18, -1)
        round(i, -1)
        bround(d, 1)
        bround(d18)
        ceil(d)
        ceil(d18)
        ceil(d18, 1)
        floor(d)
        floor(d18)
        floor(bi)
        format_number(d, 2)
        format_number(bi, 0)
        pmod(i, 3)
        pmod(d, 2.5D)
        mod(i, -3)
        i % 3
        power(d, 2)
        pow(i, 2)
        log(2, d)
        ln(d)
        log10(d)
        sqrt(d)
        exp(d)
        sign(d)
        abs(i)
        abs(d18)
        -i
        -d18
        greatest(i, bi, 3)
        least(d, i)
        nvl2(i, 'a', 'b')
        nanvl(d, 0.0D)
        isnan(d)
        bin(bi)
        hex(bi)
        shiftleft(i, 2)
        shiftright(i, 1)
        shiftrightunsigned(i, 1)
        width_bucket(d, 0, 10, 5)
        hash(i)
        hash(d)
        hash(d18)
        xxhash64(i)
        xxhash64(d)
        to_char(d18, '999.99')
        string(d)
        string(f)
        string(d3818)
        concat(i, d)
        i = '1'
        d = '1.5'
        d18 = 1.5
        d18 * 1.5
        d18 / 3
        d5 * d5
        d5 / d5
        d38 + 1
        d3818 * d3818
        i / 2
        i / 0
        bi div 0
        i in (1, 2.5)
        d in (1, 'x')
        if(bo, 1, 2.5)
        case when bo then i else d18 end
        i between 1 and 10.5
        bo and i > 0
        cast(i as string) || 'x'
        factorial(i)
        typeof(d18 * d5)
        typeof(i + 1.5)
        bit_count(i)
        bit_get(i, 1)
        cast(d as decimal(10,2))
        cast(bi as decimal(10,2))
        cast(i as timestamp)
        try_add(i, 1)
        try_divide(i, 0)
        try_multiply(bi, 2)
        try_subtract(i, 1)
        positive(i)
        negative(d)
        rint(d)
        degrees(d)
        radians(d)
        sin(d)
        cos(d)
        tan(d)
        atan2(d, 1)
        cbrt(d)
        expm1(d)
        hypot(d, 3)
    """,
    "nested": r"""
        ai[0]
        ai[5]
        ai[-1]
        element_at(ai, 1)
        element_at(ai, -1)
        get(ai, 0)
        ms['a']
        element_at(ms, 'a')
        st.a
        st.b
        size(ai)
        cardinality(ms)
        array_size(ai)
        array_contains(ai, 1)
        array_position(ai, 1)
        slice(ai, 2, 2)
        slice(ai, -1, 1)
        sort_array(ai)
        sort_array(ai, false)
        sort_array(ad)
        array_sort(sa)
        array_sort(ai)
        array_sort(ai, (x, y) -> y - x)
        array_distinct(ai)
        array_distinct(ad)
        array_union(ai, array(1, 9))
        array_intersect(ai, array(1, 9))
        array_except(ai, array(1, 9))
        array_remove(ai, 1)
        array_join(sa, '-')
        array_join(sa, '-', '?')
        array_max(ai)
        array_max(ad)
        array_min(sa)
        concat(ai, ai)
        flatten(array(ai, ai))
        reverse(ai)
        transform(ai, x -> x + 1)
        transform(ai, (x, i) -> x + i)
        filter(ai, x -> x > 1)
        filter(ai, (x, i) -> i > 0)
        exists(ai, x -> x > 1)
        forall(ai, x -> x > 1)
        aggregate(ai, 0, (a, x) -> a + x)
        reduce(ai, 0, (a, x) -> a + coalesce(x, 0))
        zip_with(ai, ai, (x, y) -> x * y)
        arrays_zip(ai, sa)
        arrays_overlap(ai, array(1))
        array_append(ai, 9)
        array_prepend(ai, 9)
        array_insert(ai, 2, 9)
        array_compact(ai)
        array_repeat(ai, 2)
        map_keys(ms)
        map_values(ms)
        map_entries(ms)
        map_contains_key(ms, 'a')
        map_concat(ms, map('z', 9))
        map_filter(ms, (k, v) -> v > 1)
        transform_values(ms, (k, v) -> v + 1)
        transform_keys(ms, (k, v) -> concat(k, 'x'))
        map_from_arrays(array('a', 'b'), array(1, 2))
        to_json(st)
        to_json(ms)
        to_json(ai)
        ai = array(1)
        st = struct(1, 'x')
        ai < array(2)
        string(ai)
        string(st)
        string(ms)
        hash(ai)
        sequence(1, 5)
        sequence(5, 1)
        sequence(1, 10, 3)
        typeof(ms)
        coalesce(ai, array())
        if(ai is null, array(0), ai)
        array(ai, ai)
        struct(ai, ms)
        array(null) as a
        array(1, null, 2.5) as a
        array_append(array(1), 2.5)
        array_append(ai, null) as x
        array_contains(array(1, null), 1)
        array_contains(array(1, null), 2)
        array_contains(ai, 1.0)
        array_contains(ad, 0.0D)
        array_contains(ad, double('NaN'))
        array_contains(sa, '')
        array_contains(array(), 1)
        array_contains(array(1), null)
        array_contains(sa, 1)
        array_contains(array(array(1, null)), array(1, null))
        array_position(ai, id)
        array_position(sa, 'b')
        array_remove(ad, 0.0D)
        array_remove(ad, double('NaN'))
        array_remove(ai, id)
        array_insert(ai, -1, 9)
        array_insert(ai, -2, 9)
        array_insert(ai, 7, 9)
        array_insert(ai, id + 1, 9)
        array_insert(ai, 1, null)
        array_insert(ai, null, 9)
        array_repeat(ai, id - 1)
        array_repeat('x', null)
        array_repeat('x', -1)
        array_union(sa, array('b', null))
        array_union(ai, array(1.5))
        array_intersect(ai, array(null, 1, 1))
        array_intersect(sa, array('b', 'Z'))
        array_except(ai, array(null))
        array_except(sa, sa)
        array_distinct(sa)
        arrays_overlap(ai, array(null, 7))
        arrays_overlap(sa, array('Z'))
        arrays_overlap(array(), ai)
        arrays_overlap(ai, array(7))
        arrays_zip(ai, array(1, 2))
        arrays_zip(array('x'), sa)
        array_join(ai, ',')
        array_join(ai, ',', 'N')
        array_join(sa, null)
        array_join(sa, ',', null)
        array_join(array(true, false, null), '|')
        array_join(array(date'2020-01-02'), '|')
        array_max(sa)
        array_min(ai)
        array_max(array(true, false))
        array_max(array(date'2020-01-02', null))
        array_sort(array(3, null, 1)) as x
        sort_array(sa, false)
        sort_array(array(true, null, false))
        element_at(ai, id)
        element_at(ai, 3)
        element_at(sa, -2)
        element_at(ms, 'b')
        element_at(ms, null)
        element_at(map(1, 'a'), 1L)
        try_element_at(ai, 9)
        try_element_at(ms, 'zz')
        get(ai, id - 2)
        get(sa, 1)
        ai[id - 2]
        ai[null]
        ms[null]
        ms['zz']
        slice(ai, 1, 0)
        slice(ai, -3, 2)
        slice(ai, 2, id)
        slice(ai, 9, 2)
        slice(ai, -9, 2)
        slice(sa, 1, null)
        flatten(array(ai, array(7)))
        flatten(array(array(1), null))
        reverse(sa)
        concat(ai, array(1L))
        concat(sa, array(null))
        concat(sa, array())
        sequence(1, id)
        sequence(id, 1)
        sequence(1L, 3)
        sequence(5, 1, -2)
        sequence(1, 1, 0)
        sequence(cast(1 as tinyint), cast(3 as tinyint))
        sequence(date'2020-01-30', date'2020-02-02')
        sequence(date'2020-02-02', date'2020-01-30')
        sequence(date'2020-01-31', date'2020-06-30', interval 1 month) as x
        sequence(date'2020-01-01', date'2020-01-10', interval 3 day) as x
        sequence(date'2020-01-01', date'2021-01-10', interval 1 year) as x
        sequence(timestamp'2020-01-01 00:00:00', timestamp'2020-01-01 05:00:00', interval 90 minute) as x
        sequence(timestamp'2020-01-31 10:00:00', timestamp'2020-04-30 05:00:00', interval 1 month) as x
        sequence(1, null)
        size(ms)
        cardinality(ai)
        size(array())
        map('a', 1, 'b', null)
        map('a', 1, 'b', 2.5)
        map(1, 'x', 2L, 'y')
        map('a', null) as x
        map('a', 1, 'a', 2)
        map_from_arrays(sa, ai)
        map_from_arrays(array('a'), array(null)) as x
        map_from_entries(array(struct('a', 1), null)) as x
        map_from_entries(map_entries(ms))
        map_concat(ms, ms)
        map_concat(map('z', 1), map('y', 2), map('x', 3))
        map_contains_key(ms, 'b')
        map_entries(map('a', 1))
        str_to_map('a=1&b=2&c', '&', '=')
        str_to_map('a:1:2,b:,:c')
        str_to_map('')
        str_to_map(null)
        struct(ai, 1)
        struct(st.a)
        struct(st.a) as x
        struct(id, id + 1)
        (id, 2)
        (1, 'a') as x
        named_struct('x', ai, 'y', null) as z
        named_struct('a', 1).a
        array(named_struct('a', 1), named_struct('a', null)).a
        map_entries(ms).key
        transform(sa, x -> length(x))
        transform(ai, x -> null) as y
        transform(ai, (x, i) -> i)
        transform(ai, x -> array(x, id))
        transform(ai, x -> transform(ai, y -> y = x))
        transform(array(1, 2), x -> transform(array(10, 20), x -> transform(array(100), y -> x + y)))
        transform(ai, x -> struct(x, 1)) as y
        transform(ai, x -> struct(x as a, 1 as b)) as y
        transform(ai, x -> (x, x + 0L)) as y
        transform(map_entries(ms), e -> e.key)
        transform(map_entries(ms), e -> e.value + 0L)
        filter(sa, x -> x is not null and x > 'a')
        filter(ai, x -> null)
        filter(map_entries(ms), e -> e.value > 0)
        exists(sa, x -> x is null)
        exists(ai, x -> x = 1)
        forall(sa, x -> length(x) < 2)
        forall(ai, x -> x is not null)
        aggregate(sa, 0, (a, x) -> a + length(x))
        aggregate(sa, 'x', (a, x) -> concat(a, coalesce(x, '-')))
        aggregate(ai, 0L, (a, x) -> a + x, a -> a * 10)
        aggregate(ai, 0, (a, x) -> a + 1, a -> a)
        aggregate(ai, 0, (a, x) -> a + 0L)
        aggregate(ai, cast(0 as bigint), (a, x) -> a + coalesce(x, 0), a -> (a, a + 1)) as y
        reduce(ai, named_struct('s', 0L, 'n', 0), (a, x) -> named_struct('s', a.s + x, 'n', a.n + 1), a -> a.s / a.n) as y
        zip_with(ai, sa, (x, y) -> concat(x, y))
        zip_with(ai, array(1), (x, y) -> coalesce(x, 0L) + coalesce(y, 0))
        map_filter(ms, (k, v) -> v is null)
        map_filter(ms, (k, v) -> k > 'a')
        transform_keys(ms, (k, v) -> 1)
        transform_values(ms, (k, v) -> concat(k, v))
        map_zip_with(ms, map('a', 5, 'q', 6), (k, x, y) -> coalesce(x, 0L) + coalesce(y, 100))
        map_zip_with(ms, ms, (k, x, y) -> k)
        ai != array(1)
        ai <=> null
        ai <=> ai
        ai < array(3)
        sa >= array('a')
        st = st
        st <=> named_struct('a', 1, 'b', 'x')
        st = named_struct('a', null, 'b', null)
        st in (named_struct('a', 1, 'b', 'x'), null)
        st in (named_struct('a', cast(null as int), 'b', cast(null as string)))
        (st.a, st.b) in ((1, 'x'), (2, 'y'))
        (id, st.b) in ((1, 'x'), (3, ''))
        ai in (array(1), array(5, 5, 5))
        array(1) = array(1L)
        cast(ai as string)
        cast(st as string)
        cast(ms as string)
        cast(ai as array<bigint>) as x
        cast(ai as array<string>) as x
        cast(st as struct<x:bigint,y:string>) as x
        cast(ms as map<string,bigint>) as x
        cast(map_entries(ms) as string)
        cast(array(array(1, null), null) as string)
        cast(array(true, null) as string)
        cast(array(1.50, null) as string)
        coalesce(ms, map('x', 0))
        if(id > 2, ai, array(0))
        case when id > 2 then st end
        nvl(ai, array(1L))
        array(ai, array(1L))
        typeof(array())
        typeof(map('a', array(1)))
        typeof(array(null))
        size(null)
        array_size(array())
        isnull(ai)
        array_compact(sa)
        array_prepend(sa, null) as x
        array_max(array(1, 2.5))
        sort_array(array(2, 1.5))
        sequence(1, 10, 4L)
        cast(null as array<int>) as x
        array_append(cast(null as array<int>), 2)
        array_contains(cast(null as array<int>), 2)
    """,
}
