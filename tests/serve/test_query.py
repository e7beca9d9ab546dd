"""Queries over real tables: which engine and why, what comes out, and how much was read."""

from __future__ import annotations

import math
import threading
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyiceberg.catalog.sql import SqlCatalog as PyIceberg
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IntegerType, NestedField

from lakehouse.core.errors import (
    NoSuchTableError,
    NotSupportedError,
    QueryRejectedError,
    TableError,
    UnknownChoiceError,
    WhenError,
)
from lakehouse.core.ports import Request
from lakehouse.lake import Lake
from lakehouse.serve.query import Choice, _scans
from lakehouse.serve.sql import parse
from lakehouse.serve.sql.parsed import parse_with_sqlglot
from lakehouse.serve.sql.render import for_duckdb


def rows(lake: Lake, sql: str, **options: Any) -> list[tuple[Any, ...]]:
    return lake.sql(sql, engine="duckdb", **options).rows()


def choice(lake: Lake, sql: str, engine: str = "auto", as_of: str = "") -> Choice:
    """What would run it, without running it: Spark is not needed to know that it is."""
    return lake._rooms.queries._choose(parse(sql), lake._rooms.tables, Request(sql, as_of), engine)[0]


# ---- the choice -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "engine", "reason"),
    [
        pytest.param("select * from shop.orders", "duckdb", "fits in memory", id="a-read"),
        pytest.param("select 1", "duckdb", "a read of 0.0 MB", id="no-table"),
        pytest.param("insert into shop.orders select * from shop.refunds", "spark", "it writes", id="insert"),
        pytest.param("update shop.orders set id = 1", "spark", "it writes", id="update"),
        pytest.param("create table shop.new (id int)", "spark", "it writes", id="create"),
        pytest.param("alter table shop.orders add column x int", "spark", "it writes", id="alter"),
        pytest.param("call lake.system.expire_snapshots('shop.orders')", "spark", "Spark's own", id="call"),
        pytest.param("set a = b", "spark", "Spark's own", id="set"),
        pytest.param("describe shop.orders", "spark", "Spark's own", id="describe"),
        pytest.param("select * from shop.orders.snapshots", "spark", "metadata table", id="metadata-table"),
    ],
)
def test_the_engine_that_suits_a_statement_is_chosen(shop: Lake, sql: str, engine: str, reason: str) -> None:
    found = choice(shop, sql)
    assert found.engine == engine
    assert reason in found.reason


def test_a_result_says_which_engine_it_came_from(shop: Lake) -> None:
    result = shop.sql("select count(*) from shop.orders")
    assert result.engine == "duckdb"
    assert "fits in memory" in result.explain.reason
    assert shop.sql("select 1", engine="duckdb").explain.reason == "asked for"


def test_tables_larger_than_allowed_go_to_spark(shop_home: Path) -> None:
    from lakehouse.assemble import assemble
    from lakehouse.config.load import load_settings

    with assemble(load_settings({"home": shop_home, "query.largest_scan": "1kb"}, environ={})) as lake:
        found = choice(lake, "select * from shop.orders")
        assert found.engine == "spark"
        assert "query.largest_scan" in found.reason
        assert choice(lake, "select * from shop.orders", engine="duckdb").engine == "duckdb"
        assert choice(lake, "select 1").engine == "duckdb"


@pytest.mark.parametrize("sql", ["insert into shop.orders select 1", "set a = b", "select * from shop.orders.history"])
def test_duckdb_says_what_it_cannot_run(shop: Lake, sql: str) -> None:
    with pytest.raises(NotSupportedError, match="DuckDB cannot run this") as refused:
        shop.sql(sql, engine="duckdb")
    assert "spark" in refused.value.hint


def test_an_unknown_engine_lists_the_known_ones(shop: Lake) -> None:
    with pytest.raises(UnknownChoiceError, match="engine='trono'") as refused:
        shop.sql("select 1", engine="trono")
    assert refused.value.hint == "Choose one of: auto, duckdb, spark, trino."


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
    scans = {use.name: scan for use, scan in _scans(parse(sql), shop._rooms.tables, "").items()}
    told = shop._rooms.duckdb.run(translated, scans, "test").rows()
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


# ---- names ------------------------------------------------------------------------------------------------------


def test_a_table_in_the_default_namespace_needs_no_namespace(shop: Lake) -> None:
    assert rows(shop, "select count(*) from loose") == [(3,)]
    assert rows(shop, "select count(*) from default.loose") == [(3,)]
    assert rows(shop, "select count(*) from lake.default.loose") == [(3,)]


def test_a_common_table_expression_may_be_called_like_a_table(shop: Lake) -> None:
    sql = "with orders as (select * from shop.orders where id = 1) select count(*) from orders"
    assert rows(shop, sql) == [(1,)]


