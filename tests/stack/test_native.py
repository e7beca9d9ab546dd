"""A real PostgreSQL and a real object store under the real supervisor: started, found again, killed, moved, wiped."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from tests.support.servers.stack import stack_ports, stack_settings

from lakehouse.config.endpoints import Database, endpoints_of
from lakehouse.config.settings import Settings
from lakehouse.core.errors import NotSupportedError, PortTakenError, ServiceFailedError, StackError
from lakehouse.process.pids import start_time
from lakehouse.stack import native
from lakehouse.stack.process import terminate_leftovers
from lakehouse.storage.s3 import S3, S3Settings

pytestmark = pytest.mark.slow


@pytest.fixture
def make(home: Path) -> Iterator[Callable[..., Settings]]:
    """Settings of a stack of the test's own, with an object store that needs no building; it is stopped in the end."""
    made: list[Settings] = []

    def making(**changed: Any) -> Settings:
        made.append(stack_settings(home, **{"storage": "s3proxy", **changed}))
        return made[-1]

    yield making
    if made:
        native.down(made[-1])


def pids(settings: Settings) -> dict[str, int | None]:
    return {server.service: server.pid for server in native.status(settings)}


def run(database: Database, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(database.url, autocommit=True) as connection:
        done = connection.execute(statement.encode())
        return done.fetchall() if done.description else []


def store(settings: Settings) -> S3:
    endpoints = endpoints_of(settings)
    return S3(S3Settings(endpoints.s3_endpoint, endpoints.s3_region, endpoints.s3_access_key, endpoints.s3_secret_key))


def supervisor_of(settings: Settings) -> psutil.Process:
    (pid,) = {psutil.Process(pid).ppid() for pid in pids(settings).values()}
    return psutil.Process(pid)


def until(true: Callable[[], object], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it never was so"
        time.sleep(0.05)


def listening(pid: int) -> set[str]:
    """Where a process and those below it take connections, as `ss` tells."""
    below = {pid, *(process.pid for process in psutil.Process(pid).children(recursive=True))}
    sockets = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, check=True).stdout
    return {line.split()[3] for line in sockets.splitlines() if any(f"pid={number}," in line for number in below)}


def test_up_twice_changes_nothing_and_data_outlives_down(make: Callable[..., Settings]) -> None:
    settings = make()
    assert [server.state for server in native.up(settings, ["storage", "postgres"])] == ["running", "running"]
    first = pids(settings)
    run(endpoints_of(settings).databases["oltp"], "CREATE TABLE orders AS SELECT 7 AS id")
    store(settings).write("s3://lakehouse/a/b.txt", b"kept")
    native.up(settings, ["postgres"])
    assert pids(settings) == first

    assert sorted(native.down(settings)) == ["postgres", "storage"]
    assert native.status(settings) == []
    assert not any(start_time(pid) for pid in first.values() if pid)
    assert native.down(settings) == []

    native.up(settings, ["storage", "postgres"])
    assert run(endpoints_of(settings).databases["oltp"], "SELECT id FROM orders") == [(7,)]
    assert store(settings).read("s3://lakehouse/a/b.txt") == b"kept"


def test_everything_that_can_be_set_is_set_otherwise_and_it_still_runs(
    make: Callable[..., Settings], tmp_path: Path
) -> None:
    host = "127.0.0.2"
    keys = {"access_key": "another-key", "secret_key": "another secret \\ with / things"}
    passwords = {f"{name}_password": f"p@ss '{name}' \\ %" for name in ("postgres", "lake", "hive", "nessie", "oltp")}
    ports = {name.removeprefix("stack."): port for name, port in stack_ports(host).items()}
    settings = make(
        host=host,
        bucket="other-bucket",
        region="eu-west-3",
        data=str(tmp_path / "elsewhere"),
        **keys,
        **passwords,
        **ports,
    )
    servers = native.up(settings, ["storage", "postgres"])
    endpoints = endpoints_of(settings)
    assert {server.url for server in servers} == {
        endpoints.s3_endpoint,
        f"postgresql://{host}:{ports['postgres_port']}",
    }
    for name, database in endpoints.databases.items():
        assert run(database, "SELECT current_database(), current_user") == [(name, name)]
    store(settings).write("s3://other-bucket/x", b"x")
    assert {path.name for path in (tmp_path / "elsewhere").iterdir()} == {"storage", "postgres"}
    assert all(
        place.startswith(("127.0.0.2:", "[::ffff:127.0.0.2]:"))
        for server in servers
        for place in listening(server.pid or 0)
    )


def test_a_server_of_ones_own_is_used_and_not_started(make: Callable[..., Settings], tmp_path: Path) -> None:
    theirs = make()
    native.up(theirs, ["storage", "postgres"])
    known = endpoints_of(theirs)
    ours = stack_settings(
        tmp_path / "ours",
        postgres_host="127.0.0.1",
        postgres_port=theirs.stack.postgres_port,
        lake_password=known.databases["lake"].password,
        storage_host="127.0.0.1",
        storage_port=theirs.stack.storage_port,
        access_key=known.s3_access_key,
        secret_key=known.s3_secret_key,
    )
    try:
        assert [server.service for server in native.up(ours, ["rest"])] == ["rest"]
        assert run(known.databases["lake"], "SELECT count(*) FROM iceberg_tables") == [(0,)]
    finally:
        native.down(ours)


def test_a_changed_setting_restarts_what_it_is_about_and_nothing_else(make: Callable[..., Settings]) -> None:
    settings = make()
    native.up(settings, ["storage", "postgres"])
    before = pids(settings)
    from dataclasses import replace

    other = replace(settings, stack=replace(settings.stack, lake_password="brand new"))
    native.up(other, ["storage", "postgres"])
    assert pids(other)["storage"] == before["storage"]
    assert pids(other)["postgres"] != before["postgres"]
    assert run(endpoints_of(other).databases["lake"], "SELECT 1") == [(1,)]


def test_two_that_start_it_at_once_start_it_once(make: Callable[..., Settings]) -> None:
    settings = make()
    with ThreadPoolExecutor() as both:
        answers = [future.result() for future in [both.submit(native.up, settings, ["postgres"]) for _ in range(2)]]
    assert answers[0][0].pid == answers[1][0].pid
    assert len(supervisor_of(settings).children()) == 1


def test_a_killed_server_comes_back_with_its_data(make: Callable[..., Settings]) -> None:
    settings = make()
    native.up(settings, ["postgres"])
    database = endpoints_of(settings).databases["lake"]
    run(database, "CREATE TABLE t AS SELECT 1 AS id")
    killed = pids(settings)["postgres"]
    assert killed
    os.kill(killed, signal.SIGKILL)
    until(lambda: [(server.state, server.restarts) for server in native.status(settings)] == [("running", 1)])
    assert pids(settings)["postgres"] != killed
    assert run(database, "SELECT id FROM t") == [(1,)]


def test_a_killed_supervisor_leaves_nothing_behind_and_the_next_one_starts(make: Callable[..., Settings]) -> None:
    settings = make()
    native.up(settings, ["storage", "postgres"])
    children = supervisor_of(settings).children(recursive=True)
    supervisor_of(settings).kill()
    _, alive = psutil.wait_procs(children, timeout=60)
    assert alive == []
    assert native.status(settings) == []
    assert [server.state for server in native.up(settings, ["storage", "postgres"])] == ["running", "running"]


def test_a_server_that_outlived_its_supervisor_is_ended_before_the_next_starts(make: Callable[..., Settings]) -> None:
    settings = make()
    native.up(settings, ["storage"])
    left = pids(settings)["storage"]
    assert left
    watcher = supervisor_of(settings)
    os.kill(left, signal.SIGSTOP)  # it cannot hear that it should end
    watcher.kill()
    until(lambda: native.status(settings) == [])
    assert start_time(left)
    native.up(settings, ["storage"])
    assert not start_time(left)
    assert pids(settings)["storage"] not in (None, left)


def test_a_process_that_only_has_the_number_of_one_that_was_left_is_not_touched(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as innocent:
        fact = {"pid": innocent.pid, "start_time": "another start", "stop_signal": 15}
        (tmp_path / "state.json").write_text(json.dumps([fact]))
        terminate_leftovers(tmp_path / "state.json")
        assert innocent.poll() is None
        (tmp_path / "state.json").write_text(json.dumps([{**fact, "start_time": start_time(innocent.pid)}]))
        threading.Thread(target=innocent.wait).start()
        terminate_leftovers(tmp_path / "state.json")
        assert not start_time(innocent.pid)


def test_the_supervisor_ends_its_servers_on_sigterm(make: Callable[..., Settings]) -> None:
    settings = make()
    native.up(settings, ["postgres"])
    supervisor = supervisor_of(settings)
    children = supervisor.children(recursive=True)
    supervisor.terminate()
    gone, alive = psutil.wait_procs([supervisor, *children], timeout=60)
    assert alive == []


def test_a_busy_port_is_an_error_that_names_its_setting(make: Callable[..., Settings]) -> None:
    settings = make()
    with socket.create_server(("127.0.0.1", settings.stack.postgres_port)), pytest.raises(PortTakenError) as raised:
        native.up(settings, ["postgres"])
    assert f"127.0.0.1:{settings.stack.postgres_port}" in raised.value.message
    assert "LAKE_STACK__POSTGRES_PORT" in raised.value.hint
    assert native.status(settings) == []


def test_a_host_that_is_not_this_machine_is_an_error(make: Callable[..., Settings]) -> None:
    with pytest.raises(StackError, match=r"192\.0\.2\.1"):
        native.up(make(host="192.0.2.1"), ["postgres"])


def test_a_service_that_runs_only_in_a_container_is_named(make: Callable[..., Settings]) -> None:
    with pytest.raises(NotSupportedError, match="dagster runs in a container only"):
        native.up(make(), ["dagster"])


def test_a_server_that_cannot_start_says_why_and_the_others_run(make: Callable[..., Settings]) -> None:
    settings = make()
    native.up(settings, ["postgres"])
    native.down(settings)
    version = settings.home / "stack" / "postgres" / "18" / "PG_VERSION"
    version.write_text("11\n")
    with pytest.raises(ServiceFailedError, match="postgres does not run") as raised:
        native.up(settings, ["storage", "postgres"])
    assert "lake logs postgres" in raised.value.hint
    until(lambda: {server.service: server.state for server in native.status(settings)}["storage"] == "running")


def test_stopping_one_leaves_those_that_do_not_need_it(make: Callable[..., Settings]) -> None:
    settings = make()
    native.up(settings, ["storage", "postgres"])
    assert native.down(settings, ["postgres"]) == ["postgres"]
    assert list(pids(settings)) == ["storage"]


def test_wiping_deletes_the_data_of_what_is_named(make: Callable[..., Settings]) -> None:
    settings = make()
    native.up(settings, ["storage", "postgres"])
    run(endpoints_of(settings).databases["lake"], "CREATE TABLE t AS SELECT 1 AS id")
    assert native.wipe(settings, ["postgres"]) == [settings.home / "stack" / "postgres"]
    assert (settings.home / "stack" / "storage").is_dir()
    native.up(settings, ["postgres"])
    with pytest.raises(psycopg.errors.UndefinedTable):
        run(endpoints_of(settings).databases["lake"], "SELECT * FROM t")


def test_nobody_else_can_enter_or_read_and_nothing_listens_beyond_loopback(make: Callable[..., Settings]) -> None:
    settings = make()
    servers = native.up(settings, ["storage", "postgres"])
    endpoints = endpoints_of(settings)
    for server in servers:
        assert server.pid and listening(server.pid)
        assert all(place.startswith(("127.", "[::ffff:127.", "[::1]")) for place in listening(server.pid))
    lake, nessie = endpoints.databases["lake"], endpoints.databases["nessie"]
    for wrong in (
        Database(lake.host, lake.port, "nessie", "lake", lake.password),
        Database(lake.host, lake.port, "lake", "lake", "guess"),
    ):
        with pytest.raises(psycopg.OperationalError):
            run(wrong, "SELECT 1")
    # Neither in the list of processes, nor in a log, nor in a file that others may read.
    secrets = [endpoints.s3_secret_key, lake.password, nessie.password]
    everyone = [supervisor_of(settings), *supervisor_of(settings).children(recursive=True)]
    assert not any(secret in " ".join(process.cmdline()) for process in everyone for secret in secrets)
    for file in (path for path in settings.home.rglob("*") if path.is_file() and "stack/postgres" not in str(path)):
        text = file.read_bytes()
        if any(secret.encode() in text for secret in secrets):
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
            assert file.suffix != ".log"
    assert stat.S_IMODE((settings.home / "run" / "stack" / "supervisor.sock").stat().st_mode) == 0o600


def test_a_supervisor_of_another_version_is_replaced(
    make: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = make()
    native.up(settings, ["postgres"])
    before = supervisor_of(settings).pid
    monkeypatch.setattr(native, "protocol_version", lambda: "of tomorrow")
    native.up(settings, ["storage"])
    assert supervisor_of(settings).pid != before
    assert set(pids(settings)) == {"postgres", "storage"}
