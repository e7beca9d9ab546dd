"""Statements and jobs on Spark behind the same API, on the warm Spark that all tests share."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import psutil
import pyarrow
import pytest
import requests
import sqlglot
from tests.conftest import command_for
from tests.support.servers.service import Client, Served, others_on, request_to, running_on, serve_app, unread, wait_for
from tests.support.threads import at_once

from lakehouse.client import connect
from lakehouse.config.settings import Settings
from lakehouse.core.errors import NoSuchTableError
from lakehouse.core.requests import QueryRequest
from lakehouse.core.result import RowChanges
from lakehouse.http.app import create_app, create_service
from lakehouse.http.execution import Execution
from lakehouse.http.keys import KeyRequest
from lakehouse.http.principal import Principal
from lakehouse.http.service import Call
from lakehouse.lake import Lake
from lakehouse.lake.spark import spark_daemon
from lakehouse.query.sql import parser

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def on_spark(shared_lake: Lake, shared_settings: Settings) -> Iterator[Served]:
    settings = replace(shared_settings, serve=replace(shared_settings.serve, workers=1))
    with closing(create_service(shared_lake, settings)) as service:
        key = service.keys.create(KeyRequest("admin", "ann"))[1]
        with serve_app(create_app(service)) as url:
            yield Served(url, service, Client(url, key))


def test_sql_writes_run_on_spark_and_are_read_at_once(on_spark: Served, namespace: str) -> None:
    client = on_spark.admin
    for sql in (
        f"create table {namespace}.t (id int, name string)",
        f"insert into {namespace}.t values (1, 'a'), (2, 'b')",
    ):
        answer = client.post("/query", {"sql": sql})
        assert (answer.status_code, answer.json()["engine"]) == (200, "spark"), answer.text
    assert client.rows(f"select name from {namespace}.t where id = 2") == [{"name": "b"}]
    result = client.post(
        "/query",
        {"sql": f"select name from {namespace}.t where id = :id", "parameters": {"id": 1}, "engine": "spark"},
    ).json()
    assert (result["rows"], result["engine"]) == ([{"name": "a"}], "spark")
    cut = client.post("/query", {"sql": f"select * from {namespace}.t", "engine": "spark", "limit": 1}).json()
    assert (cut["row_count"], cut["truncated"]) == (1, True)
    first = client.get(f"/tables/{namespace}.t/history").json()["snapshots"][0]["id"]
    client.post("/query", {"sql": f"delete from {namespace}.t where id = 1"})
    rolled = client.post(f"/tables/{namespace}.t/rollback", {"to": first})
    assert rolled.status_code == 200, rolled.text
    assert len(client.rows(f"select * from {namespace}.t")) == 2
    log = [(line["what"], line["author"]) for line in client.get(f"/log?table={namespace}.t").json()["commits"]]
    assert log == [("rollback", "ann"), ("sql", "ann"), ("sql", "ann"), ("sql", "ann")]


#: Statements on a table with the rows 1, 2 and 3, and what they say about the rows that they changed.
CHANGES: list[tuple[str, dict[str, int], str]] = [
    ("insert into {} values (1, 1), (2, 2), (3, 3)", {"affected": 3, "inserted": 3}, "3 rows inserted"),
    ("update {} set n = 9 where id >= 2", {"affected": 2, "updated": 2}, "2 rows updated"),
    ("update {} set n = 8 where id in (select 3)", {}, ""),
    ("delete from {} where id = 2", {"affected": 1, "deleted": 1}, "1 row deleted"),
    ("delete from {} where id = 77", {"affected": 0}, "0 rows affected"),
    (
        "merge into {} t using (select explode(array(1, 5, 6)) as id) s on t.id = s.id"
        " when matched then update set n = 0 when not matched then insert (id, n) values (s.id, 1)",
        {"inserted": 2},
        "2 rows inserted, updated rows not counted",
    ),
]


def test_answers_say_how_many_rows_were_changed(on_spark: Served, namespace: str, tmp_path: Path) -> None:
    table = f"{namespace}.t"
    on_spark.admin.post("/query", {"sql": f"create table {table} (id int, n int)"})
    for sql, counts, text in CHANGES:
        answer = on_spark.admin.post("/query", {"sql": sql.format(table)}).json()
        shown = {
            part: answer[f"rows_{part}"]
            for part in ("affected", "inserted", "updated", "deleted")
            if answer.get(f"rows_{part}")
        }
        assert shown == {part: count for part, count in counts.items() if count}, answer
        assert str(RowChanges.from_dict(answer)) == text
    with connect(on_spark.url, on_spark.admin.key) as lake:
        result = lake.sql(f"insert into {table} values (9, 9)")
        assert (result.rows_affected, result.changes.inserted) == (1, 1)
    asked = on_spark.admin.post("/query", {"sql": f"delete from {table} where id = 9"}, headers={"Accept": "text/csv"})
    assert asked.headers["X-Lake-Rows-Affected"] == "1"
    stated = on_spark.admin.post(
        "/statements", {"statement": f"insert into {table} values (9, 9)", "wait_timeout": "50s"}
    )
    assert stated.json()["manifest"]["rows_affected"] == 1
    (tmp_path / "key").write_text(on_spark.admin.key)
    run = command_for(tmp_path / "none")
    remote = ["--url", on_spark.url, "--key-file", str(tmp_path / "key")]
    printed = run(*remote, "sql", f"delete from {table} where id = 9")
    assert (printed.stdout, printed.stderr) == ("", "1 row deleted.\n")


def test_the_commits_of_both_formats_say_what_they_changed(shared_lake: Lake, namespace: str) -> None:
    modes = ", ".join(f"'write.{what}.mode' = 'merge-on-read'" for what in ("update", "delete", "merge"))
    shared_lake.sql(f"create table {namespace}.read (id int, n int) tblproperties ({modes})")
    shared_lake.sql(f"create table {namespace}.hudi (id int, n int) using hudi tblproperties (primaryKey = 'id')")
    for table in (f"{namespace}.read", f"{namespace}.hudi"):
        said = [
            str(shared_lake.sql(sql).changes)
            for sql in (
                f"insert into {table} values (1, 1), (2, 2), (3, 3)",
                f"update {table} set n = 9 where id in (select 2)",
                f"merge into {table} t using (select 1 as id, 5 as n union all select 5, 5) s on t.id = s.id"
                " when matched then update set t.id = s.id, t.n = s.n when not matched then insert *",
                f"delete from {table} where id <= 2",
            )
        ]
        assert said == ["3 rows inserted", "1 row updated", "1 row inserted, 1 updated", "2 rows deleted"], table


def test_statements_that_lose_a_race_are_run_again(on_spark: Served, namespace: str) -> None:
    client = on_spark.admin
    client.post("/query", {"sql": f"create table {namespace}.t as select 1 as id, 0 as n"})
    answers = at_once(lambda number: client.post("/query", {"sql": f"update {namespace}.t set n = n + 1"}), 3)
    assert [getattr(answer, "status_code", answer) for answer in answers] == [200, 200, 200]
    assert client.rows(f"select n from {namespace}.t") == [{"n": 3}]


def test_an_upload_creates_tables_of_both_formats(on_spark: Served, namespace: str) -> None:
    client, jobs = on_spark.admin, []
    for kind in ("iceberg", "hudi"):
        answer = client.ask(
            "POST",
            "/ingest",
            data={"into": f"{namespace}.{kind}_t", "key": "id", "format": kind},
            files={"file": ("rows.csv", b"id,name\n1,a\n2,b\n", "text/csv")},
        )
        assert answer.status_code == 202, answer.text
        jobs.append(answer.json()["job"]["id"])
    for kind, job in zip(("iceberg", "hudi"), jobs, strict=True):
        done = wait_for(lambda job=job: ended(client, job), 240)
        assert done["state"] == "succeeded", done
        assert client.get(f"/tables/{namespace}.{kind}_t").json()["format"] == kind
        assert len(client.rows(f"select * from {namespace}.{kind}_t")) == 2


def ended(client: Client, job: str) -> Any:
    record = client.get(f"/jobs/{job}", params={"wait": 20}).json()
    return record if record["state"] in ("succeeded", "failed", "canceled") else None


def test_a_client_that_hangs_up_stops_its_statement_on_spark(on_spark: Served, shared_settings: Settings) -> None:
    sql = "select count(*) from range(0, 100000000000) a join range(0, 1000) b on a.id % 1000 = b.id"
    daemon = spark_daemon(shared_settings)
    assert on_spark.admin.post("/query", {"sql": "select 1", "engine": "spark"}).status_code == 200
    others = others_on(daemon)
    with unread(on_spark.admin, sql, engine="spark"):
        wait_for(lambda: running_on(daemon) > others)
    wait_for(lambda: 0 <= running_on(daemon) <= others)  # which by itself would take hours
    canceled = wait_for(
        lambda: [e for e in on_spark.admin.get("/audit").json()["entries"] if e.get("error") == "canceled"]
    )
    assert canceled[0]["path"] == "/query"


@pytest.mark.parametrize("sql", ["{}", "create table {table} as {}"], ids=["read", "write"])
def test_a_statement_on_spark_is_listed_with_the_share_of_its_tasks(on_spark: Served, namespace: str, sql: str) -> None:
    client = on_spark.admin
    statement = sql.format("select count(*) as n from range(0, 100000, 1, 100000)", table=f"{namespace}.t")  # minutes
    body = {"statement": statement, "engine": "spark", "wait_timeout": "0s"}
    sent = client.post("/statements", body).json()["statement_id"]
    (percent,) = wait_for(lambda: [q["progress"] for q in client.get("/queries").json()["queries"] if q["progress"]])
    assert 0 < percent < 100
    assert client.post(f"/statements/{sent}/cancel", {}).status_code == 200
    wait_for(lambda: client.get(f"/statements/{sent}").json()["status"]["state"] == "CANCELED")


def test_a_canceled_write_ends_as_what_became_of_it(on_spark: Served, namespace: str) -> None:
    client, table = on_spark.admin, f"{namespace}.rows"
    client.insert(table, [{"id": -1}])

    def state_after(sql: str, wait_s: float) -> str:
        path = (
            f"/statements/{client.post('/statements', {'statement': sql, 'wait_timeout': '0s'}).json()['statement_id']}"
        )
        time.sleep(wait_s)
        client.post(f"{path}/cancel")
        wait_for(lambda: client.get(path).json()["status"]["state"] in ("SUCCEEDED", "FAILED", "CANCELED"))
        return str(client.get(path).json()["status"]["state"])

    # 400,000 tasks take minutes.
    assert state_after(f"insert into {table} select count(*) from range(0, 400000, 1, 400000)", 1.0) == "CANCELED"
    ends: dict[int, str] = {}
    while "SUCCEEDED" not in ends.values() and len(ends) < 9:
        number = len(ends)
        ends[number] = state_after(f"insert into {table} values ({number})", 0.05 * 2**number)
    assert "SUCCEEDED" in ends.values() and set(ends.values()) <= {"SUCCEEDED", "CANCELED"}, ends
    there = [row["id"] for row in client.rows(f"select id from {table} where id >= 0 order by id")]
    assert there == [number for number, state in ends.items() if state == "SUCCEEDED"]


def test_rows_of_spark_pass_through_while_they_are_computed(on_spark: Served) -> None:
    sql = (
        "select id, concat(cast(id as string), repeat('x', 300)) as text, cast(id as decimal(20, 2)) as d,"
        " timestamp_seconds(id) as at, array(id) as a from range(0, 600000, 1, 12)"
    )
    headers = {"Authorization": f"Bearer {on_spark.admin.key}", "Accept": "application/vnd.apache.arrow.stream"}
    before, most, ids, last = psutil.Process().memory_info().rss, 0, 0, None
    with (
        requests.post(
            f"{on_spark.url}/query", json={"sql": sql, "engine": "spark"}, headers=headers, stream=True, timeout=300
        ) as answer,
        pyarrow.ipc.open_stream(answer.raw) as batches,
    ):
        for batch in batches:
            ids, last = ids + batch.num_rows, batch if batch.num_rows else last
            most = max(most, psutil.Process().memory_info().rss)
    assert ids == 600_000
    assert last is not None and last.slice(last.num_rows - 1).to_pylist() == [
        {
            "id": 599_999,
            "text": "599999" + "x" * 300,
            "d": Decimal("599999.00"),
            "at": datetime.fromtimestamp(599_999, UTC),
            "a": [599_999],
        }
    ]
    assert most - before < 100 << 20, f"the result of 200 MB took {(most - before) >> 20} MB"


def test_an_error_after_the_first_rows_ends_the_answer_early(on_spark: Served) -> None:
    sql = "select if(id = 550000, cast(raise_error('too late') as bigint), id) as id from range(0, 600000, 1, 12)"
    answer = on_spark.admin.post("/query", {"sql": sql, "engine": "spark"}, stream=True)
    with answer, pytest.raises(requests.exceptions.ChunkedEncodingError):
        assert answer.status_code == 200
        for _ in answer.iter_content(1 << 20):
            pass
    entry = next(entry for entry in on_spark.admin.get("/audit").json()["entries"] if entry["path"] == "/query")
    assert entry["error"] == "statement_failed"


@dataclass(frozen=True)
class TableReplacer(Call):
    """A request of a key for one namespace, whose table somebody replaces by a view once its statement was checked."""

    admin: Client = Client("")
    namespace: str = ""

    def note(self, **facts: Any) -> None:
        super().note(**facts)
        if "kind" in facts:
            self.service.lake.drop(f"{self.namespace}.open")
            view = f"create view {self.namespace}.open as select n from {self.namespace}_secret.t"
            assert self.admin.post("/query", {"sql": view}).status_code == 200


@pytest.mark.parametrize("engine", ["", "spark"])
def test_a_table_replaced_by_a_view_after_the_check_of_rights_cannot_be_read(
    on_spark: Served, namespace: str, engine: str
) -> None:
    for sql in (
        f"create table {namespace}_secret.t as select 42 as n",
        f"create table {namespace}.open as select 1 as n",
    ):
        assert on_spark.admin.post("/query", {"sql": sql}).status_code == 200
    limited = Principal("limited", "reader", namespaces=(namespace,))
    plain = request_to(on_spark.service, limited)
    caller = TableReplacer(plain.service, limited, plain.request_id, admin=on_spark.admin, namespace=namespace)
    request = QueryRequest(f"select n from {namespace}.open")
    execution = Execution(on_spark.service.queries, caller, request, engine, "json")
    with pytest.raises(NoSuchTableError, match=rf"no table {namespace}\.open"):
        execution.start()
    assert on_spark.admin.rows(f"select n from {namespace}.open") == [{"n": 42}]


@pytest.mark.parametrize(
    ("sql", "engine"),
    [
        ("select n from {table} where n = 1", "duckdb"),
        ("select distinct cast(n as string) from {table}", "duckdb"),
        ("select n from {table} where n = 1", "spark"),
        ("select distinct cast(n as string) from {table}", "spark"),
        ("insert into {table} values (2)", ""),
    ],
)
def test_a_statement_is_parsed_once(
    on_spark: Served, namespace: str, monkeypatch: pytest.MonkeyPatch, sql: str, engine: str
) -> None:
    on_spark.admin.post("/query", {"sql": f"create table {namespace}.t as select 1 as n"})
    parses: list[str] = []

    def counted(parser: Callable[..., Any]) -> Callable[..., Any]:
        def parse(text: str, *others: Any, **options: Any) -> Any:
            parsed = parser(text, *others, **options)
            parses.append(text)  # not what is no query, which is left to sqlglot
            return parsed

        return parse

    monkeypatch.setattr(sqlglot, "parse", counted(sqlglot.parse))
    monkeypatch.setattr(parser, "parse_query", counted(parser.parse_query))
    statement = sql.format(table=f"{namespace}.t")
    answer = on_spark.admin.post("/query", {"sql": statement, "engine": engine})
    assert answer.status_code == 200, answer.text
    assert parses == [statement]


def test_an_agent_changes_a_branch_of_its_own_by_a_question_and_does_not_merge_it(
    on_spark: Served, namespace: str
) -> None:
    table = f"{namespace}.askedrooms"
    on_spark.admin.insert(f"{table}?key=id", [{"id": 1, "beds": 2}, {"id": 2, "beds": 7}])
    agent = on_spark.client("agent")
    answer = agent.post("/ask", {"question": "set beds to 3 for askedrooms with beds over 5", "write": True}).json()
    assert answer["answered"], answer["reason"]
    _, merge, drop = answer["choices"]
    branch = drop.split()[-1]
    rows = agent.post(f"/query?branch={branch}", {"sql": f"select beds from {table} order by id", "branch": branch})
    assert [row["beds"] for row in rows.json()["rows"]] == [2, 3]
    assert on_spark.admin.rows(f"select beds from {table} where id = 2") == [{"beds": 7}]
    assert merge == f"lake branch merge {branch}"
    assert agent.post(f"/branches/{branch}/merge", {}).status_code == 403
    assert agent.ask("DELETE", f"/branches/{branch}").status_code == 200
