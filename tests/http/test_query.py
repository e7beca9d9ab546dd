"""Queries: formats, parameters, limits, cancel, and processes that refuse what the guard would overlook."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import socket
import time
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet
from tests.support.servers.service import Client, Served, wait_for

from lakehouse.core.names import TableName

#: Takes minutes.
SLOW = "select sum(a.id * b.id) as s from range(10000000) a(id), range(100000) b(id)"
ARROW, PARQUET = "application/vnd.apache.arrow.stream", "application/vnd.apache.parquet"


@pytest.fixture(scope="module")
def orders(served: Served) -> Client:
    served.admin.insert("shop.orders?key=id", [{"id": number, "item": f"i{number}"} for number in range(10)])
    return served.admin


def fetch(client: Client, accept: str, sql: str = "select id, item from shop.orders order by id") -> Any:
    answer = client.post("/query", {"sql": sql}, headers={"Accept": accept})
    assert answer.status_code == 200, answer.text
    return answer


def test_each_format_has_the_same_rows(orders: Client) -> None:
    expected = [{"id": number, "item": f"i{number}"} for number in range(10)]
    assert fetch(orders, "application/json").json()["rows"] == expected
    arrow = fetch(orders, ARROW)
    assert arrow.headers["content-type"] == ARROW
    assert pyarrow.ipc.open_stream(arrow.content).read_all().to_pylist() == expected
    assert parquet.read_table(io.BytesIO(fetch(orders, PARQUET).content)).to_pylist() == expected
    lines_of_json = fetch(orders, "application/x-ndjson").text.splitlines()
    assert [json.loads(line) for line in lines_of_json] == expected
    lines = list(csv.DictReader(io.StringIO(fetch(orders, "text/csv;q=1, application/json;q=0.5").text)))
    assert [{"id": int(line["id"]), "item": line["item"]} for line in lines] == expected


def test_values_of_every_type_are_the_same_as_on_the_command_line(orders: Client) -> None:
    sql = (
        "select cast(1.50 as decimal(10,2)) as d, date '2026-01-31' as day, timestamp '2026-01-31 10:00:00' as at,"
        " array(1, 2) as list, map('a', 1) as m, named_struct('x', 1) as s, cast('ab' as binary) as b,"
        " cast('nan' as double) as n, cast(null as int) as none, true as yes, sum(x) as total"
        " from values (9000000000000000000), (1) t(x)"
    )
    assert orders.rows(sql) == [
        {
            "d": "1.50",
            "day": "2026-01-31",
            "at": "2026-01-31T10:00:00Z",
            "list": [1, 2],
            "m": {"a": 1},
            "s": {"x": 1},
            "b": "YWI=",
            "n": "nan",
            "none": None,
            "yes": True,
            "total": 9000000000000000001,
        }
    ]


def test_an_empty_result_has_its_columns(orders: Client) -> None:
    sql = "select id, item from shop.orders where id < 0"
    answer = fetch(orders, "application/json", sql).json()
    assert (answer["rows"], answer["row_count"], answer["truncated"]) == ([], 0, False)
    assert [column["name"] for column in answer["columns"]] == ["id", "item"]
    assert pyarrow.ipc.open_stream(fetch(orders, ARROW, sql).content).read_all().schema.names == ["id", "item"]
    assert parquet.read_table(io.BytesIO(fetch(orders, PARQUET, sql).content)).schema.names == ["id", "item"]


def test_columns_of_one_name_are_all_there(orders: Client) -> None:
    assert orders.rows("select 1 as a, 2 as a, 3 as a") == [{"a": 1, "a_2": 2, "a_3": 3}]


def test_a_limit_cuts_and_says_so(orders: Client) -> None:
    for limit, count, truncated in ((3, 3, True), (10, 10, False), (0, 0, True), (99, 10, False)):
        answer = orders.post("/query", {"sql": "select id from shop.orders", "limit": limit}).json()
        assert (answer["row_count"], answer["truncated"]) == (count, truncated)


@pytest.mark.parametrize("accept", ["text/csv", "application/x-ndjson", ARROW, PARQUET])
def test_every_format_says_whether_it_was_cut(orders: Client, accept: str) -> None:
    for limit, truncated in ((3, True), (10, False)):
        body = {"sql": "select id from shop.orders", "limit": limit}
        answer = orders.post("/query", body, headers={"Accept": accept})
        said = {name: answer.headers[f"X-Lake-{name}"] for name in ("Truncated", "Row-Count", "Row-Limit")}
        assert said == {"Truncated": str(truncated).lower(), "Row-Count": str(limit), "Row-Limit": str(limit)}
        if accept == PARQUET:
            metadata = parquet.read_metadata(io.BytesIO(answer.content)).metadata
            assert json.loads(metadata[b"lake.summary"])["truncated"] is truncated
            assert json.loads(metadata[b"lake.columns"]) == [{"name": "id", "type": "bigint"}]


def test_values_say_what_they_are(orders: Client) -> None:
    sql = (
        "select cast(v as decimal(22, 2)) as d, cast(0.1 as float) as f, cast(v as double) as x, t"
        " from values (1.5, ''), (12345678901234567890.12, null) as r(v, t) order by d"
    )
    assert fetch(orders, "text/csv", sql).text == (
        'd,f,x,t\n1.50,0.1,1.5,""\n12345678901234567890.12,0.1,1.2345678901234567e+19,\n'
    )
    rows = fetch(orders, "application/json", sql).json()["rows"]
    assert [row["d"] for row in rows] == ["1.50", "12345678901234567890.12"]
    assert [row["f"] for row in rows] == [0.1, 0.1]


@pytest.mark.parametrize("value", ["i3", "' or 1 = 1 --", "'; drop table shop.orders; --", "ü", "$item", ":item"])
def test_a_parameter_is_a_value_and_never_sql(orders: Client, value: str) -> None:
    sql = "select id from shop.orders where item = :item"
    rows = orders.rows(sql, parameters={"item": value})
    assert rows == ([{"id": 3}] if value == "i3" else [])
    listed = [{"name": "low", "value": "8", "type": "INT"}]
    assert orders.rows("select id from shop.orders where id >= :low order by id", parameters=listed) == [
        {"id": 8},
        {"id": 9},
    ]


def test_a_missing_parameter_is_an_error(orders: Client) -> None:
    answer = orders.post("/query", {"sql": "select id from shop.orders where item = :item"})
    assert (answer.status_code, answer.json()["error"]) == (400, "bad_sql")


def test_time_travel_and_branches(served: Served) -> None:
    client = served.admin
    first = client.insert("trips.t?key=id", [{"id": 1, "v": "a"}])["snapshot"]
    client.insert("trips.t?key=id", [{"id": 1, "v": "b"}])
    assert client.rows("select v from trips.t") == [{"v": "b"}]
    assert client.rows("select v from trips.t", as_of=first) == [{"v": "a"}]
    travelled = client.get("/tables/trips.t/travel", params={"when": first}).json()
    assert travelled["rows"] == [{"id": 1, "v": "a"}]
    client.post("/branches", {"name": "trips_exp"})
    client.insert("trips.t?key=id&branch=trips_exp", [{"id": 2, "v": "c"}])
    assert len(client.rows("select * from trips.t", branch="trips_exp")) == 2
    assert len(client.rows("select * from trips.t")) == 1


def test_explain_says_what_was_read(orders: Client) -> None:
    explanation = orders.post("/query", {"sql": "select * from shop.orders", "explain": True}).json()["explain"]
    assert (explanation["engine"], explanation["files_read"]) == ("duckdb", 1)


def test_nobody_reads_stale_rows_from_the_cache(served: Served) -> None:
    client, sql = served.admin, "select count(*) as n from fresh.t"
    for count in range(1, 4):
        client.insert("fresh.t", [{"id": count}])
        assert client.rows(sql) == client.rows(sql) == [{"n": count}]
    entries = [entry for entry in client.get("/audit").json()["entries"] if "fresh.t" in entry.get("tables", ())]
    assert [entry["cached"] for entry in entries if entry["path"] == "/query"] == [True, False] * 3


def test_a_result_that_varies_is_not_cached(orders: Client) -> None:
    assert orders.rows("select uuid() as u") != orders.rows("select uuid() as u")


@pytest.mark.parametrize(
    ("sql", "status"),
    [
        ("select * from read_csv('/etc/passwd')", 403),
        ("select * from '/etc/passwd'", 403),
        ("select * from csv.`/etc/passwd`", 403),
        ("copy shop.orders to '/tmp/x'", 403),
        ("attach '/tmp/x' as y", 400),
        ("install httpfs", 403),
        ("pragma database_list", 403),
        ("set memory_limit = '1TB'", 403),
        ("set spark.sql.shuffle.partitions = 3", 400),
        ("select 1; select 2", 400),
        ("select reflect('java.lang.System', 'exit', '1')", 403),
        ("call system.expire_snapshots('shop.orders')", 403),
        ("select getenv('HOME')", 403),
        ("select * from shop.nothing", 404),
        ("select nothing from shop.orders", 400),
        ("", 400),
    ],
)
def test_statements_outside_the_guard_are_refused(orders: Client, sql: str, status: int) -> None:
    answer = orders.post("/query", {"sql": sql})
    assert answer.status_code == status, answer.text
    assert {"error", "message", "hint"} <= answer.json().keys()


def test_the_query_process_itself_is_locked_down(served: Served, tmp_path: Path) -> None:
    from lakehouse.core.errors import LakeError
    from lakehouse.engines.duckdb.workers.statement import WorkerStatement

    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    for sql in (
        f"select * from read_csv('{secret}')",
        f"copy (select 1) to '{tmp_path}/out.csv'",
        "install httpfs",
        "set threads = 1",
        "set enable_external_access = true",
        f"attach '{tmp_path}/x.db' as x",
        "select * from read_csv('http://127.0.0.1:1/x')",
    ):
        statement = WorkerStatement(served.service.queries.pool, "json", 30, 10)
        with pytest.raises(LakeError):
            statement.start({"sql": sql, "views": [], "parameters": {}, "limit": 10, "explain": False, "reason": ""})
    assert list(tmp_path.iterdir()) == [secret]


def test_a_cancel_that_comes_before_its_statement_is_not_lost(served: Served) -> None:
    from lakehouse.engines.duckdb.workers import frames
    from lakehouse.engines.duckdb.workers.pool import Turn

    pool = served.service.queries.pool
    worker = pool.acquire(time.monotonic() + 60, Turn("test"))
    try:
        worker.number += 1_000_000
        worker.interrupt()
        job = {"sql": SLOW, "views": [], "columns": [{"name": "s", "type": "bigint"}], "may_fail": False}
        job |= {"parameters": {}, "limit": 10, "explain": False, "reason": "", "format": "json"}
        frames.send(worker.data, frames.RUN, json.dumps({**job, "number": worker.number}).encode())
        kind, content = worker.receive(time.monotonic() + 30)
        assert (kind, json.loads(content)["error"]) == (frames.ERROR, "canceled")
    finally:
        pool.release(worker, is_sound=False)


@pytest.mark.parametrize(
    "sql",
    [
        "select length(repeat('x', 1500000000)) as n",
        "select length(repeat(repeat('x', 30000), 50000)) as n",
    ],
)
def test_a_statement_that_needs_too_much_memory_fails_alone(orders: Client, sql: str) -> None:
    answer = orders.post("/query", {"sql": sql})
    assert answer.status_code >= 500 or answer.status_code == 200
    assert orders.rows("select 1 as one") == [{"one": 1}]


def test_a_statement_ends_after_its_timeout(orders: Client) -> None:
    begun = time.monotonic()
    answer = orders.post("/query", {"sql": SLOW, "timeout": 0.5})
    assert (answer.status_code, answer.json()["error"]) == (408, "timeout")
    assert time.monotonic() - begun < 30


def test_a_client_that_hangs_up_stops_its_query(served: Served) -> None:
    pool = served.service.queries.pool
    wait_for(lambda: pool.busy == 0 and len(pool._all) == pool._size)
    processes = {worker.pid for worker in pool._all}
    for sql in (SLOW, "select id, repeat('x', 1000) as x from range(100000000) t(id)"):
        connection = socket.create_connection(served.url.removeprefix("http://").split(":"))
        body = f'{{"sql": "{sql}"}}'.encode()
        head = f"POST /query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {served.admin.key}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        wait_for(lambda: pool.busy == 1)
        connection.close()
        wait_for(lambda: pool.busy == 0, 20)
    assert {worker.pid for worker in pool._all} == processes, "the statements were stopped, not their processes"


def test_a_killed_query_process_is_replaced(served: Served) -> None:
    pool = served.service.queries.pool
    wait_for(lambda: pool.busy == 0 and len(pool._all) == pool._size)
    for worker in list(pool._all):
        os.kill(worker.pid, signal.SIGKILL)
    # Different statements, which the cache does not answer.
    answers = [served.admin.post("/query", {"sql": f"select {number} as n"}).status_code for number in range(6)]
    assert set(answers) <= {200, 507}
    assert answers[-1] == 200


def test_a_statement_in_the_shape_of_databricks(orders: Client) -> None:
    sql = "select id from range(20000) t(id)"
    statement = orders.post("/statements", {"statement": sql, "row_limit": 10_000, "wait_timeout": "30s"}).json()
    assert statement["status"] == {"state": "SUCCEEDED"}
    manifest = statement["manifest"]
    assert (manifest["total_row_count"], manifest["truncated"]) == (10_000, True)
    assert manifest["schema"]["columns"] == [{"name": "id", "type_text": "bigint", "position": 0}]
    rows, chunk = list(statement["result"]["data_array"]), statement["result"]
    while link := chunk.get("next_chunk_internal_link"):
        chunk = orders.get(link).json()
        rows += chunk["data_array"]
    assert rows == [[number] for number in range(10_000)]
    assert orders.get(f"/statements/{statement['statement_id']}").json() == statement


@pytest.mark.parametrize("format", ["JSON_ARRAY", "ARROW_STREAM"])
def test_the_manifest_says_where_chunks_of_different_sizes_begin(orders: Client, format: str) -> None:
    # Long texts make chunks of fewer rows, and a line break within one is no end of a row.
    sql = "select id, repeat('long\\n', case when id < 1000 then 4000 else 1 end) as t from range(20000) t(id)"
    statement = orders.post("/statements", {"statement": sql, "format": format, "wait_timeout": "30s"}).json()
    chunks, next_row = statement["manifest"]["chunks"], 0
    assert len({chunk["row_count"] for chunk in chunks}) > 1
    for chunk in chunks:
        assert chunk["row_offset"] == next_row
        answer = orders.get(f"/statements/{statement['statement_id']}/result/chunks/{chunk['chunk_index']}")
        is_json = format == "JSON_ARRAY"
        rows = answer.json()["data_array"] if is_json else pyarrow.ipc.open_stream(answer.content).read_all()
        assert (rows[0][0] if is_json else rows["id"][0].as_py()) == next_row
        next_row += chunk["row_count"]
        assert len(rows) == chunk["row_count"]
    assert next_row == statement["manifest"]["total_row_count"] == 20_000


def test_chunks_as_arrow(orders: Client) -> None:
    body = {"statement": "select id from range(20000) t(id)", "format": "ARROW_STREAM", "wait_timeout": "30s"}
    statement = orders.post("/statements", body).json()
    path = f"/statements/{statement['statement_id']}/result/chunks/"
    counts = [
        pyarrow.ipc.open_stream(orders.get(f"{path}{number}").content).read_all().num_rows
        for number in range(statement["manifest"]["total_chunk_count"])
    ]
    assert sum(counts) == 20_000
    assert orders.get(f"{path}99").status_code == 404


def test_a_statement_outlives_its_request_and_is_canceled(served: Served) -> None:
    client = served.admin
    statement = client.post("/statements", {"statement": SLOW, "wait_timeout": "0s"}).json()
    path = f"/statements/{statement['statement_id']}"
    assert statement["status"]["state"] in ("PENDING", "RUNNING")
    wait_for(lambda: client.get(path).json()["status"]["state"] == "RUNNING")
    assert served.client().get(path).status_code == 404, "statements of others are not there"
    assert client.post(f"{path}/cancel").json()["status"]["state"] == "CANCELED"
    canceled = client.post("/statements", {"statement": SLOW, "wait_timeout": "5s", "on_wait_timeout": "CANCEL"})
    assert canceled.json()["status"]["state"] == "CANCELED"
    assert client.post("/statements", {"statement": "select 1", "wait_timeout": "3s"}).status_code == 400


def test_tables_are_listed_without_reading_them(served: Served) -> None:
    client, names = served.admin, [f"listed.t{number}" for number in range(3)]
    for name in names:
        client.insert(name, [{"id": 1}])
    reader = served.client("reader", namespaces=["listed"])
    catalog = served.service.lake.refs.branches.catalog
    pointer = catalog.pointer(TableName.parse("listed.t1"))
    assert pointer is not None
    # No metadata is there, which a listing that opened the table would report.
    assert catalog.swap_pointer(TableName.parse("listed.t1"), pointer, "file:///nowhere/1.metadata.json")
    listed = reader.get("/tables").json()
    tables = [{"name": name, "format": "iceberg"} for name in names]
    assert listed == {"tables": tables, "next_page_token": None, "views": []}
    first = reader.get("/tables", params={"page_size": 2}).json()
    second = reader.get("/tables", params={"page_size": 2, "page_token": first["next_page_token"]}).json()
    assert [table["name"] for page in (first, second) for table in page["tables"]] == names
    described = reader.get("/tables", params={"details": True, "page_size": 1}).json()
    assert [table["columns"][0]["name"] for table in described["tables"]] == ["id"]
    broken = reader.get("/tables", params={"details": True}).json()["tables"][1]
    assert (broken["name"], broken["problem"] != "") == ("listed.t1", True)
    catalog.swap_pointer(TableName.parse("listed.t1"), "file:///nowhere/1.metadata.json", pointer)
