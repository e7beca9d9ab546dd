"""Jobs: started, followed, canceled, killed with the service, resumed."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
import requests
from tests.support.servers.service import PIPELINE, Client, Served, ServedPipelines, Start, serving, wait_for


def upload(client: Client, table: str, content: bytes | Path, **fields: str) -> Any:
    data = content if isinstance(content, bytes) else content.read_bytes()
    # The name is what an attacker would send; the service keeps only its last part.
    files = {"file": ("../../../evil/../rows.csv", data, "text/csv")}
    return client.ask("POST", "/ingest", data={"into": table, **fields}, files=files)


def numbers(count: int, start: int = 0) -> bytes:
    return b"id,text\n" + b"".join(b"%d,text of row %d\n" % (number, number) for number in range(start, start + count))


def ended(client: Client, job: str) -> dict[str, Any] | None:
    record: dict[str, Any] = client.get(f"/jobs/{job}", params={"wait": 10}).json()
    return record if record["state"] in ("succeeded", "failed", "canceled") else None


def test_an_upload_is_a_job_that_is_polled_and_followed(served: Served) -> None:
    client = served.admin
    client.insert("jobs.t?key=id", [{"id": -1, "text": "first"}])
    answer = upload(client, "jobs.t", numbers(1000))
    assert answer.status_code == 202, answer.text
    job = answer.json()["job"]["id"]
    assert answer.json()["job"]["request"]["sources"] == ["upload:rows.csv"]
    with requests.get(
        f"{client.url}/jobs/{job}/events", headers={"Authorization": f"Bearer {client.key}"}, stream=True, timeout=60
    ) as events:
        assert events.headers["content-type"].startswith("text/event-stream")
        lines = [line.decode() for line in events.iter_lines() if line.startswith(b"data: ")]
    states = [json.loads(line.removeprefix("data: "))["state"] for line in lines]
    assert states[-1] == "succeeded"
    record = client.get(f"/jobs/{job}").json()
    assert (record["result"]["inserted"], record["result"]["snapshot"] != "") == (1000, True)
    assert client.rows("select count(*) as n from jobs.t") == [{"n": 1001}]
    assert served.client("writer").get(f"/jobs/{job}").status_code == 404, "jobs of others are not there"
    assert not list(served.service.jobs.folder.glob("*")), "the uploaded file is gone"


def test_files_below_the_roots(served: Served) -> None:
    client, root = served.admin, Path(served.service.settings.serve.roots[0])
    client.insert("roots.t", [{"id": -1, "text": "first"}])
    (root / "in").mkdir()
    (root / "in" / "a.csv").write_bytes(numbers(5))
    answer = client.post("/ingest", {"into": "roots.t", "sources": [f"{root}/in/*.csv"]})
    assert answer.status_code == 202, answer.text
    done = wait_for(lambda: ended(client, answer.json()["job"]["id"]))
    assert done["state"] == "succeeded", done
    assert client.rows("select count(*) as n from roots.t") == [{"n": 6}]


def test_a_job_that_fails_says_why(served: Served) -> None:
    served.admin.insert("fails.t", [{"id": 1, "text": "x"}])
    job = upload(served.admin, "fails.t", b"other\n1\n", contract="freeze").json()["job"]["id"]
    done = wait_for(lambda: ended(served.admin, job))
    assert (done["state"], done["error"]["error"]) == ("failed", "contract_broken")
    wrong = upload(served.admin, "fails.t", b"id\n1\n", mode="sideways")
    assert wrong.status_code == 400


def test_an_upload_with_one_key_is_one_job(served: Served) -> None:
    client, headers = served.admin, {"Idempotency-Key": "one-job"}
    client.insert("single.t", [{"id": 1}])
    request = requests.Request(
        "POST", f"{client.url}/ingest", data={"into": "single.t"}, files={"file": ("a.csv", b"id\n5\n")}
    ).prepare()
    request.headers.update({"Authorization": f"Bearer {client.key}", **headers})
    with requests.Session() as session:
        jobs = {session.send(request).json()["job"]["id"] for _ in range(3)}
    assert len(jobs) == 1
    assert client.post(f"/jobs/{jobs.pop()}/cancel").status_code == 200


@dataclass(frozen=True)
class Held:
    """A service whose jobs stop at a moment as long as there is a file, so that no test depends on who is faster."""

    served: Served
    folder: Path

    @contextmanager
    def at(self, moment: str) -> Iterator[None]:
        """Hold the jobs at `python` (their process starts), `wait` (they read) or `publish` (they are checked)."""
        file = self.folder / moment
        file.touch()
        try:
            yield
        finally:
            file.unlink()

    def run(self) -> str:
        """Start a run and return its job."""
        answer = self.served.admin.post("/pipelines/steps/runs", {"light": True})
        assert answer.status_code == 202, answer.text
        return str(answer.json()["job"]["id"])

    def job(self, job: str) -> dict[str, Any]:
        shown: dict[str, Any] = self.served.admin.get(f"/jobs/{job}").json()
        return shown

    def reaches(self, job: str, progress: str) -> None:
        wait_for(lambda: progress in self.job(job)["progress"])

    def cancel(self, job: str) -> dict[str, Any]:
        shown: dict[str, Any] = self.served.admin.post(f"/jobs/{job}/cancel").json()
        return shown


#: Runs when Python starts, before anything of ours.
SLOW_PYTHON = """
import os, time
while os.path.exists({file!r}):
    time.sleep(0.05)
