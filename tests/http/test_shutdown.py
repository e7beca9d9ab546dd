"""SIGTERM while statements run: `lake serve` ends within seconds, and their clients get an answer."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.support.servers.service import Start, others_on, running_on, wait_for

from lakehouse.config.settings import Settings
from lakehouse.lake import Lake
from lakehouse.lake.spark import spark_daemon

pytestmark = pytest.mark.spark

#: Takes hours.
_READ = "select count(*) as n from range(0, 100000000000) a join range(0, 1000) b on a.id % 1000 = b.id"
#: Twice what the service gives its clients to end.
_END_S = 10.0


def test_a_service_does_not_wait_for_statements_on_spark(
    shared_lake: Lake, shared_settings: Settings, namespace: str, start: Start
) -> None:
    write, once = f"create table {namespace}.{{}} as {_READ}", {"Idempotency-Key": namespace}
    process = start(LAKE_HOME=str(shared_lake.folder), LAKE_AUTH="off")
    client, daemon = process.client, spark_daemon(shared_settings)
    assert client.post("/query", {"sql": "select 1", "engine": "spark"}).status_code == 200
    others = others_on(daemon)
    with ThreadPoolExecutor() as threads:
        read = threads.submit(client.post, "/query", {"sql": _READ, "engine": "spark"})
        written = threads.submit(client.post, "/query", {"sql": write.format("t")}, headers=once)
        for sql in (_READ, write.format("stored")):
            sent = client.post("/statements", {"statement": sql, "engine": "spark", "wait_timeout": "0s"})
            assert sent.status_code == 200, sent.text
        wait_for(lambda: [query["state"] for query in client.get("/queries").json()["queries"]] == ["running"] * 4)
        begun = time.monotonic()
        process.popen.terminate()
        assert process.popen.wait(60) == 0
        assert time.monotonic() - begun < _END_S
        answers = [answer.result(60).json() for answer in (read, written)]
    assert [answer["error"] for answer in answers] == ["canceled", "statement_lost"]
    wait_for(lambda: 0 <= running_on(daemon) <= others)  # on Spark they have ended, too
    again = start(LAKE_HOME=str(shared_lake.folder), LAKE_AUTH="off").client
    repeated = again.post("/query", {"sql": write.format("t")}, headers=once).json()
    # The service may have ended before it stored its answer.
    assert repeated["error"] in ("statement_lost", "outcome_unknown"), "what may have been committed is not done again"
    assert not {f"{namespace}.t", f"{namespace}.stored"} & {str(table.name) for table in shared_lake.tables()}
