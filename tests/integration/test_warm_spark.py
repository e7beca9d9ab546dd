"""The background Spark: started once, shared, private, replaced when it dies."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.conftest import LAKE, Command, command_for, stop_spark

from lakehouse.config.load import load_settings
from lakehouse.core.errors import EngineError, EngineMemoryError, StatementLostError
from lakehouse.lake import Lake
from lakehouse.lake.assemble import assemble
from lakehouse.lake.spark import spark_daemon
from lakehouse.orchestrate.dbt import PACKAGED_PROJECT
from lakehouse.process.pids import wait_until

pytestmark = pytest.mark.spark

# Long enough to be killed in the middle of on any machine, and it would write a table if it were not.
SLOW = "CREATE TABLE slow.numbers AS SELECT sum(a.id * b.id) AS s FROM range(4000000000) a CROSS JOIN range(10) b"


@pytest.fixture(scope="module")
def warm_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    # Deeper than the 107 bytes that a socket's path may have: lakes live in deep folders too.
    home = tmp_path_factory.mktemp("warm") / ("deep" * 20) / "lake"
    yield home
    stop_spark(home)


@pytest.fixture
def lake(warm_home: Path) -> Iterator[Lake]:
    with assemble(load_settings({"home": warm_home})) as lake:
        yield lake


@pytest.fixture
def command(warm_home: Path) -> Command:
    return command_for(warm_home)


def daemon_of(home: Path) -> psutil.Process:
    health = spark_daemon(load_settings({"home": home})).health()
    assert health is not None
    return psutil.Process(health["pid"])


def test_two_cold_commands_at_once_start_one_spark(warm_home: Path, command: Command) -> None:
    environment = {**os.environ, "LAKE_HOME": str(warm_home)}
    arguments = [LAKE, "sql", "select 1 as one", "--engine", "spark", "-o", "json"]
    both = [subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate(timeout=180)[0] for process in both] == ['[{"one": 1}]\n'] * 2
    serving = [
        process
        for process in psutil.process_iter(["cmdline"])
        if "lakehouse.lake.daemon" in " ".join(process.info["cmdline"] or ())
        and str(warm_home / "run" / "serving.lock") in [file.path for file in process.open_files()]
    ]
    assert len(serving) == 1
    jvms = [child for child in serving[0].children(recursive=True) if child.name() == "java"]
    assert len(jvms) == 1


def test_status_shows_it_and_its_memory(command: Command, lake: Lake) -> None:
    lake.sql("select 1", engine="spark")
    told = json.loads(command("status", "-o", "json").stdout)
    assert [(entry["service"], entry["state"]) for entry in told] == [("spark", "running")]
    assert told[0]["memory_mb"] > 200


def test_nothing_listens_beyond_loopback(lake: Lake, warm_home: Path) -> None:
    lake.sql("select 1", engine="spark")
    daemon = daemon_of(warm_home)
    listening = [
        connection.laddr
        for process in [daemon, *daemon.children(recursive=True)]
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert listening, "Spark itself listens on loopback; if it does not, this test looks at the wrong process"
    assert {address.ip.removeprefix("::ffff:") for address in listening} == {"127.0.0.1"}


def test_another_user_cannot_reach_it(lake: Lake, warm_home: Path) -> None:
    lake.sql("select 1", engine="spark")
    path = warm_home / "run" / "spark.sock"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    if os.getuid() != 0:
        pytest.skip("becoming another user to try needs root")
    attempt = f"""
import os, socket
os.setgid(65534); os.setuid(65534)
try:
    os.chdir({str(path.parent)!r})
except PermissionError:
    print("kept out")
