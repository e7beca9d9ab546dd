"""QueryRouter over real tables: which engine and why, several at once, and how much was read."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyiceberg.catalog.sql import SqlCatalog as PyIceberg
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IntegerType, NestedField
from tests.support.run_statements import choice, rows

from lakehouse.core.errors import (
    NeedsSparkError,
    NoSuchTableError,
    NotSupportedError,
    QueryRejectedError,
    UnknownChoiceError,
)
from lakehouse.core.requests import QueryRequest
from lakehouse.lake import Lake

# ---- the choice -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "engine", "reason"),
    [
        pytest.param("select * from shop.orders", "duckdb", "fits in memory", id="a-read"),
        pytest.param("select 1", "duckdb", "a read of 0.0 MB", id="no-table"),
        pytest.param(
            "select id from shop.orders where id in (select id from shop.refunds) or id not in (select id from shop.refunds)",
            *("spark", "OR of IN and NOT IN of queries"),
            id="in-or-not-in",
        ),
        pytest.param(
            "select id from shop.orders where id in (select id from shop.refunds) or id in (select 1)",
            *("duckdb", "fits in memory"),
            id="in-or-in",
        ),
        pytest.param("insert into shop.orders select * from shop.refunds", "spark", "it writes", id="insert"),
        pytest.param("update shop.orders set id = 1", "spark", "it writes", id="update"),
        pytest.param("create table shop.new (id int)", "spark", "it writes", id="create"),
        pytest.param("alter table shop.orders add column x int", "spark", "it writes", id="alter"),
        pytest.param("call lake.system.rewrite_data_files('shop.orders')", "spark", "it writes", id="call"),
        pytest.param("set spark.sql.ansi.enabled = true", "spark", "Spark's own", id="set"),
        pytest.param("describe shop.orders", "spark", "Spark's own", id="describe"),
        pytest.param("select * from shop.orders.snapshots", "spark", "metadata table", id="metadata-table"),
    ],
)
def test_the_engine_that_suits_a_statement_is_chosen(shop: Lake, sql: str, engine: str, reason: str) -> None:
    chosen, why = choice(shop, sql)
    assert chosen == engine
    assert reason in why


def test_a_result_says_which_engine_it_came_from(shop: Lake) -> None:
    result = shop.sql("select count(*) from shop.orders")
    assert result.engine == "duckdb"
    assert "fits in memory" in result.explain.reason
    assert shop.sql("select 1", engine="duckdb").explain.reason == "requested"


def test_tables_larger_than_allowed_go_to_spark(shop_home: Path) -> None:
    from lakehouse.config.load import load_settings
    from lakehouse.lake.assemble import assemble

    with assemble(load_settings({"home": shop_home, "query.largest_scan": "1kb"}, environ={})) as lake:
        engine, reason = choice(lake, "select * from shop.orders")
        assert engine == "spark"
        assert "query.largest_scan" in reason
        assert lake.sql("select * from shop.orders", engine="duckdb").engine == "duckdb"
        assert choice(lake, "select 1")[0] == "duckdb"


@pytest.mark.parametrize(
    "sql",
    ["insert into shop.orders select 1", "set spark.sql.ansi.enabled = true", "select * from shop.orders.history"],
)
def test_duckdb_says_what_it_cannot_run(shop: Lake, sql: str) -> None:
    with pytest.raises(NotSupportedError, match="duckdb cannot run this statement") as refused:
        shop.sql(sql, engine="duckdb")
    assert "spark" in refused.value.hint


def test_duckdbs_own_sql_is_run_as_such(shop: Lake) -> None:
    own = QueryRequest("select list_sum([1, 2]) as s, count(*) as n from shop.orders", dialect="duckdb")
    result = shop.query(own)
    assert (result.engine, result.names, result.rows()) == ("duckdb", ["s", "n"], [(3, 5)])
    with pytest.raises(QueryRejectedError, match="does not exist"):
        shop.query(QueryRequest("select soundex('a')", dialect="duckdb")).rows()


@pytest.mark.parametrize(
    ("sql", "engine"),
    [
        ("select * from read_csv('/etc/passwd')", None),
        ("select * from '/etc/passwd'", None),
        ("select getenv('HOME')", None),
        ("copy shop.orders to '/tmp/x'", None),
        ("insert into shop.orders select 1", None),
        ("select 1", "spark"),
    ],
)
def test_duckdbs_own_sql_is_guarded(shop: Lake, sql: str, engine: str | None) -> None:
    with pytest.raises(NotSupportedError):
        shop.query(QueryRequest(sql, dialect="duckdb"), engine).rows()


def test_a_value_that_duckdb_does_not_answer_names_it(shop: Lake) -> None:
    with pytest.raises(NeedsSparkError, match="Overflow"):
        rows(shop, "select 2147483647 + id from shop.orders")


def test_an_unknown_engine_lists_the_known_ones(shop: Lake) -> None:
    with pytest.raises(UnknownChoiceError, match="engine: 'trono'") as refused:
        shop.sql("select 1", engine="trono")
    assert refused.value.hint == "Choose one of: auto, duckdb, spark, trino."


# ---- names ------------------------------------------------------------------------------------------------------


def test_a_table_in_the_default_namespace_needs_no_namespace(shop: Lake) -> None:
    assert rows(shop, "select count(*) from loose") == [(3,)]
    assert rows(shop, "select count(*) from default.loose") == [(3,)]
    assert rows(shop, "select count(*) from lake.default.loose") == [(3,)]


def test_a_common_table_expression_may_be_called_like_a_table(shop: Lake) -> None:
    sql = "with orders as (select * from shop.orders where id = 1) select count(*) from orders"
    assert rows(shop, sql) == [(1,)]


@pytest.mark.parametrize(
    "sql",
    [
        "select * from shop.ordrs",
        "select a / 2 from shop.ordrs",
        "select * from shp.orders",
    ],
)
def test_an_unknown_table_names_the_nearest(shop: Lake, sql: str) -> None:
    with pytest.raises(NoSuchTableError) as refused:
        rows(shop, sql)
    assert refused.value.nearest[0] == "shop.orders"
    assert "Did you mean shop.orders" in refused.value.hint


@pytest.mark.parametrize(
    "sql",
    [
        "insert into shop.ordrs select 1",
        "update shop.ordrs set id = 1",
        "delete from shop.ordrs",
        "merge into shop.ordrs t using shop.refunds r on t.id = r.id when matched then delete",
        "insert into shop.refunds select * from shop.ordrs",
    ],
)
def test_a_change_of_an_unknown_table_names_the_nearest_without_spark(shop: Lake, sql: str) -> None:
    with pytest.raises(NoSuchTableError) as refused:
        shop.sql(sql)
    assert refused.value.nearest[0] == "shop.orders"


@pytest.mark.parametrize(
    ("sql", "line", "column"),
    [
        pytest.param("select naem from shop.orders", 1, 8, id="plain-column"),
        pytest.param("select id,\n  naem\nfrom shop.orders", 2, 3, id="plain-second-line"),
        pytest.param("select id / 2,\n  naem\nfrom shop.orders", 2, 3, id="translated"),
        pytest.param("select id from shop.orders where where id = 1", 1, 34, id="syntax"),
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
            answer = rows(shop, f"select count(*) + {number} from shop.orders")
            if answer != [(5 + number,)]:
                wrong.append(answer)
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
    assert shop._components.duckdb.query(attached, {}, "test").rows()[0][0] < 15


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
