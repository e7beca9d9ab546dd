"""Rows and files over HTTP: each content type, each refusal, and every change once."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet
from tests.support.servers.service import Client, Served, serving

from lakehouse.core.idempotency import IdempotencyStore

ROWS = [{"id": 1, "name": "Eve", "paid": 1.5}, {"id": 2, "name": "Bob", "paid": None}]
ARROW, PARQUET = "application/vnd.apache.arrow.stream", "application/vnd.apache.parquet"


def as_arrow() -> bytes:
    table, sink = pyarrow.Table.from_pylist(ROWS), io.BytesIO()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def as_parquet() -> bytes:
    sink = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(ROWS), sink)
    return sink.getvalue()


BODIES = {
    "json": ("application/json", json.dumps(ROWS).encode()),
    "wrapped": ("application/json; charset=utf-8", json.dumps({"rows": ROWS}).encode()),
    "lines": ("application/x-ndjson", "\n".join(json.dumps(row) for row in ROWS).encode()),
    "csv": ("text/csv", b"id,name,paid\n1,Eve,1.5\n2,Bob,\n"),
    "gzip": ("text/csv", gzip.compress(b"id,name,paid\n1,Eve,1.5\n2,Bob,\n")),
    "arrow": (ARROW, as_arrow()),
    "parquet": (PARQUET, as_parquet()),
}


def send(client: Client, path: str, kind: str, body: bytes, **headers: str) -> Any:
    return client.ask("POST", path, data=body, headers={"Content-Type": kind, **headers})


@pytest.mark.parametrize("name", BODIES)
def test_a_body_of_each_type_becomes_a_table(admin: Client, name: str) -> None:
    answer = send(admin, f"/ingest/bodies.{name}?key=id", *BODIES[name])
    assert answer.status_code == 200, answer.text
    assert (answer.json()["inserted"], answer.json()["files"][0].split(":")[0]) == (2, "upload")
    assert admin.rows(f"select id, name, paid from bodies.{name} order by id") == ROWS
    again = send(admin, f"/ingest/bodies.{name}", *BODIES[name]).json()
    assert (again["rows_read"], again["skipped"]) == (2, []), "an equal body is another one"


def test_rows_are_upserted_evolved_and_quarantined_as_by_the_command(admin: Client) -> None:
    admin.insert("people.p?key=id", [{"id": 1, "born": "2001-01-01"}, {"id": 2, "born": "2002-02-02"}])
    changed = admin.insert("people.p", [{"id": 2, "born": "2002-02-03"}, {"id": 3, "born": "2003-03-03", "vip": True}])
    assert (changed["inserted"], changed["updated"]) == (1, 1)
    assert changed["changes"] == ["column added: vip boolean"]
    body = b"id,born\n4,not a day\n5,2005-05-05\n"
    kept = send(admin, "/ingest/people.p?contract=quarantine", "text/csv", body).json()
    assert (kept["inserted"], kept["rejected"]) == (1, 1)
    assert admin.rows("select id, born, vip from people.p order by id") == [
        {"id": 1, "born": "2001-01-01", "vip": None},
        {"id": 2, "born": "2002-02-03", "vip": None},
        {"id": 3, "born": "2003-03-03", "vip": True},
        {"id": 5, "born": "2005-05-05", "vip": None},
    ]
    assert admin.rows("select line from people.p__rejected") == [{"line": 2}]
    frozen = send(admin, "/ingest/people.p?contract=freeze", "application/json", b'[{"id": 9, "new": 1}]')
    assert (frozen.status_code, frozen.json()["error"]) == (400, "contract_broken")
    log = admin.get("/log?table=people.p").json()["commits"]
    assert [line["what"] for line in log] == ["ingest"] * 3


def test_what_needs_spark_is_refused_and_changes_nothing(admin: Client) -> None:
    admin.insert("spark.needed", [{"id": 1}])
    answer = admin.post("/ingest/spark.needed", [{"id": "text"}])
    assert (answer.status_code, answer.json()["error"]) == (400, "not_supported")
    assert admin.rows("select id from spark.needed") == [{"id": 1}]


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        pytest.param("text/html", b"<p>", 415, id="wrong-type"),
        pytest.param("", b"[]", 415, id="no-type"),
        pytest.param("application/json", b"{", 400, id="not-json"),
        pytest.param("application/json", b"[1]", 400, id="not-objects"),
        pytest.param("application/json", b"[]", 400, id="no-rows"),
        pytest.param("application/json", b"[" * 100_000, 400, id="nested"),
        pytest.param(
            "application/json", json.dumps([{f"c{n}": n for n in range(100_000)}]).encode(), 413, id="columns"
        ),
        pytest.param("text/csv", b",".join(b"c%d" % n for n in range(100_000)), 413, id="csv-columns"),
        pytest.param("text/csv", b"", 400, id="empty"),
        pytest.param("text/csv", b"PK\x03\x04" + b"x" * 100, 400, id="zip"),
        pytest.param("text/csv", gzip.compress(b"id\n" + b"1\n" * 10)[:-5], 400, id="cut-off"),
        pytest.param(PARQUET, b"PAR1nothing", 400, id="not-parquet"),
        pytest.param(ARROW, b"nothing", 400, id="not-arrow"),
    ],
)
def test_wrong_bodies_are_refused(admin: Client, kind: str, body: bytes, status: int) -> None:
    answer = send(admin, "/ingest/wrong.t", kind, body)
    assert answer.status_code == status, answer.text
    assert admin.get("/tables/wrong.t").status_code == 404


def test_bombs_are_refused_before_they_fill_the_disk(tmp_path: Path) -> None:
    with serving(tmp_path / "lake", max_upload="1MB") as served:
        client, zeros = served.admin, b"id\n" + b"1\n" * 1_000_000
        for body in (gzip.compress(zeros, 9), bz2.compress(zeros)):
            assert len(body) < 100_000
            answer = send(client, "/ingest/bomb.t", "text/csv", body)
            assert (answer.status_code, answer.json()["error"]) == (413, "too_large")
            answer = client.ask("POST", "/ingest", data={"into": "bomb.t"}, files={"file": ("a.csv.gz", body)})
            assert answer.status_code == 413
        assert send(client, "/ingest/bomb.t", "text/csv", zeros).status_code == 413
        assert client.post("/query", {"sql": "select 1", "x": "y" * (17 << 20)}).status_code == 413
        assert not list((tmp_path / "lake" / "run" / "uploads").glob("*")), "refused uploads leave nothing"


@pytest.mark.parametrize(
    "source",
    ["/etc/passwd", "../../etc/passwd", "{root}/../lake/keys.json", "{root}/link/passwd", "{root}/link/*", "{root}/out.csv",
     "file:///etc/passwd", "s3://bucket/x", "http://127.0.0.1/x", "relative.csv", "{root}2/x.csv", "/"],
)  # fmt: skip
def test_paths_outside_the_roots_are_refused(served: Served, source: str) -> None:
    root = Path(served.service.settings.serve.roots[0])
    for name, target in (("link", "/etc"), ("out.csv", "/etc/passwd")):
        (root / name).unlink(missing_ok=True)
        (root / name).symlink_to(target)
    answer = served.admin.post("/ingest", {"into": "crm.x", "sources": [source.format(root=root)]})
    assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")


def test_a_large_header_is_refused(served: Served) -> None:
    host, port = served.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(b"GET /tables HTTP/1.1\r\nHost: x\r\nX-Large: ")
        try:
            for _ in range(1000):
                connection.sendall(b"x" * 100_000)
            answer = connection.recv(100)
        except (BrokenPipeError, ConnectionResetError):
            return
    assert answer == b"" or b" 400 " in answer


def test_a_slow_body_is_refused(tmp_path: Path) -> None:
    with serving(tmp_path / "lake", body_timeout=1) as served:
        host, port = served.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as connection:
            head = f"POST /query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {served.admin.key}\r\n"
            connection.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{".encode())
            begun = time.monotonic()
            connection.settimeout(30)
            assert b" 408 " in connection.recv(1000)
            assert time.monotonic() - begun < 30


def test_one_key_from_twenty_clients_is_one_commit(served: Served) -> None:
    client = served.admin
    client.insert("once.t", [{"id": 0}])
    headers = {"Idempotency-Key": "twenty"}

    def once(_: int) -> tuple[int, str]:
        answer = client.post("/ingest/once.t", [{"id": 1}], headers=headers)
        return answer.status_code, answer.text

    with ThreadPoolExecutor(20) as threads:
        answers = set(threads.map(once, range(20)))
    assert len(answers) == 1
    assert next(iter(answers))[0] == 200
    assert client.rows("select count(*) as n from once.t") == [{"n": 2}]
    assert len(client.get("/tables/once.t/history").json()["snapshots"]) == 2
    other = client.post("/ingest/once.t", [{"id": 2}], headers=headers)
    assert (other.status_code, other.json()["error"]) == (422, "idempotency_key_reused")
    assert served.client("writer").post("/ingest/once.t", [{"id": 1}], headers=headers).status_code == 200
    assert client.rows("select count(*) as n from once.t") == [{"n": 3}], "keys of different callers are different"


def test_an_answer_is_replayed_after_a_restart(tmp_path: Path) -> None:
    headers = {"Idempotency-Key": "again"}
    with serving(tmp_path / "lake") as served:
        key = served.admin.key
        first = served.admin.post("/ingest/re.t", [{"id": 1}], headers=headers)
        wrong = served.admin.post("/branches", {"name": "main"}, headers={"Idempotency-Key": "wrong"})
    with serving(tmp_path / "lake") as served:
        client = Client(served.url, key)
        second = client.post("/ingest/re.t", [{"id": 1}], headers=headers)
        assert (second.status_code, second.content) == (200, first.content)
        assert second.headers["idempotency-replayed"] == "true"
        assert len(client.get("/tables/re.t/history").json()["snapshots"]) == 1
        replayed = client.post("/branches", {"name": "main"}, headers={"Idempotency-Key": "wrong"})
        assert (replayed.status_code, replayed.content) == (wrong.status_code, wrong.content)


def test_a_statement_that_was_running_when_the_service_died_is_not_repeated(served: Served) -> None:
    client, owner = served.admin, served.service.keys.verify(served.admin.key).id
    died = IdempotencyStore(served.service.database)
    for key in ("lost", "lost rows"):
        assert died.claim(f"{owner}:{key}", "", lambda request: False) is None
    answer = client.post("/query", {"sql": "select 1"}, headers={"Idempotency-Key": "lost"})
    assert (answer.status_code, answer.json()["error"]) == (409, "outcome_unknown")
    client.insert("lost.t", [{"id": 1}], headers={"Idempotency-Key": "lost rows"})


def test_equal_rows_are_not_the_same_rows(admin: Client) -> None:
    for state in ("open", "closed", "open"):
        admin.insert("tickets.t?key=id", [{"id": 1, "state": state}])
    assert admin.rows("select state from tickets.t") == [{"state": "open"}]
    for _ in range(2):
        admin.insert("tickets.events", [{"clicked": "buy"}])
    assert admin.rows("select count(*) as n from tickets.events") == [{"n": 2}]


def test_rows_whose_answer_was_lost_are_ingested_once(served: Served) -> None:
    client, headers = served.admin, {"Idempotency-Key": "answer lost"}
    client.insert("answers.t", [{"id": 1}], headers=headers)
    owner = served.service.keys.verify(client.key).id
    with served.service.database.transaction() as db:  # as after a service that died before it stored the answer
        db.execute("DELETE FROM lake_idempotency_keys WHERE request_key = ?", (f"{owner}:answer lost",))
    again = client.insert("answers.t", [{"id": 1}], headers=headers)
    assert (again["inserted"], len(again["skipped"])) == (0, 1)
    assert client.rows("select count(*) as n from answers.t") == [{"n": 1}]