@pytest.mark.parametrize(
    "sql", ["select * from shop.ordrs", "select a / 2 from shop.ordrs", "select * from shp.orders"]
)
def test_an_unknown_table_names_the_nearest(shop: Lake, sql: str) -> None:
    with pytest.raises(NoSuchTableError) as refused:
        rows(shop, sql)
    assert refused.value.nearest[0] == "shop.orders"
    assert "Nearest: shop.orders" in refused.value.hint


@pytest.mark.parametrize(
    ("sql", "line", "column"),
    [
        pytest.param("select naem from shop.orders", 1, 8, id="plain-column"),
        pytest.param("select id,\n  naem\nfrom shop.orders", 2, 3, id="plain-second-line"),
        pytest.param("select id / 2,\n  naem\nfrom shop.orders", 2, 3, id="translated"),
        pytest.param("select id from shop.orders where where id = 1", 1, 34, id="syntax"),
        pytest.param("select id from shop.orders where sum(id) > 1", 1, 34, id="an-aggregate-in-where"),
        pytest.param("select " + "id, " * 60 + "naem from shop.orders", 1, 248, id="a-long-line"),
    ],
)
def test_a_mistake_is_pointed_at_in_the_users_text(shop: Lake, sql: str, line: int, column: int) -> None:
    with pytest.raises(QueryRejectedError) as refused:
        rows(shop, sql)
    assert (refused.value.line, refused.value.column) == (line, column)
    assert refused.value.pointer().splitlines() == [sql.splitlines()[line - 1], " " * (column - 1) + "^"]


# ---- more than one result at a time -----------------------------------------------------------------------------


def test_two_results_can_be_read_in_any_order(shop: Lake) -> None:
    first = shop.sql("select id from shop.orders order by id")
    second = shop.sql("select name from shop.customers order by name")
    third = shop.sql("select count(*) from shop.orders version as of 'main'")
    assert third.rows() == [(5,)]
    assert second.to_arrow().num_rows == 3
    assert len(first.rows()) == 5
    assert first.to_arrow().num_rows == 5
    assert first.to_arrow().num_rows == 5
    assert second.rows()[0] == (None,)


def test_threads_may_ask_at_once(shop: Lake) -> None:
    wrong: list[object] = []

    def ask(number: int) -> None:
        try:
            found = rows(shop, f"select count(*) + {number} from shop.orders")
            if found != [(5 + number,)]:
                wrong.append(found)
        except Exception as exc:  # noqa: BLE001 - whatever it is, the test tells
            wrong.append(exc)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_limit_is_kept_in_every_form(shop: Lake) -> None:
    result = shop.sql("select id from shop.orders order by id desc", limit=2)
    assert result.rows() == [(4,), (3,)]
    assert result.to_arrow().num_rows == 2
    assert rows(shop, "select id from shop.orders", limit=0) == []
    assert len(rows(shop, "select id from shop.orders limit 1", limit=10)) == 1


def test_a_thousand_statements_leave_no_thousand_catalogs(shop: Lake) -> None:
    for _ in range(20):
        rows(shop, "select 1")
    attached = "select count(*) from duckdb_databases()"
    assert shop._rooms.duckdb.run(attached, {}, "test").rows()[0][0] < 15


# ---- explain ----------------------------------------------------------------------------------------------------


def test_explain_counts_the_files_that_partitions_leave(open_lake: Any, pyiceberg: PyIceberg) -> None:
    schema = Schema(
        NestedField(1, "day", IntegerType(), required=False), NestedField(2, "n", IntegerType(), required=False)
    )
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "day"))
    table = pyiceberg.create_table("shop.parts", schema=schema, partition_spec=spec)
    numbers = [number for day in range(4) for number in [day] * 100]
    table.append(
        pyarrow.table({"day": pyarrow.array(numbers, pyarrow.int32()), "n": pyarrow.array(range(400), pyarrow.int32())})
    )
    lake = open_lake()
    assert lake.describe("shop.parts").partitioning == ("day",)
    everything = lake.sql("select sum(n) from shop.parts", explain=True).explain
    one_day = lake.sql("select sum(n) from shop.parts where day = 2", explain=True)
    assert (everything.files_read, everything.files_total) == (4, 4)
    assert (one_day.explain.files_read, one_day.explain.files_total) == (1, 4)
    assert one_day.explain.bytes_total == everything.bytes_total > 0
    assert 0 < one_day.explain.bytes_read < everything.bytes_read <= everything.bytes_total * 2
    assert "day" in one_day.explain.plan
    assert one_day.rows() == [(sum(range(200, 300)),)]


def test_without_explain_nothing_is_counted(shop: Lake) -> None:
    told = shop.sql("select 1").explain
    assert (told.files_read, told.plan) == (None, "")


# ---- namespaces and homes that trip others ----------------------------------------------------------------------


