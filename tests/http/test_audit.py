"""The audit log and the limits: who did what, and how often."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.servers.service import Client, Served, Start, serving, wait_for

from lakehouse.core.errors import TooManyRequestsError
from lakehouse.http.audit import AuditLog
from lakehouse.http.limits import Limits


def test_the_log_is_a_table(served: Served) -> None:
    reader = served.client("reader", name="analyst")
    served.admin.insert("audited.t", [{"id": 1, "secret": "s3cr3t"}])
    reader.rows("select id from audited.t where secret = 's3cr3t' and id = 1")
    reader.post("/query", {"sql": "drop table audited.t"})
    sql = "select scope, status, error, tables, rows, statement, engine from audit where name = 'analyst' order by at"
    answer = served.admin.post("/audit/query", {"sql": sql})
    assert answer.status_code == 200, answer.text
    shape = "select id from audited.t where secret = '…' and id = …"
    assert answer.json()["rows"] == [
        {
            "scope": "reader",
            "status": 200,
            "error": None,
            "tables": ["audited.t"],
            "rows": 1,
            "statement": shape,
            "engine": "duckdb",
        },
        {
            "scope": "reader",
            "status": 403,
            "error": "forbidden",
            "tables": None,
            "rows": None,
            "statement": "drop table audited.t",
            "engine": None,
        },
    ]
    files = "".join(file.read_text() for file in served.service.audit.files())
    assert "s3cr3t" not in files
    assert reader.key not in files


@pytest.mark.parametrize(
    "sql", ["select * from crm.leads", "drop table audit", "select * from read_csv('/etc/passwd')"]
)
def test_only_the_log_is_read_there(admin: Client, sql: str) -> None:
    assert admin.post("/audit/query", {"sql": sql}).status_code in (400, 403, 404)


def test_the_log_survives_a_kill(start: Start, home: Path) -> None:
    process = start()
    process.client.rows("select 41 + 1 as answer")
    file = home / "logs" / "audit" / "audit.jsonl"
    wait_for(file.read_text)  # it is written when the answer has been sent
    process.kill()
    assert json.loads(file.read_text().splitlines()[-1])["path"] == "/query"
    with file.open("a") as out:
        out.write('{"at": "2026-01-01T00:00:00Z", "path": "/cut')
    again = start()
    rows = again.client.post("/audit/query", {"sql": "select path from audit"}).json()["rows"]
    assert {"path": "/query"} in rows
    assert file.stat().st_mode & 0o777 == 0o600


def test_the_log_is_rotated_and_old_files_go(tmp_path: Path) -> None:
    log = AuditLog(tmp_path, 1000)
    for number in range(300):
        log.write({"path": f"/{number}", "who": "x" * 80})
    log.close()
    files = log.files()
    assert len(files) == 11
    entries = [json.loads(line)["path"] for file in files for line in file.read_text().splitlines()]
    assert entries == [f"/{number}" for number in range(300 - len(entries), 300)]


def test_a_key_has_a_rate_and_a_number_of_requests_at_once() -> None:
    limits = Limits(per_minute=5, concurrent=2)
    with limits.admitted("a"), limits.admitted("a"):
        with pytest.raises(TooManyRequestsError, match="run already"), limits.admitted("a"):
            pass
        with limits.admitted("b"):
            pass
    for _ in range(3):
        with limits.admitted("a"):
            pass
    with pytest.raises(TooManyRequestsError) as refused, limits.admitted("a"):
        pass
    assert 1 <= refused.value.retry_after_s <= 12


def test_too_many_requests_say_when_to_come_back(tmp_path: Path) -> None:
    with serving(tmp_path / "lake", rate=3) as served:
        answers = [served.admin.get("/whoami") for _ in range(5)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert answers[-1].json()["error"] == "too_many_requests"
        wrong = [Client(served.url, "lake_a_b").get("/whoami").status_code for _ in range(70)]
        assert wrong[0] == 401
        assert wrong[-1] == 429, "keys cannot be tried out quickly"
        without = [Client(served.url).get("/whoami").status_code for _ in range(70)]
        assert set(without) == {401}, "a request without a key guesses none"


def test_metrics(served: Served) -> None:
    served.admin.rows("select 1 as one")
    answer = served.client("reader").get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    assert 'lake_requests_total{method="POST",route="/query",status="200"}' in answer.text
    assert "lake_queries_running" in answer.text
    assert Client(served.url).get("/metrics").status_code == 401