"""


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Held]:
    folder = tmp_path_factory.mktemp("held")
    (folder / "served_pipelines.py").write_text(PIPELINE)
    hook = f"while [ -e {folder}/publish ]; do sleep 0.05; done"
    (folder / "lake.toml").write_text(
        f'pipelines = ["served_pipelines"]\n[hooks]\nbefore_publish = ["sh", "-c", "{hook}"]\n'
    )
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(SLOW_PYTHON.format(file=str(folder / "python")))
    with pytest.MonkeyPatch.context() as environment, serving(folder / "lake", jobs=1) as served:
        environment.setenv("PYTHONPATH", f"{folder / 'site'}:{os.environ.get('PYTHONPATH', '')}")
        yield Held(served, folder)


def test_a_job_that_waits_or_starts_is_canceled(held: Held) -> None:
    with held.at("python"):
        starts = held.run()
        wait_for(lambda: held.job(starts)["state"] == "running")
        waits = held.run()  # there is one at a time
        assert held.job(waits)["state"] == "queued"
        for job in (waits, starts):
            canceled = held.cancel(job)
            assert (canceled["state"], canceled["result"]) == ("canceled", None)
    assert held.served.admin.get("/runs").json()["runs"] == []


@pytest.mark.parametrize(("moment", "progress"), [("wait", "steps.t"), ("publish", "Publishing")])
def test_a_job_that_works_is_canceled_and_leaves_its_tables(held: Held, moment: str, progress: str) -> None:
    tables = held.served.admin.get("/tables").json()
    with held.at(moment):
        job = held.run()
        held.reaches(job, progress)
        canceled = held.cancel(job)
    assert (canceled["state"], canceled["error"]["error"]) == ("canceled", "canceled")
    assert held.cancel(job) == canceled, "a second cancel changes nothing"
    assert held.served.admin.get("/tables").json() == tables


def test_a_job_that_commits_ends_as_it_would_have_ended(held: Held) -> None:
    file = held.served.service.lake.folder / "catalog.db"
    with ThreadPoolExecutor(1) as other, closing(sqlite3.connect(file, isolation_level=None)) as catalog:
        with held.at("publish"):
            job = held.run()
            held.reaches(job, "Publishing")
            catalog.execute("BEGIN IMMEDIATE")
        held.reaches(job, "Committing")
        canceling = other.submit(held.cancel, job)
        with pytest.raises(TimeoutError):
            canceling.result(0.5)
        catalog.execute("ROLLBACK")
        done = canceling.result(30)
    assert (done["state"], done["result"]["state"]) == ("succeeded", "published")
    assert held.served.admin.rows("select count(*) as n from steps.t") == [{"n": 1}]
    assert held.cancel(job)["state"] == "succeeded", "one that is just done stays as it is"


def test_a_job_that_dies_with_the_service_reads_as_failed_and_is_resumed(
    start: Start, home: Path, tmp_path: Path
) -> None:
    process = start()
    client = process.client
    client.insert("killed.t?key=id", [{"id": -1, "text": "first"}])
    file = tmp_path / "rows.csv"
    file.write_bytes(numbers(1_000))
    with closing(sqlite3.connect(home / "catalog.db", isolation_level=None)) as catalog:
        catalog.execute("BEGIN IMMEDIATE")  # so that the job cannot commit before it is killed with the service
        job = upload(client, "killed.t", file).json()["job"]["id"]
        wait_for(lambda: client.get(f"/jobs/{job}").json()["progress"] == "Ingesting")
        children = psutil.Process(process.popen.pid).children(recursive=True)
        process.kill()
        assert psutil.wait_procs(children, timeout=60)[1] == []
    client = start().client
    record = client.get(f"/jobs/{job}").json()
    assert (record["state"], record["error"]["error"]) == ("failed", "interrupted")
    assert client.rows("select count(*) as n from killed.t") == [{"n": 1}]
    resumed = client.post(f"/jobs/{job}/resume").json()
    done = wait_for(lambda: ended(client, resumed["id"]))
    assert done["state"] == "succeeded", done
    assert client.rows("select count(*) as n from killed.t") == [{"n": 1_001}]


def test_pipelines_and_runs_are_listed(served: Served) -> None:
    names = [pipeline["name"] for pipeline in served.admin.get("/pipelines").json()["pipelines"]]
    assert {"market", "taxi", "social"} <= set(names)
    assert served.admin.get("/runs").json()["runs"] == []
    assert served.admin.get("/runs/nothing").json()["error"] == "no_such_run"
    assert served.admin.post("/pipelines/nothing/runs", {}).json()["error"] == "no_such_pipeline"
    assert served.client("agent").post("/pipelines/market/runs", {}).status_code == 403


def test_a_run_is_started_followed_canceled_and_resumed(pipelined: ServedPipelines) -> None:
    client, wait = pipelined.client("writer", name="ann"), pipelined.folder / "wait"
    wait.touch()
    try:
        answer = client.post("/pipelines/steps/runs", {"light": True, "message": "first"})
        assert answer.status_code == 202, answer.text
        started = answer.json()
        job, run = started["job"]["id"], started["run"]
        wait_for(lambda: "steps.t" in client.get(f"/jobs/{job}").json()["progress"])
        assert client.get(f"/runs/{run}").json()["state"] == "running"
        assert client.post(f"/jobs/{job}/cancel").json()["state"] == "canceled"
    finally:
        wait.unlink()
    stopped = client.get(f"/runs/{run}").json()
    assert (stopped["state"], stopped["commit"]) == ("failed", "")
    resumed = client.post(f"/runs/{run}/resume").json()
    with requests.get(
        f"{client.url}/jobs/{resumed['job']['id']}/events",
        headers={"Authorization": f"Bearer {client.key}"},
        stream=True,
        timeout=120,
    ) as events:
        states = [json.loads(line[6:])["state"] for line in events.iter_lines() if line.startswith(b"data: ")]
    assert states[-1] == "succeeded"
    done = client.get(f"/runs/{run}").json()
    assert (done["state"], done["tables"][0]["rows"], done["message"]) == ("published", 1, "first")
    assert client.get("/runs").json()["runs"][0]["id"] == run