"""
    tried = subprocess.run(["python3", "-c", attempt], capture_output=True, text=True, check=True)
    assert tried.stdout == "kept out\n"


def test_the_log_is_kept(lake: Lake, warm_home: Path) -> None:
    lake.sql("select 1", engine="spark")
    assert (warm_home / "logs" / "spark.log").is_file()


def test_killed_in_a_statement_it_fails_clearly_and_the_next_one_works(lake: Lake, warm_home: Path) -> None:
    lake.sql("CREATE TABLE IF NOT EXISTS slow.kept AS SELECT 1 AS id")
    failures: list[BaseException] = []

    def run() -> None:
        try:
            lake.sql(SLOW)
        except EngineError as exc:
            failures.append(exc)

    thread = threading.Thread(target=run)
    thread.start()
    wait_until_busy(warm_home)
    daemon = daemon_of(warm_home)
    jvm = next(child for child in daemon.children(recursive=True) if child.name() == "java")
    os.kill(daemon.pid, signal.SIGKILL)
    thread.join(timeout=60)
    assert [type(failure) for failure in failures] == [StatementLostError]
    jvm.wait(timeout=60)  # the JVM never outlives the process that started it
    assert lake.sql("SELECT * FROM slow.kept", engine="spark").rows() == [(1,)]
    assert "slow.numbers" not in [str(info.name) for info in lake.tables()]
    assert daemon_of(warm_home).pid != daemon.pid


def test_a_killed_jvm_is_replaced_as_well(lake: Lake, warm_home: Path) -> None:
    lake.sql("select 1", engine="spark")
    jvm = next(child for child in daemon_of(warm_home).children(recursive=True) if child.name() == "java")
    os.kill(jvm.pid, signal.SIGKILL)
    jvm.wait(timeout=60)
    with contextlib.suppress(EngineError):  # one statement may meet the dead JVM; the one after it must not
        lake.sql("select 1", engine="spark")
    assert lake.sql("select 2", engine="spark").rows() == [(2,)]


def test_ctrl_c_stops_the_statement_and_writes_nothing(warm_home: Path, lake: Lake) -> None:
    lake.sql("select 1", engine="spark")
    environment = {**os.environ, "LAKE_HOME": str(warm_home)}
    process = subprocess.Popen([LAKE, "sql", SLOW], env=environment, stderr=subprocess.PIPE, text=True)
    wait_until_busy(warm_home)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Stopped" in said and "Traceback" not in said
    wait_until_busy(warm_home, busy=False)
    assert "slow.numbers" not in [str(info.name) for info in lake.tables()]


def test_other_settings_replace_it(warm_home: Path, lake: Lake) -> None:
    lake.sql("select 1", engine="spark")
    before = daemon_of(warm_home).pid
    changed = load_settings({"home": warm_home, "spark.conf": {"spark.sql.shuffle.partitions": "7"}})
    with assemble(changed) as other:
        shown = other.sql("SET spark.sql.shuffle.partitions", engine="spark").rows()
    assert shown == [("spark.sql.shuffle.partitions", "7")]
    health = spark_daemon(changed).health()
    assert health is not None and health["pid"] != before


def test_settings_of_one_statement_do_not_leak_into_the_next(lake: Lake) -> None:
    lake.sql("SET spark.sql.ansi.enabled = true")
    assert lake.sql("SET spark.sql.ansi.enabled").rows() == [("spark.sql.ansi.enabled", "false")]


DBT_PROJECT = """\
name: tills
profile: lakehouse
model-paths: [models]
models: {tills: {+tags: ["{{ env_var('TILL', 'none') }}"]}}
"""


def loaded_dbt(home: Path) -> list[psutil.Process]:
    """The process that has dbt loaded, if there is one."""
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if {"lakehouse.cli.loaded", str(home / "run")} <= set(process.info["cmdline"] or ())
    ]


def test_dbt_stays_loaded_and_notices_what_changed(
    command: Command, lake: Lake, warm_home: Path, tmp_path: Path
) -> None:
    lake.sql("select 1", engine="spark")
    (tmp_path / "models").mkdir()
    (tmp_path / "dbt_project.yml").write_text(DBT_PROJECT)
    profile = (PACKAGED_PROJECT / "profiles.yml").read_text()
    (tmp_path / "profiles.yml").write_text(profile)
    (tmp_path / "models" / "a.sql").write_text("select 1 as id")

    def models(tag: str, till: str) -> list[str]:
        listed = command("dbt", "ls", "--", "-s", f"tag:{tag}", env={"LAKE_DBT": str(tmp_path), "TILL": till})
        assert listed.returncode == 0, listed.stderr
        return listed.stdout.split()

    assert models("north", "north") == ["tills.a"]
    serves = (warm_home / "run" / "dbt.sock").exists
    assert wait_until(serves, 120)
    (loaded,) = loaded_dbt(warm_home)
    (tmp_path / "models" / "b.sql").write_text("select 2 as id")
    assert models("south", "south") == ["tills.a", "tills.b"], "the project and the environment are read anew"
    (tmp_path / "profiles.yml").write_text(profile.replace("lakehouse:", "other:"))
    failed = command("dbt", "ls", env={"LAKE_DBT": str(tmp_path)})
    assert failed.returncode == 1
    assert "dbt ls failed: Could not find profile named 'lakehouse'" in failed.stderr
    (tmp_path / "profiles.yml").write_text(profile)
    assert loaded_dbt(warm_home) == [loaded], "it served all of them"
    loaded.kill()
    loaded.wait(timeout=60)
    assert models("north", "north") == ["tills.a", "tills.b"], "without it the command runs by itself"
    assert loaded_dbt(warm_home), "for the next one"


def test_down_stops_it_and_is_safe_twice(command: Command, lake: Lake, warm_home: Path) -> None:
    lake.sql("select 1", engine="spark")
    daemon, loaded = daemon_of(warm_home), loaded_dbt(warm_home)
    assert "Stopped" in command("down").stderr
    assert not daemon.is_running() or daemon.status() == psutil.STATUS_ZOMBIE
    psutil.wait_procs(loaded, timeout=60)
    assert not loaded_dbt(warm_home)
    assert "Nothing was running" in command("down").stderr
    assert json.loads(command("status", "-o", "json").stdout)[0]["state"] == "stopped"


def test_it_stops_when_idle(tmp_path: Path) -> None:
    settings = load_settings({"home": tmp_path / "lake", "spark.idle_minutes": 0.05})
    with assemble(settings) as lake:
        assert lake.sql("select 1", engine="spark").rows() == [(1,)]
    spark = spark_daemon(settings)
    path = tmp_path / "lake" / "run" / "spark.sock"
    deadline = time.monotonic() + 60
    while (spark.health() is not None or path.exists()) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert spark.health() is None
    assert not path.exists()


def test_a_statement_that_needs_too_much_memory_says_so_and_the_next_one_works(tmp_path: Path) -> None:
    with assemble(load_settings({"home": tmp_path / "lake", "spark.driver_memory": "512m"})) as lake:
        try:
            # Spark ends itself where a task has no memory left; which of the two is noticed first is a matter of chance.
            with pytest.raises((EngineMemoryError, StatementLostError)) as failed:
                lake.sql(
                    "select max(length(repeat(concat('x', cast(id as string)), 300000000))) from range(1)",
                    engine="spark",
                )
            assert re.search(r"spark\.driver_memory|spark\.log", failed.value.hint), failed.value
            assert lake.sql("select 2", engine="spark").rows() == [(2,)]
        finally:
            stop_spark(tmp_path / "lake")


def test_a_socket_that_nobody_serves_is_replaced(tmp_path: Path) -> None:
    home = tmp_path / "lake"
    with assemble(load_settings({"home": home})) as lake:
        stale = socket.socket(socket.AF_UNIX)
        stale.bind(str(home / "run" / "spark.sock"))
        stale.close()
        assert lake.sql("select 1", engine="spark").rows() == [(1,)]
    stop_spark(home)


def wait_until_busy(home: Path, busy: bool = True) -> None:
    spark = spark_daemon(load_settings({"home": home}))
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        health = spark.health()
        if health is not None and (health["running"] > 0) == busy:
            time.sleep(0.5 if busy else 0.0)  # into the statement, not at its first step
            return
        time.sleep(0.05)
    raise AssertionError(f"Spark did not become {'busy' if busy else 'idle'}")
