"""The service on a lake in an object store: its locked-down query processes read there, and Trino's rows pass through it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, replace

import psutil
import pyarrow
import pytest
import requests
from pyiceberg.catalog.sql import SqlCatalog as PyIceberg
from tests.support.servers.service import Client, Served, running
from tests.support.servers.stack import Stack

from lakehouse.config.profiles import resolve_profile
from lakehouse.core.errors import LakeError
from lakehouse.core.tables import Column
from lakehouse.engines.duckdb.workers.statement import WorkerStatement
from lakehouse.http.app import create_app, create_service
from lakehouse.http.keys import KeyRequest

pytestmark = pytest.mark.spark

ROWS = pyarrow.table({"id": [1, 2, 3], "name": ["Eve", "Bob", None]})


@pytest.fixture(scope="module")
def served(stack: Stack) -> Iterator[Served]:
    stack.need("storage", "postgres", "trino")
    lake = stack.lake("sql")
    properties = lake.refs.branches.catalog.pyiceberg_properties()
    with PyIceberg("lake", **properties) as catalog:
        catalog.create_namespace_if_not_exists("served")
        catalog.create_table("served.people", schema=ROWS.schema).append(ROWS)
    settings = resolve_profile(replace(stack.settings, profile="sql"))
    settings = replace(settings, serve=replace(settings.serve, workers=1, rate=0))
    with closing(create_service(lake, settings)) as service:
        key = service.keys.create(KeyRequest("admin", "ann"))[1]
        with running(create_app(service)) as url:
            yield Served(url, service, Client(url, key))


def test_query_processes_read_the_bucket_of_the_warehouse_and_nothing_else(served: Served, stack: Stack) -> None:
    answer = served.admin.post("/query", {"sql": "select id, name from served.people where id > 1 order by id"}).json()
    assert (answer["engine"], answer["rows"]) == ("duckdb", [{"id": 2, "name": "Bob"}, {"id": 3, "name": None}])
    location = served.admin.get("/tables/served.people").json()["location"]
    assert location.startswith("s3://")
    other = f"s3://{location.split('/')[2]}-other/x.parquet"
    for sql in (
        f"select * from read_parquet('{other}')",
        "select * from read_csv('/etc/passwd')",
        "select secret_string from duckdb_secrets()",
    ):
        statement = WorkerStatement(served.service.queries.pool, "json", 30, 10)
        columns = [asdict(Column("secret_string", "string"))]
        job = {"sql": sql, "views": [], "columns": columns, "may_fail": False, "parameters": {}, "limit": 10}
        job |= {"explain": False, "reason": ""}
        if "secrets" in sql:
            statement.start(job)
            assert stack.endpoints.s3_secret_key not in b"".join(statement.pieces()).decode(), "keys are not shown"
            continue
        with pytest.raises(LakeError):
            statement.start(job)


def test_rows_are_taken_without_spark(served: Served) -> None:
    sent = served.admin.ask(
        "POST", "/ingest/served.orders?key=id", json=[{"id": 1, "item": "tea"}, {"id": 2, "item": "jam"}]
    )
    assert sent.status_code == 200, sent.text
    sent = served.admin.ask("POST", "/ingest/served.orders", json=[{"id": 2, "item": "ham"}, {"id": 3, "item": "rum"}])
    assert (sent.json()["inserted"], sent.json()["updated"]) == (1, 1), sent.text
    for engine in ("duckdb", "trino"):
        answer = served.admin.post(
            "/query", {"sql": "select id, item from served.orders order by id", "engine": engine}
        )
        assert [row["item"] for row in answer.json()["rows"]] == ["tea", "ham", "rum"], engine


def test_rows_of_trino_pass_through_page_by_page(served: Served) -> None:
    sql = (
        "select id, cast(id as varchar) || rpad('', 200, 'x') as text, cast(id as decimal(10, 2)) as d, array[id] as a"
    )
    body = {"sql": f"{sql} from unnest(sequence(1, 1000)) t(x), unnest(sequence(1, 400)) u(id)", "engine": "trino"}
    headers = {"Authorization": f"Bearer {served.admin.key}", "Accept": "application/vnd.apache.arrow.stream"}
    before, most, count = psutil.Process().memory_info().rss, 0, 0
    with (
        requests.post(f"{served.url}/query", json=body, headers=headers, stream=True, timeout=300) as answer,
        pyarrow.ipc.open_stream(answer.raw) as batches,
    ):
        assert [str(field.type) for field in batches.schema] == [
            "int64",
            "string",
            "decimal128(10, 2)",
            "list<item: int64>",
        ]
        for batch in batches:
            count += batch.num_rows
            most = max(most, psutil.Process().memory_info().rss)
    assert count == 400_000
    assert most - before < 100 << 20, f"the result of 100 MB took {(most - before) >> 20} MB"


def test_trinos_writes_name_the_caller(served: Served) -> None:
    answer = served.admin.post("/query", {"sql": "insert into served.people values (4, 'Zoe')", "engine": "trino"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["rows_affected"] == 1
    newest = served.admin.get("/log?table=served.people").json()["commits"][0]
    assert (newest["what"], newest["author"]) == ("sql", "ann")
