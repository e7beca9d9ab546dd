"""A service for tests: the real application behind a real server on a free port of loopback, on a lake of its own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
from tests.conftest import LAKE, cache_only
from tests.support.servers.application import running

from lakehouse.config.load import load_settings
from lakehouse.engines.spark.daemon.client import SparkDaemonClient
from lakehouse.http.app import create_app, create_service
from lakehouse.http.keys import KeyRequest
from lakehouse.http.principal import Principal
from lakehouse.http.server import MAX_HEADER
from lakehouse.http.service import Call, Service
from lakehouse.lake.assemble import assemble


@dataclass(frozen=True)
class Client:
    """Sends requests with one key."""

    url: str
    key: str = ""

    def ask(self, method: str, path: str, **options: Any) -> requests.Response:
        headers = {**({"Authorization": f"Bearer {self.key}"} if self.key else {}), **options.pop("headers", {})}
        return requests.request(
            method, self.url + path, headers=headers, timeout=options.pop("timeout", 300), **options
        )

    def get(self, path: str, **options: Any) -> requests.Response:
        return self.ask("GET", path, **options)

    def post(self, path: str, json: Any = None, **options: Any) -> requests.Response:
        return self.ask("POST", path, json=json, **options)

    def rows(self, sql: str, **body: Any) -> list[dict[str, Any]]:
        answer = self.post("/query", {"sql": sql, **body})
        assert answer.status_code == 200, answer.text
        rows: list[dict[str, Any]] = answer.json()["rows"]
        return rows

    def insert(self, table: str, rows: list[dict[str, Any]], **options: Any) -> dict[str, Any]:
        """Ingest rows without a JVM."""
        answer = self.post(f"/ingest/{table}", rows, **options)
        assert answer.status_code == 200, answer.text
        report: dict[str, Any] = answer.json()
        return report


@dataclass(frozen=True)
class Served:
    """A running service."""

    url: str
    service: Service
    admin: Client

    def client(self, scope: str = "reader", **limits: Any) -> Client:
        """A client with a new key."""
        return Client(self.url, self.service.keys.create(KeyRequest(scope, **limits))[1])


def request_to(service: Service, principal: Principal) -> Call:
    """A request of a caller, as the middleware hands it to a route."""
    return Call(service, principal, "test-request")


def serve_app(app: Any, port: int = 0) -> AbstractContextManager[str]:
    """Serve an application with the limits that `lake serve` sets."""
    return running(app, port, http="h11", h11_max_incomplete_event_size=MAX_HEADER)


@contextmanager
def serving(home: Path, port: int = 0, **flags: Any) -> Iterator[Served]:
    """A service on a lake until the block ends; flags are settings under [serve], or of another section if they name it.

    It has one query process, because each takes half a second of processor time to start.
    """
    named = {name if "." in name else f"serve.{name}": value for name, value in flags.items()}
    given = {"home": home, "serve.rate": 0, "serve.workers": 1, **named}
    settings = load_settings(given, folder=home.parent, environ=cache_only())
    with assemble(settings) as lake, closing(create_service(lake, settings)) as service:
        key = service.keys.create(KeyRequest("admin", "tests"))[1]
        with serve_app(create_app(service), port) as url:
            yield Served(url, service, Client(url, key))


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One service for all tests that do not stop it; tests use namespaces of their own."""
    folder = tmp_path_factory.mktemp("http")
    (folder / "roots").mkdir()
    with serving(folder / "lake", roots=[str(folder / "roots")], workers=2, concurrency=0) as server:
        yield server


#: A pipeline that needs no Spark. It waits as long as there is a file `wait` beside it, and fails while there is a file `fail`.
PIPELINE = """
import time
from pathlib import Path

import pyarrow

from lakehouse.pipelines import Pipeline, Table

FOLDER, SHAPE = Path(__file__).parent, pyarrow.schema([("n", pyarrow.int64())])


def no_spark():
    raise AssertionError("built without Spark")


def build(context):
    while (FOLDER / "wait").exists():
        time.sleep(0.05)
    if (FOLDER / "fail").exists():
        raise OSError("the source is gone")
    context.catalog.create_table_if_not_exists("steps.t", schema=SHAPE).append(pyarrow.table({"n": [1]}, schema=SHAPE))
    return 1


steps = Pipeline("steps", (Table("steps.t", no_spark, light=build),))
"""


