"""Trino over the lake's own tables and an OLTP database, through `lake sql --engine trino`."""

from __future__ import annotations

import threading
import time
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest
from tests.support.servers.stack import SEEN_BY_TRINO, Stack
from tests.support.threads import at_once

from lakehouse.core.errors import EngineError, NotSupportedError, QueryRejectedError
from lakehouse.core.progress import listening_to_tasks
from lakehouse.engines.trino import Trino, TrinoSettings
from lakehouse.lake import Lake

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def lake(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake with a table of orders in two snapshots, and users in the OLTP database."""
    endpoints = stack.need("storage", "postgres", "trino")
    with psycopg.connect(endpoints.databases["oltp"].url, autocommit=True) as oltp:
        oltp.execute("CREATE TABLE IF NOT EXISTS customers (id bigint PRIMARY KEY, name text)")
        oltp.execute("INSERT INTO customers VALUES (1, 'Ada'), (2, 'Bob') ON CONFLICT DO NOTHING")
    file: Path = tmp_path_factory.mktemp("files") / "orders.csv"
    opened = stack.lake("sql")
    file.write_text("id,customer,total\n1,1,10.50\n2,2,20.25\n")
    opened.ingest(file, into="trino_shop.orders", key=("id",))
    file.write_text("id,customer,total\n2,2,25.25\n3,1,30.00\n")
    opened.ingest(file, into="trino_shop.orders")
    return opened


def asked(lake: Lake, sql: str, **how: str) -> list[tuple[object, ...]]:
    return lake.sql(sql, engine="trino", **how).rows()


def test_one_sql_joins_the_oltp_database_with_the_lake(lake: Lake) -> None:
    answer = lake.sql(
        "select c.name, sum(o.total) as spent from trino_shop.orders o"
        " join oltp.public.customers c on c.id = o.customer group by 1 order by 1",
        engine="trino",
    )
    assert answer.engine == "trino"
    assert answer.names == ["name", "spent"]
    assert answer.rows() == [("Ada", Decimal("40.50")), ("Bob", Decimal("25.25"))]


def test_trino_and_duckdb_give_the_same_rows_and_types(lake: Lake) -> None:
    query = "select id, customer, total from trino_shop.orders order by id"
    there, here = lake.sql(query, engine="trino"), lake.sql(query, engine="duckdb")
    assert there.rows() == here.rows()
    assert [column.type for column in there.columns] == [column.type for column in here.columns]


def test_time_travel_by_version_by_when_and_in_the_metadata_tables(lake: Lake) -> None:
    first = lake.history("trino_shop.orders")[0].id
    then = [(1, Decimal("10.50")), (2, Decimal("20.25"))]
    assert asked(lake, f"select id, total from trino_shop.orders for version as of {first} order by id") == then
    assert asked(lake, "select id, total from trino_shop.orders order by id", as_of=first) == then
    assert len(asked(lake, 'select * from trino_shop."orders$snapshots"')) == 2
    assert [
        row[0] for row in asked(lake, 'select snapshot_id from trino_shop."orders$history" order by made_current_at')
    ][0] == int(first)


def test_trino_writes_into_the_warehouse_and_the_lake_reads_it(lake: Lake, stack: Stack) -> None:
    asked(lake, "create schema lake.by_trino")
    asked(lake, "create table by_trino.t (a bigint, b varchar) with (partitioning = array['b'])")
    inserted = lake.sql("insert into by_trino.t values (1, 'x'), (2, 'y')", engine="trino")
    assert str(inserted.changes) == "2 rows inserted"
    assert lake.sql("select a, b from by_trino.t order by a", engine="duckdb").rows() == [(1, "x"), (2, "y")]
    assert lake.sql("select count(*) from by_trino.t", engine="spark").rows() == [(2,)]
    assert lake.describe("by_trino.t").location.startswith(f"{stack.endpoints.warehouse}/by_trino")


def test_a_wrong_statement_is_told_with_its_place(lake: Lake) -> None:
    with pytest.raises(QueryRejectedError) as told:
        asked(lake, "select nothing from trino_shop.orders")
    assert (told.value.line, told.value.column) == (1, 8)


def test_trino_sees_a_branch_that_it_was_told_of(lake: Lake) -> None:
    lake.refs.branches.create(SEEN_BY_TRINO)
    count = "select count(*) from trino_shop.orders"
    asked(lake, "insert into trino_shop.orders values (9, 1, 1.00)", branch=SEEN_BY_TRINO)
    assert asked(lake, count, branch=SEEN_BY_TRINO) == [(4,)]
    assert lake.sql(count, engine="duckdb", branch=SEEN_BY_TRINO).rows() == [(4,)]
    assert asked(lake, count) == [(3,)]
    lake.refs.branches.drop(SEEN_BY_TRINO)
    assert asked(lake, count) == [(3,)]


def test_a_branch_that_trino_was_not_told_of_is_refused(lake: Lake) -> None:
    lake.refs.branches.create("trino_look")
    with pytest.raises(NotSupportedError, match="does not see the branch trino_look"):
        asked(lake, "select 1", branch="trino_look")


def test_the_same_tables_through_our_rest_catalog(lake: Lake, stack: Stack) -> None:
    stack.need("rest")
    assert asked(lake, "select count(*) from rest.trino_shop.orders") == [(3,)]
    asked(lake, "create table trino_shop.through_rest as select id from rest.trino_shop.orders")
    assert lake.sql("select count(*) from trino_shop.through_rest", engine="duckdb").rows() == [(3,)]


def test_updates_on_trino_that_lose_a_race_are_tried_again(lake: Lake) -> None:
    asked(lake, "create table trino_shop.counters as select 0 as n")
    answers = at_once(lambda _: asked(lake, "update trino_shop.counters set n = n + 1"), 4)
    assert not [answer for answer in answers if isinstance(answer, Exception)]
    assert asked(lake, "select n from trino_shop.counters") == [(4,)]


@pytest.mark.parametrize("is_shown", [True, False], ids=["shown", "reported"])
def test_a_statement_is_cancelled_and_its_progress_told(stack: Stack, is_shown: bool) -> None:
    endpoints = stack.need("trino")
    told: list[str] = []
    failed: list[EngineError] = []
    slow = "select count(*) from tpch.sf100.lineitem a join tpch.sf100.lineitem b on a.comment = b.comment"

    def ask() -> None:
        try:
            with listening_to_tasks(lambda amount: told.append(f"{amount.done} of {amount.total} {amount.unit}")):
                progress = told.append if is_shown else None
                Trino(TrinoSettings(endpoints.trino_url)).run(slow, "asked for", progress=progress)
        except EngineError as exc:
            failed.append(exc)

    asking = threading.Thread(target=ask)
    asking.start()
    look = Trino(TrinoSettings(endpoints.trino_url))
    running = "select query_id from system.runtime.queries where state = 'RUNNING' and query like '%tpch.sf100%' and query not like '%runtime%'"
    deadline = time.monotonic() + 60
    while not (rows := look.run(running, "look").rows()) or not told:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    look.run(f"call system.runtime.kill_query(query_id => '{rows[0][0]}', message => 'enough')", "stop")
    asking.join(60)
    assert "cancelled" in failed[0].message or "enough" in failed[0].message
    assert all("splits" in text for text in told)
    assert any("Running on Trino" in text for text in told) == is_shown