@pytest.mark.parametrize("namespace", ["temp", "memory", "information_schema", "system", "pg_catalog", "main"])
def test_a_namespace_may_be_called_what_duckdb_calls_its_own(
    open_lake: Any, pyiceberg: PyIceberg, namespace: str
) -> None:
    ids = pyarrow.table({"id": pyarrow.array([1], pyarrow.int32())})
    pyiceberg.create_namespace(namespace)
    for name in (f"{namespace}.t", f"{namespace}.u", "shop.t"):
        pyiceberg.create_table(name, schema=ids.schema).append(ids)
    lake = open_lake()
    assert rows(lake, f"select * from {namespace}.t") == [(1,)]
    assert rows(lake, f"select {namespace}.t.id, u.id from {namespace}.t, lake.{namespace}.u") == [(1, 1)]
    assert rows(lake, f"select lake.shop.t.id from shop.t join {namespace}.t x on x.id = shop.t.id") == [(1,)]
    assert rows(lake, f"select {namespace}.t.id from {namespace}.t version as of 'main'") == [(1,)]


def test_a_table_at_another_time_may_be_named_in_full(shop: Lake) -> None:
    assert rows(shop, "select shop.orders.id from shop.orders version as of 'main' where shop.orders.id = 1") == [(1,)]


def test_an_unnamed_list_of_values_has_sparks_names(shop: Lake) -> None:
    for sql in (
        "values (1, 'a'), (2, 'b')",
        "select * from values (1, 'a'), (2, 'b')",
        "select t.* from values (1, 'a'), (2, 'b') t",
    ):
        result = shop.sql(sql, engine="duckdb")
        assert (result.names, result.rows()) == (["col1", "col2"], [(1, "a"), (2, "b")])
    assert shop.sql("select * from values (1), (2) as t(x)", engine="duckdb").names == ["x"]


@pytest.mark.xfail(
    strict=True, raises=NoSuchTableError, reason="core/names.py: names are folded, the catalog's are not"
)
def test_a_table_that_others_made_in_upper_case_is_found(open_lake: Any, pyiceberg: PyIceberg) -> None:
    pyiceberg.create_table("shop.Orders", schema=pyarrow.schema([("id", pyarrow.int32())]))
    lake = open_lake()
    assert [str(info.name) for info in lake.tables()] == ["shop.Orders"]
    assert rows(lake, "select * from shop.Orders") == []


def test_a_home_may_have_a_space_in_its_name(tmp_path: Path) -> None:
    from lakehouse.assemble import assemble
    from lakehouse.catalogs.sql import SqlCatalog, open_database
    from lakehouse.config.load import load_settings

    home = tmp_path / "my lake"
    with assemble(load_settings({"home": home}, environ={})) as lake:
        ours = SqlCatalog(open_database(home / "catalog.db"), f"file://{home}/warehouse")
        theirs = PyIceberg("lake", **ours.pyiceberg_properties())
        theirs.create_namespace("shop")
        theirs.create_table("shop.t", schema=pyarrow.schema([("id", pyarrow.int32())]))
        theirs.close()
        assert rows(lake, "select count(*) from shop.t") == [(0,)]
        assert any((home / "warehouse").iterdir())
    assert [entry.name for entry in tmp_path.iterdir()] == ["my lake"]


def test_metadata_that_is_gone_is_told_of(open_lake: Any, pyiceberg: PyIceberg) -> None:
    table = pyiceberg.create_table("shop.t", schema=pyarrow.schema([("id", pyarrow.int32())]))
    Path(table.metadata_location.removeprefix("file://")).unlink()
    with pytest.raises(TableError, match="cannot be read") as refused:
        rows(open_lake(), "select * from shop.t")
    assert "restore" in refused.value.hint


def test_metadata_that_is_damaged_is_told_of(open_lake: Any, pyiceberg: PyIceberg) -> None:
    table = pyiceberg.create_table("shop.t", schema=pyarrow.schema([("id", pyarrow.int32())]))
    Path(table.metadata_location.removeprefix("file://")).write_text('{"format-version": 2, "loc')
    with pytest.raises(TableError):
        rows(open_lake(), "select * from shop.t")


def test_one_broken_table_does_not_hide_the_others(open_lake: Any, pyiceberg: PyIceberg) -> None:
    for name in ("shop.good", "shop.bad"):
        table = pyiceberg.create_table(name, schema=pyarrow.schema([("id", pyarrow.int32())]))
    Path(table.metadata_location.removeprefix("file://")).unlink()
    assert "shop.good" in [str(info.name) for info in open_lake().tables()]


# ---- empty tables, and as of ------------------------------------------------------------------------------------


