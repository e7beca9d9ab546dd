"""One dialect, which is Spark's: DuckDB gives the same rows, types and names, and where it does not, that is written down."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow
import pytest
from tests.support.run_statements import rows

from lakehouse.core.errors import (
    QueryRejectedError,
)
from lakehouse.lake import Lake
from lakehouse.query.route import resolve_scans
from lakehouse.query.sql.parsed import parse_with_sqlglot
from lakehouse.query.sql.parser import parse
from lakehouse.query.sql.render import for_duckdb

# ---- plain and translated mean the same -------------------------------------------------------------------------

SAME = [
    "select * from shop.orders",
    "select count(*) from shop.orders",
    "select count(id), count(distinct item), min(price), max(weight), sum(customer), avg(id) from shop.orders",
    "select item, sum(price) as total from shop.orders group by item order by item",
    "select item, count(*) as n from shop.orders group by item having count(*) > 1",
    "select id from shop.orders order by id",
    "select id from shop.orders order by id desc",
    "select weight from shop.orders order by weight, id",
    "select weight from shop.orders order by weight desc, id desc",
    "select o.id, c.name from shop.orders o join shop.customers c on o.customer = c.id order by o.id",
    "select o.id, c.name from shop.orders o left join shop.customers c on o.customer = c.id order by 1, 2",
    "select o.id, c.name from shop.orders o full outer join shop.customers c on o.customer = c.id order by 1, 2",
    "select c.name from shop.customers c cross join shop.refunds order by 1",
    "select id from shop.orders where item like 't%' or item is null order by id",
    "select id from shop.orders where price between 0 and 3 and not paid",
    "select id from shop.orders where day >= '2026-01-31' order by id",
    "select id from shop.orders where at < '2026-02-01'",
    "select id from shop.orders where id in (1, 3) or customer in (select id from shop.customers where name = 'Bob')",
    "select case when price > 1 then 'dear' when price is null then '?' else 'cheap' end as k from shop.orders order by 1",
    "select id + 1, id - 1, id * 2, -id from shop.orders where id <> 2 order by 1",
    "select price * 2, price + 1.5 from shop.orders where id = 1",
    "select lower(item), upper(item), coalesce(item, 'none'), abs(price) from shop.orders order by id",
    "select x.item from (select item from shop.orders where id < 3) x order by 1",
    "select item from shop.orders union select name from shop.customers order by 1",
    "select id from shop.orders intersect select id from shop.refunds",
    "select id from shop.orders except select id from shop.refunds order by 1",
    "select distinct item from shop.orders order by item limit 2",
    "select true and false, null is null, 'a' = 'A', 1 < 2",
    "select orders.id from shop.orders where orders.id = 1",
    "select shop.orders.id from shop.orders where shop.orders.id = 1",
    "select item as id, id as n from shop.orders order by n",
    "select lower(item) as item, count(*) from shop.orders group by item order by 1, 2",
]


@pytest.mark.parametrize("sql", SAME)
def test_a_plain_statement_gives_the_same_rows_as_its_translation(shop: Lake, sql: str) -> None:
    assert parse(sql).tree is None, "not plain, so this test would compare a thing with itself"
    translated = for_duckdb(parse_with_sqlglot(sql), {})
    scans = {use.name: scan for use, scan in resolve_scans(parse(sql), shop._components.tables, "").items()}
    told = shop._components.duckdb.query(translated, scans, "test").rows()
    plain = rows(shop, sql)
    key = str if "order by" not in sql else None
    assert repr(sorted(plain, key=key) if key else plain) == repr(sorted(told, key=key) if key else told)
    assert plain


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
    ],
)  # fmt: skip
def test_duckdb_answers_as_spark_documents(shop: Lake, sql: str, expected: Any) -> None:
    found = rows(shop, sql)[0][0]
    assert found == expected
    assert type(found) is type(expected)


def gap(why: str) -> pytest.MarkDecorator:
    """A known difference, told of in the docs: what it would take is to know every type before DuckDB does."""
    return pytest.mark.xfail(strict=True, reason=why)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        pytest.param(
            "select 2147483647 + 1",
            -2147483648,
            id="whole-numbers-wrap",
            marks=gap("Spark wraps around, DuckDB refuses with 'Overflow in addition'"),
        ),
        pytest.param(
            "select upper('stra\N{LATIN SMALL LETTER SHARP S}e')",
            "STRASSE",
            id="upper-of-sharp-s",
            marks=gap("DuckDB changes case letter by letter, so one letter never becomes two"),
        ),
        pytest.param(
            "select count(*) from shop.orders where item = 1",
            0,
            id="text-compared-with-a-number",
            marks=gap("Spark takes text that is no number for NULL, DuckDB refuses with 'Could not convert'"),
        ),
        pytest.param(
            "select avg(price) from shop.orders",
            Decimal("1.175000"),
            id="avg-of-a-decimal-is-a-decimal",
            marks=gap("DuckDB's average of decimals is a double"),
        ),
    ],
)
def test_duckdb_answers_differently_from_spark(shop: Lake, sql: str, expected: Any) -> None:
    found = rows(shop, sql)[0][0]
    assert found == expected
    assert type(found) is type(expected)


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


def test_a_sum_too_large_for_a_bigint_is_refused(shop: Lake) -> None:
    largest = 2**63 - 1
    with pytest.raises(QueryRejectedError, match="out of range") as refused:
        rows(shop, f"select sum(a) from (select {largest} as a union all select {largest}) t")
    assert "--engine spark" in refused.value.hint


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
