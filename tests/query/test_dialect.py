"""One dialect, which is Spark's: DuckDB gives the same rows, types and names, or refuses."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow
import pytest
from tests.support.run_statements import rows

from lakehouse.core.errors import NotSupportedError
from lakehouse.lake import Lake

# ---- what Spark documents ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        pytest.param("select 7 / 2", 3.5, id="division-of-whole-numbers"),
        pytest.param("select 7 div 2", 3, id="div"),
        pytest.param("select -7 div 2", -3, id="div-goes-towards-zero"),
        pytest.param("select 1 / 0", None, id="division-by-zero-is-null"),
        pytest.param("select 1.0 / 0", None, id="division-of-a-decimal-by-zero"),
        pytest.param("select 5 % 0", None, id="modulo-zero"),
        pytest.param("select -5 % 3", -2, id="modulo-keeps-the-sign"),
        pytest.param("select concat('a', null)", None, id="concat-with-null-is-null"),
        pytest.param("select concat('a', 'b')", "ab", id="concat"),
        pytest.param('select "text"', "text", id="double-quotes-are-text"),
        pytest.param("select null <=> null, 1 / 1", True, id="null-safe-equality"),
        pytest.param("select substring('lake', 2, 2)", "ak", id="substring"),
        pytest.param("select round(2.5)", Decimal("3"), id="round-half-up"),
        pytest.param("select datediff('2026-02-01', '2026-01-30')", 2, id="datediff"),
        pytest.param("select year(timestamp '2026-01-31 12:00:00')", 2026, id="year"),
        pytest.param("select typeof(date_trunc('MON', timestamp_ntz'2020-08-12 01:02:03'))", "timestamp", id="date_trunc"),
        pytest.param("select typeof(current_date)", "date", id="current-date-without-parentheses"),
        pytest.param("select date'2020-01-31' + interval 1 month - interval 2 days", date(2020, 2, 27), id="intervals"),
        pytest.param("select unix_micros(timestamp'2020-2-3 4:5:6+01:30')", 1580697306000000, id="offset"),
        pytest.param("select timestampdiff(MONTH, timestamp'2021-01-31 12:00:00', timestamp'2021-03-01 10:00:00')", 0, id="timestampdiff-by-days-first"),
        pytest.param("select cast('5' as int) + 1", 6, id="cast"),
        pytest.param("select nvl(null, 3)", 3, id="nvl"),
        pytest.param("select if(1 > 2, 'a', 'b')", "b", id="if"),
        pytest.param("select length('lake')", 4, id="length"),
        pytest.param("select size(array(1, 2))", 2, id="size"),
        pytest.param("select array(1, 2)[0]", 1, id="arrays-count-from-zero"),
        pytest.param("select date_format(timestamp '2026-01-31 12:05:00', 'yyyy-MM-dd HH:mm')", "2026-01-31 12:05", id="format"),
        pytest.param("select cast('x' as int)", None, id="a-cast-that-fails-is-null"),
        pytest.param("select substring('lake', 0, 2)", "la", id="substring-from-zero"),
        pytest.param("select substring(name, id - 10, 2) from shop.customers where id = 10", "Ad", id="from-a-zero-within"),
        pytest.param("select substr('lake', -3, 2)", "ak", id="substring-from-the-end"),
        pytest.param("select substring('lake', null, 2)", None, id="substring-from-nowhere"),
        pytest.param("select 'it''s'", "its", id="two-quotes"),
        pytest.param("select date_add(date '2026-01-31', 1)", date(2026, 2, 1), id="date-add-gives-a-date"),
        pytest.param("select date_sub(date_add('2026-01-31', 1), 2)", date(2026, 1, 30), id="date-sub-of-a-date-add"),
        pytest.param("select add_months('2026-01-31', 1)", date(2026, 2, 28), id="add-months-gives-a-date"),
        pytest.param("select 99999999999999999999", Decimal("99999999999999999999"), id="a-large-number-is-a-decimal"),
        pytest.param("select user from (select 'me' as user) t", "me", id="a-column-that-duckdb-answers-itself"),
        pytest.param("select 1 -- from shop.nothing", 1, id="a-comment"),
        pytest.param("select 1; -- done", 1, id="a-comment-behind-a-semicolon"),
        pytest.param(
            "select transform(array(1, 2), x -> transform(array(10, 20), x -> transform(array(100), y -> x + y)))",
            [[[110], [120]], [[110], [120]]],
            id="the-inner-one-of-two-variables-with-one-name",
        ),
        pytest.param("select exists(array(1, null), x -> x > 1)", None, id="unknown-whether-one-exists"),
        pytest.param("select array_contains(array('{0}', null), '{1}')", None, id="braces-in-text"),
        pytest.param("select array_join(array('{0}', '{1}'), '{1}')", "{0}{1}{1}", id="braces-in-a-list"),
        pytest.param("select count(*) from (select array(1, null) as a union all select array(1, null)) t group by a", 2, id="groups-of-arrays"),
        pytest.param("select (1, 'a') in ((1, 'b'), (1, 'a')) as x", True, id="a-row-among-rows"),
    ],
)  # fmt: skip
def test_duckdb_answers_as_spark_documents(shop: Lake, sql: str, expected: Any) -> None:
    answer = rows(shop, sql)[0][0]
    assert answer == expected
    assert type(answer) is type(expected)


def test_a_star_beside_explode_has_only_the_columns_of_the_table(shop: Lake) -> None:
    sql = "select *, explode(array(7, 8)) as x from (select 5 as id) t order by x"
    assert rows(shop, sql) == [(5, 7), (5, 8)]


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        pytest.param(
            "select explode(array(1, 2)) as x from shop.orders where x > 1",
            "the name x",
            id="rows-that-where-cannot-see",
        ),
        pytest.param(
            "select * from (select array(1) as a) t, lateral explode(a)", "the name a", id="a-lateral-table-function"
        ),
        pytest.param("select array_append(array(1), 2.5)", "array_append", id="an-element-of-another-type"),
        pytest.param("select sort_array(array(0.0D, -0.0D)) as x", "only Spark", id="both-zeros-in-one-array"),
        pytest.param("select 2147483647 + 1", "Overflow", id="whole-numbers-wrap-in-spark"),
        pytest.param(
            "select upper('stra\N{LATIN SMALL LETTER SHARP S}e')", "only Spark answers", id="upper-of-sharp-s"
        ),
        pytest.param("select sentences('lake')", "the function sentences", id="a-function-without-a-rule"),
        pytest.param("select max(sentences('a') )", "the function sentences", id="a-function-within"),
        pytest.param("select a from shop.orders tablesample (1 rows)", "TABLESAMPLE", id="syntax"),
        pytest.param(
            "select to_timestamp(cast(cast(item as timestamp) as string)) as x from shop.orders",
            "the length of the statement",
            id="casts-within-casts-that-duckdb-would-plan-for-seconds",
        ),
    ],
)
def test_duckdb_refuses_what_it_would_answer_differently(shop: Lake, sql: str, reason: str) -> None:
    with pytest.raises(NotSupportedError, match=reason) as refused:
        rows(shop, sql)
    assert "--engine spark" in refused.value.hint


@pytest.mark.parametrize(
    ("order", "nulls"),
    [
        ("", "first"),
        ("asc nulls first", "first"),
        ("nulls last", "last"),
        ("desc", "last"),
        ("desc nulls first", "first"),
        ("desc nulls last", "last"),
    ],
)
def test_the_written_order_of_nulls_is_kept_in_a_translated_statement(shop: Lake, order: str, nulls: str) -> None:
    values = "(select explode(array(1, cast(null as int), 2)) as a)"
    ordered = [row[0] for row in rows(shop, f"select a from {values} order by a {order}")]
    assert ordered.index(None) == (0 if nulls == "first" else 2)
    numbered = dict(rows(shop, f"select a, row_number() over (order by a {order}) from {values}"))
    assert numbered[None] == (1 if nulls == "first" else 3)


def test_nulls_come_first_going_up_and_last_going_down(shop: Lake) -> None:
    for divide in ("", " / 1"):
        up = [row[0] for row in rows(shop, f"select id from shop.orders order by id{divide}")]
        down = [row[0] for row in rows(shop, f"select id from shop.orders order by id{divide} desc")]
        assert up == [None, 1, 2, 3, 4]
        assert down == [4, 3, 2, 1, None]
    assert [row[0] for row in rows(shop, "select id from shop.orders order by id nulls last")][-1] is None


def test_nan_is_the_largest_number(shop: Lake) -> None:
    assert math.isnan(rows(shop, "select max(weight) from shop.orders")[0][0])
    assert math.isnan(rows(shop, "select weight from shop.orders order by weight desc limit 1")[0][0])


def test_a_timestamp_with_zone_comes_as_the_moment_it_is(shop: Lake) -> None:
    (moment,) = rows(shop, "select at from shop.orders where id = 1")[0]
    assert moment == datetime(2026, 1, 31, 23, 30, tzinfo=UTC)
    assert moment.utcoffset() is not None
    arrow = shop.sql("select at from shop.orders where id = 1").to_arrow()
    assert arrow.column(0).to_pylist() == [moment]


def test_the_session_is_in_utc(shop: Lake) -> None:
    assert rows(shop, "select cast(at as date) from shop.orders where id = 1") == [(date(2026, 1, 31),)]
    assert rows(shop, "select hour(at) from shop.orders where id = 1") == [(23,)]


def test_columns_have_types_in_sparks_words(shop: Lake) -> None:
    result = shop.sql("select id, item, customer, price, weight, day, at, paid from shop.orders", engine="duckdb")
    assert [column.type for column in result.columns] == [
        column.type for column in shop.describe("shop.orders").columns
    ]


def test_a_sum_of_whole_numbers_is_a_bigint(shop: Lake) -> None:
    result = shop.sql("select item, sum(id) as n, sum(id) as n from shop.orders group by 1 order by 2 desc")
    assert [column.type for column in result.columns] == ["string", "bigint", "bigint"]
    assert result.rows()[0] == ("it's", 4, 4)
    assert result.to_arrow().schema.field(1).type == pyarrow.int64()


def test_a_sum_too_large_for_a_bigint_wraps_around(shop: Lake) -> None:
    largest = 2**63 - 1
    assert rows(shop, f"select sum(a) from (select {largest} as a union all select {largest}) t") == [(-2,)]


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        pytest.param("select count(*) from shop.orders", ["count(1)"], id="count"),
        pytest.param("select sum(id), max(item) from shop.orders", ["sum(id)", "max(item)"], id="functions"),
        pytest.param("select id as Number, item from shop.orders", ["Number", "item"], id="names"),
    ],
)
def test_columns_are_called_as_spark_calls_them(shop: Lake, sql: str, names: list[str]) -> None:
    assert shop.sql(sql, engine="duckdb").names == names
