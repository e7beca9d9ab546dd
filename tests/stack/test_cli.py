"""`lake up`, `down`, `status`, `logs` as a person types them, with a real PostgreSQL."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.conftest import LAKE, Command
from tests.support.servers.ports import free_port
from tests.support.servers.stack import stack_ports

Lake = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def lake(lake_command: Command) -> Iterator[Lake]:
    ports = {"LAKE_" + name.upper().replace(".", "__"): str(port) for name, port in stack_ports().items()}

    def run(*arguments: str, input: str | None = None, **more: str) -> subprocess.CompletedProcess[str]:
        return lake_command(*arguments, env={**ports, "LAKE_STACK__STORAGE": "s3proxy", **more}, input=input)

    yield run
    run("down")


def rows(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, object]]:
    return {row["service"]: row for row in json.loads(done.stdout)}


@pytest.mark.slow
def test_a_session_with_servers(lake: Lake, home: Path) -> None:
    started = lake("up", "postgres", "-o", "json")
    assert started.returncode == 0, started.stderr
    row = rows(started)["postgres"]
    assert set(row) == {"service", "state", "url", "pid", "memory_mb"}
    assert row["state"] == "running" and str(row["url"]).startswith("postgresql://127.0.0.1:")
    assert isinstance(row["memory_mb"], int) and 0 < row["memory_mb"] < 500
    assert rows(lake("status", "-o", "json"))["postgres"]["pid"] == row["pid"]
    assert rows(lake("status", "-o", "json"))["spark"]["state"] == "stopped"

    completed = lake("logs", "postgres", "-n", "3")
    assert "ready to accept connections" in completed.stdout and len(completed.stdout.splitlines()) == 3

    stopped = lake("down")
    assert (stopped.returncode, stopped.stderr) == (0, "Stopped postgres.\n")
    assert set(rows(lake("status", "-o", "json"))) == {"spark"}
    assert "Nothing was running." in lake("down").stderr


@pytest.mark.slow
def test_wiping_asks_first(lake: Lake, home: Path) -> None:
    lake("up", "postgres")
    data = home / "stack" / "postgres"
    refused = lake("down", "--wipe", input="n\n")
    assert refused.returncode == 130 and "cannot be undone" in refused.stderr
    assert data.is_dir() and rows(lake("status", "-o", "json"))["postgres"]["state"] == "running"
    unasked = lake("down", "--wipe", input="")
    assert unasked.returncode == 130 and data.is_dir()
    done = lake("down", "--wipe", "--yes")
    assert f"Deleted {data}" in done.stderr and not data.exists()
    assert (home / "warehouse").is_dir()


@contextmanager
def written_again_and_again(file: Path, line: str) -> Iterator[None]:
    """Append a line every tenth of a second while the block runs."""
    ended = threading.Event()

    def write() -> None:
        while not ended.wait(0.1):
            with file.open("a") as log:
                log.write(line)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join()


@pytest.mark.slow
def test_logs_can_be_followed(lake: Lake, home: Path) -> None:
    lake("up", "postgres")
    environment = {**os.environ, "LAKE_HOME": str(home)}
    with subprocess.Popen(
        [LAKE, "logs", "-f", "-n", "0", "postgres"], stdout=subprocess.PIPE, text=True, env=environment
    ) as following:
        assert following.stdout is not None
        # Written until it is read: what is there before the command opens the file is not new to it.
        with written_again_and_again(home / "logs" / "stack" / "postgres.log", "something new\n"):
            assert "something new\n" in iter(following.stdout.readline, "")  # PostgreSQL may log a checkpoint before it
        following.send_signal(signal.SIGINT)
        assert following.wait(10) == 130


@pytest.mark.slow
def test_one_server_in_the_foreground_ends_on_a_signal(lake: Lake, home: Path) -> None:
    """What our container image does."""
    port = free_port()
    environment = {**os.environ, "LAKE_HOME": str(home), "LAKE_STACK__POSTGRES_PORT": str(port)}
    command = [LAKE, "stack", "serve", "postgres"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as serving:
        assert serving.stdout is not None
        for line in serving.stdout:
            if "ready to accept connections" in line:
                break
        serving.send_signal(signal.SIGTERM)
        assert "database system is shut down" in serving.stdout.read()
        assert serving.wait(20) == 0


def test_an_unknown_service_is_an_error(lake: Lake) -> None:
    for command in ("up", "down", "logs"):
        completed = lake(command, "postgrse", "-o", "json")
        assert completed.returncode == 2
        assert json.loads(completed.stderr)["error"] == "no_such_service"
        assert "postgres" in json.loads(completed.stderr)["hint"]


def test_a_java_that_is_too_old_is_an_error_before_anything_starts(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "java" / "bin").mkdir(parents=True)
    (tmp_path / "java" / "bin" / "java").touch()
    (tmp_path / "java" / "release").write_text('JAVA_VERSION="17.0.9"\n')
    completed = lake("up", "nessie", LAKE_STACK__JAVA_HOME=str(tmp_path / "java"))
    assert completed.returncode == 1
    assert "is Java 17, but Nessie and Trino need 22 or newer" in completed.stderr
    assert "LAKE_STACK__JAVA_HOME" in completed.stderr
    assert set(rows(lake("status", "-o", "json"))) == {"spark"}


def test_a_missing_java_is_an_error_before_anything_starts(lake: Lake, tmp_path: Path) -> None:
    completed = lake("up", "storage", "-o", "json", LAKE_SPARK__JAVA_HOME=str(tmp_path / "nothing"))
    assert completed.returncode == 1
    assert json.loads(completed.stderr)["error"] == "bad_java"
    assert set(rows(lake("status", "-o", "json"))) == {"spark"}


def test_the_services_are_listed(lake: Lake) -> None:
    listed = {row["service"]: row for row in json.loads(lake("stack", "list", "-o", "json").stdout)}
    assert listed["trino"]["version"] == "476"
    assert listed["trino"]["needs"] == "storage, postgres, rest"
    assert listed["superset"]["runs"] == "natively, compose"
    assert listed["dagster"]["runs"] == "compose"


def test_logs_of_what_never_ran_are_no_error(lake: Lake) -> None:
    completed = lake("logs")
    assert (completed.returncode, completed.stdout) == (0, "")
    assert "none of these services was ever started" in completed.stderr