def test_a_table_without_a_row_has_its_columns(open_lake: Any, pyiceberg: PyIceberg) -> None:
    kinds = [("id", pyarrow.int32()), ("at", pyarrow.timestamp("us", "UTC")), ("d", pyarrow.decimal128(10, 2))]
    kinds += [("tags", pyarrow.list_(pyarrow.string())), ("b", pyarrow.binary()), ("f", pyarrow.float32())]
    pyiceberg.create_table("shop.empty", schema=pyarrow.schema(kinds))
    result = open_lake().sql("select * from shop.empty")
    assert result.names == ["id", "at", "d", "tags", "b", "f"]
    assert result.rows() == []


def test_a_query_can_be_asked_as_of_a_moment(open_lake: Any, pyiceberg: PyIceberg) -> None:
    table = pyiceberg.create_table("shop.t", schema=pyarrow.schema([("id", pyarrow.int32())]))
    for number in range(3):
        table.append(pyarrow.table({"id": pyarrow.array([number], pyarrow.int32())}))
    lake = open_lake()
    first, second, third = lake.history("shop.t")
    count = "select count(*) from shop.t"
    assert rows(lake, count) == [(3,)]
    assert rows(lake, count, as_of=first.id) == [(1,)]
    assert rows(lake, count, as_of=second.at.isoformat()) == [(2,)]
    assert rows(lake, f"{count} version as of {first.id}") == [(1,)]
    assert rows(lake, f"{count} version as of {first.id}", as_of=second.id) == [(1,)]
    joined = f"select count(*) from shop.t a join shop.t version as of {second.id} b on a.id = b.id"
    assert rows(lake, joined) == [(2,)]
    assert rows(lake, f"select t.id from shop.t version as of {first.id} where t.id = 0") == [(0,)]
    assert choice(lake, count, as_of=third.id).engine == "duckdb"
    with pytest.raises(WhenError) as refused:
        rows(lake, count, as_of="2020-01-01")
    assert first.id in refused.value.hint


def test_nobody_reads_stale_data(open_lake: Any, pyiceberg: PyIceberg) -> None:
    table = pyiceberg.create_table("shop.t", schema=pyarrow.schema([("id", pyarrow.int32())]))
    lake = open_lake()
    for number in range(3):
        assert rows(lake, "select count(*) from shop.t") == [(number,)]
        table.append(pyarrow.table({"id": pyarrow.array([number], pyarrow.int32())}))


# ---- drop in SQL ------------------------------------------------------------------------------------------------


def test_drop_table_in_sql_can_be_undone(open_lake: Any, pyiceberg: PyIceberg) -> None:
    table = pyiceberg.create_table("shop.t", schema=pyarrow.schema([("id", pyarrow.int32())]))
    table.append(pyarrow.table({"id": pyarrow.array([1], pyarrow.int32())}))
    lake = open_lake()
    result = lake.sql("drop table shop.t")
    assert (result.engine, result.rows(), result.to_arrow().num_rows) == ("catalog", [], 0)
    assert lake.tables() == []
    assert lake.undrop("shop.t").current.rows_total == 1
    assert rows(lake, "select count(*) from shop.t") == [(1,)]


def test_drop_table_of_nothing_is_an_error_unless_told_otherwise(open_lake: Any, pyiceberg: PyIceberg) -> None:
    lake = open_lake()
    with pytest.raises(NoSuchTableError):
        lake.sql("drop table shop.nothing")
    assert lake.sql("drop table if exists shop.nothing").rows() == []


@pytest.mark.parametrize("sql", ["drop table shop.t purge", "DROP TABLE IF EXISTS shop.t PURGE;"])
def test_purge_is_refused_and_nothing_dropped(open_lake: Any, pyiceberg: PyIceberg, sql: str) -> None:
    pyiceberg.create_table("shop.t", schema=pyarrow.schema([("id", pyarrow.int32())]))
    lake = open_lake()
    with pytest.raises(NotSupportedError, match="PURGE") as refused:
        lake.sql(sql)
    assert "undrop" in refused.value.hint
    assert [str(info.name) for info in lake.tables()] == ["shop.t"]


@pytest.mark.parametrize(
    ("table", "sql"),
    [
        pytest.param("shop.t", "drop table shop.t purge -- for good", id="a-comment-behind-it"),
        pytest.param("default.purge", "drop table purge", id="a-table-of-that-name"),
    ],
)
def test_purge_is_what_the_statement_says_and_not_its_last_word(
    open_lake: Any, pyiceberg: PyIceberg, table: str, sql: str
) -> None:
    pyiceberg.create_namespace("default")
    pyiceberg.create_table(table, schema=pyarrow.schema([("id", pyarrow.int32())]))
    lake = open_lake()
    if table == "shop.t":
        with pytest.raises(NotSupportedError):
            lake.sql(sql)
    else:
        lake.sql(sql)
        assert lake.dropped() == [table]
