"""Nobody waits for a slow neighbour: clients that do not read, keys with many statements, statements that are listed and canceled."""

from __future__ import annotations

import gzip
import io
import socket
import threading
import time
from collections.abc import Iterator
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

import pyarrow
import pytest
import requests
from pyarrow import parquet
from tests.support.servers.service import Client, Served, serving, unread, wait_for

from lakehouse.http.principal import Principal

#: Takes minutes.
SLOW = "select sum(a.id * b.id) as s from range(10000000) a(id), range(100000) b(id)"
#: 50 MB as JSON.
LARGE = "select id, repeat('x', 80) as text from range(400000) t(id)"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service with one query process, and disk for two results of clients that do not read."""
    home = tmp_path_factory.mktemp("neighbours") / "lake"
    with serving(home, cache="0", concurrency=0, spool="400MB") as served:
        wait_for(lambda: served.admin.post("/query", {"sql": "select 1 as n"}).status_code == 200)
        yield served


@pytest.fixture(autouse=True)
def left_running(request: pytest.FixtureRequest) -> Iterator[None]:
    """Cancel what a failed test left running: it would hold the only query process, and fail all that follow."""
    yield
    if "small" in request.fixturenames:
        served: Served = request.getfixturevalue("small")
        for query in queries(served.admin):
            served.admin.ask("DELETE", f"/queries/{query['id']}")


def read_all(connection: socket.socket) -> bytes:
    connection.settimeout(60)
    response = HTTPResponse(connection)
    response.begin()
    return response.read()


def principal_of(served: Served) -> Principal:
    return next(key.principal for key in served.service.keys.all() if key.scope == "admin")


def queries(client: Client) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = client.get("/queries").json()["queries"]
    return listed


@pytest.mark.parametrize("accept", ["application/json", "text/csv"])
def test_a_client_that_does_not_read_holds_no_query_process(small: Served, accept: str) -> None:
    pool, space = small.service.queries.pool, small.service.queries.space
    with unread(small.client(), LARGE, accept) as first, unread(small.client(), LARGE, accept) as second:
        wait_for(lambda: [query["state"] for query in queries(small.admin)] == ["sending", "sending"])
        assert (pool.busy, space.used > 10 << 20) == (0, True)
        begun = time.monotonic()
        assert small.admin.rows("select 1 as n") == [{"n": 1}]
        assert time.monotonic() - begun < 60, "it did not wait for those that do not read"
        for connection in (first, second):
            content = read_all(connection)
            assert content.count(b"x" * 80) == 400_000
    wait_for(lambda: not queries(small.admin) and space.used == 0)


def test_what_a_client_that_hangs_up_left_is_removed(small: Served) -> None:
    space = small.service.queries.space
    with unread(small.admin, LARGE):
        wait_for(lambda: space.used > 10 << 20)
    wait_for(lambda: space.used == 0 and not queries(small.admin))
    assert list(space.folder.iterdir()) == [], "files of a spool have no name"


def test_without_space_a_statement_waits_for_its_client_and_loses_nothing(tmp_path: Path) -> None:
    with (
        serving(tmp_path / "lake", spool="1MB", concurrency=0) as served,
        unread(served.admin, LARGE) as connection,
    ):
        (running,) = wait_for(lambda: served.service.queries.running.all(principal_of(served)))
        wait_for(lambda: running.spool.is_full)
        time.sleep(1)  # in which it would go on if it did not wait
        assert [query["state"] for query in queries(served.admin)] == ["running"]
        assert served.service.queries.space.used <= 1 << 20
        assert read_all(connection).count(b"x" * 80) == 400_000


def test_processes_are_shared_between_keys(small: Served) -> None:
    busy, other = small.client(), small.client()
    threads = [threading.Thread(target=busy.post, args=("/query", {"sql": SLOW, "timeout": 120})) for _ in range(5)]
    for thread in threads:
        thread.start()
    wait_for(lambda: sorted(query["place"] or 0 for query in queries(busy)) == [0, 1, 2, 3, 4])
    begun = time.monotonic()
    # The first process that another key needs is started for it.
    assert other.rows("select 2 as n") == [{"n": 2}]
    assert time.monotonic() - begun < 60
    assert queries(other) == [], "a key sees its own statements only"
    running = queries(busy)
    assert other.ask("DELETE", f"/queries/{running[0]['id']}").status_code == 404
    for query in sorted(running, key=lambda query: query["state"]):
        assert busy.ask("DELETE", f"/queries/{query['id']}").json() == {"id": query["id"], "canceled": True}
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    wait_for(lambda: small.service.queries.pool.busy == 0)


def test_a_statement_is_listed_with_its_progress_and_canceled_by_the_id_of_its_request(small: Served) -> None:
    content = io.BytesIO()
    parquet.write_table(pyarrow.table({"id": range(100_000)}), content)
    headers = {"Content-Type": "application/vnd.apache.parquet"}
    sent = small.admin.ask("POST", "/ingest/work.t", data=content.getvalue(), headers=headers)
    assert sent.status_code == 200, sent.text
    # A small table is read in memory, where DuckDB measures, after each of many parts; it does not in Iceberg's files.
    part = "select max(length(md5(repeat(cast(id as string), {})))) as n from work.t"
    sql = " union all ".join(part.format(200 + number) for number in range(50))
    answers: list[requests.Response] = []
    headers = {"X-Request-Id": "my-own-request"}
    body = {"sql": sql, "engine": "duckdb"}
    thread = threading.Thread(target=lambda: answers.append(small.admin.post("/query", body, headers=headers)))
    thread.start()
    (query,) = wait_for(lambda: answers or [q for q in queries(small.admin) if q["progress"] is not None])
    assert not answers, answers[0].text
    assert (query["id"], query["engine"], query["branch"], query["place"]) == ("my-own-request", "duckdb", "main", None)
    assert (query["state"], 0 < query["progress"] < 100, query["seconds"] > 0) == ("running", True, True)
    assert "work.t" in query["statement"]
    assert small.admin.ask("DELETE", "/queries/my-own-request").status_code == 200
    thread.join(60)
    assert answers[0].json()["error"] == "canceled"
    assert small.admin.ask("DELETE", "/queries/my-own-request").status_code == 404


def test_no_progress_is_made_up_for_a_scan_that_is_not_measured(small: Served) -> None:
    content = io.BytesIO()
    parquet.write_table(pyarrow.table({"id": range(1_000_000)}), content)
    headers = {"Content-Type": "application/vnd.apache.parquet"}
    assert small.admin.ask("POST", "/ingest/work.large", data=content.getvalue(), headers=headers).status_code == 200
    sql = "select max(length(md5(repeat(cast(id as string), 200)))) as n from work.large"
    thread = threading.Thread(target=small.admin.post, args=("/query", {"sql": sql, "engine": "duckdb"}))
    thread.start()
    seen: list[dict[str, Any]] = []
    while thread.is_alive():
        seen += queries(small.admin)
    # A part after the scan may be counted. What DuckDB says of the scan itself, 0 and later 100, is no progress.
    percents = {query["progress"] for query in seen if query["state"] == "running"}
    assert None in percents
    assert not {0, 100} & percents


def test_statements_that_outlive_their_request_are_listed_too(small: Served) -> None:
    started = small.admin.post("/statements", {"statement": SLOW, "wait_timeout": "0s"}).json()["statement_id"]
    wait_for(lambda: [query["id"] for query in queries(small.admin)] == [started])
    assert small.admin.ask("DELETE", f"/queries/{started}").status_code == 200
    wait_for(lambda: small.admin.get(f"/statements/{started}").json()["status"]["state"] == "CANCELED")


@pytest.mark.parametrize("accept", ["application/json", "application/x-ndjson", "text/csv"])
@pytest.mark.parametrize("sql", ["select id from range(1000) t(id)", "select id from range(200000) t(id)"])
def test_text_is_compressed_where_the_client_asks_for_it(small: Served, sql: str, accept: str) -> None:
    answers = []
    for encoding in ("identity", "gzip", "gzip;q=0, identity"):
        headers = {"Accept": accept, "Accept-Encoding": encoding}
        answer = small.admin.post("/query", {"sql": sql}, headers=headers, stream=True)
        assert answer.headers.get("Content-Encoding") == ("gzip" if encoding == "gzip" else None)
        assert answer.headers["Vary"] == "Accept-Encoding"
        content = answer.raw.read(decode_content=False)
        answers.append(gzip.decompress(content) if encoding == "gzip" else content)
        if encoding == "gzip":
            assert len(content) < len(answers[0]) / 2
    assert answers[0] == answers[1] == answers[2]


def test_other_answers_are_compressed_too_and_small_ones_are_not(small: Served) -> None:
    assert small.admin.get("/openapi.json").headers["Content-Encoding"] == "gzip"
    assert (
        small.admin.get("/openapi.json", headers={"Accept-Encoding": "identity"}).headers.get("Content-Encoding")
        is None
    )
    assert small.admin.get("/whoami").headers.get("Content-Encoding") is None