@dataclass(frozen=True)
class ServedPipelines(Served):
    """A service with a pipeline of its own."""

    folder: Path
    """Where its files `wait` and `fail` are."""

    def run(self, client: Client, fails: bool = False) -> dict[str, Any]:
        """Run the pipeline to its end; returns the job."""
        if fails:
            (self.folder / "fail").touch()
        try:
            answer = client.post("/pipelines/steps/runs", {"light": True})
            assert answer.status_code == 202, answer.text
            return self.ended(client, answer.json()["job"]["id"])
        finally:
            (self.folder / "fail").unlink(missing_ok=True)

    def ended(self, client: Client, job: str) -> dict[str, Any]:
        """A job that has ended."""
        status: dict[str, Any] = {}
        while status.get("state") not in ("succeeded", "failed", "canceled"):
            status = client.get(f"/jobs/{job}", params={"wait": 20}).json()
        return status


@pytest.fixture(scope="session")
def pipelined(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedPipelines]:
    """One service with a pipeline."""
    folder = tmp_path_factory.mktemp("pipelined")
    (folder / "lake.toml").write_text('pipelines = ["served_pipelines"]\n')
    (folder / "served_pipelines.py").write_text(PIPELINE)
    with serving(folder / "lake", concurrency=0) as server:
        yield ServedPipelines(server.url, server.service, server.admin, folder)


@pytest.fixture
def admin(served: Served) -> Client:
    return served.admin


@dataclass
class Process:
    """A service as `lake serve` starts it."""

    popen: subprocess.Popen[str]
    client: Client

    def kill(self) -> None:
        self.popen.kill()
        self.popen.wait()


Start = Callable[..., Process]


@pytest.fixture
def start(home: Path, tmp_path: Path) -> Iterator[Start]:
    """Starts `lake serve` on the test's lake; the key is that of the first start."""
    started: list[Process] = []
    keys: list[str] = []

    def begin(**environment: str) -> Process:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        popen = subprocess.Popen(
            [LAKE, "serve", "--port", str(port)],
            env={**os.environ, "LAKE_HOME": str(home), "LAKE_SERVE__WORKERS": "1", **environment},
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert popen.stderr is not None
        scheme = "https" if "LAKE_SERVE__TLS_CERT_FILE" in environment else "http"
        client = Client(f"{scheme}://127.0.0.1:{port}")
        lines = [popen.stderr.readline()]
        if not keys and environment.get("LAKE_AUTH") != "off":
            lines.append(popen.stderr.readline())
            keys.append(lines[-1].split()[-1])
        threading.Thread(target=popen.stderr.read, daemon=True).start()
        process = Process(popen, Client(client.url, keys[0] if keys else ""))
        started.append(process)
        wait_for(lambda: _answers(client))
        return process

    yield begin
    for process in started:
        process.popen.terminate()
        process.popen.wait(20)
        if process.popen.stderr is not None:
            process.popen.stderr.close()


def _answers(client: Client) -> bool:
    try:
        return client.get("/healthz").status_code == 200
    except requests.ConnectionError:
        return False


def wait_for(condition: Callable[[], Any], timeout_s: float = 300.0) -> Any:
    """What a condition returns once it holds."""
    deadline = time.monotonic() + timeout_s
    while not (result := condition()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)
    return result


@contextmanager
def unread(client: Client, sql: str, accept: str = "application/json", **more: Any) -> Iterator[socket.socket]:
    """The socket of a client that has sent a statement and reads nothing; at the end it hangs up."""
    host, port = client.url.removeprefix("http://").split(":")
    body = json.dumps({"sql": sql, **more}).encode()
    head = f"POST /query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {client.key}\r\nAccept: {accept}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    with closing(socket.create_connection((host, int(port)))) as connection:
        connection.sendall(head.encode() + body)
        yield connection


def running_on(daemon: SparkDaemonClient) -> int:
    """How many statements and attached processes the warm Spark has; -1 while it is too busy to say."""
    time.sleep(0.1)
    health = daemon.health()
    return int(health["running"]) if health else -1


def others_on(daemon: SparkDaemonClient) -> int:
    """How many there are beside those of a test that has none yet: a `lake.spark` of another test counts until its process ends."""
    return min(count for count in (running_on(daemon) for _ in range(10)) if count >= 0)
