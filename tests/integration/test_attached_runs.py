"""Runs in the warm Spark: each is a process of its own that attaches to the JVM, shares nothing else with others, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from tests.conftest import LAKE
from tests.support.repetitions import repetitions

from lakehouse.config.settings import Settings
from lakehouse.engines.spark.java import find_java
from lakehouse.lake import Lake
from lakehouse.lake.spark import spark_daemon

JMAP = find_java("").home / "bin" / "jmap"
pytestmark = [pytest.mark.spark, pytest.mark.faults]

#: A pipeline with a Python function in a module of its own, which may wait in the middle.
MODULE = """
import time
from pathlib import Path

from pyspark.sql import functions as F

from lakehouse.pipelines import Pipeline, Source, Table
from {name}_words import greet


def read(context):
    rows = context.spark.range(4).withColumn("greeting", F.udf(greet)("id"))
    context.spark.sql("CREATE OR REPLACE TEMPORARY VIEW mine AS SELECT '{name}' AS who")
    return rows.crossJoin(context.spark.table("mine"))


def landed(rows):
    waiting = Path("wait")
    if waiting.exists():
        busy = rows.sparkSession.range(4_000_000_000).selectExpr("sum(id * 3) AS s")
        return rows.crossJoin(busy.where("s > 0").select("s")).select("id", "greeting", "who")
    return rows


{name} = Pipeline("{name}", (Table("{name}.rows", landed, inputs=(Source("words", read),)),))
"""


@dataclass(frozen=True)
class Project:
    """A folder with a pipeline, and `lake run` of it."""

    name: str
    folder: Path
    home: Path

    def greet(self, word: str) -> None:
        (self.folder / f"{self.name}_words.py").write_text(f"def greet(number):\n    return '{word}'\n")

    def start(self, *options: str) -> subprocess.Popen[str]:
        # As a user would have it who needs --isolated: the workers of a Spark of its own inherit it.
        path = os.pathsep.join(filter(None, [str(self.folder), os.environ.get("PYTHONPATH", "")]))
        environment = {**os.environ, "LAKE_HOME": str(self.home), "PYTHONPATH": path}
        return subprocess.Popen(
            [LAKE, "run", self.name, *options, "-o", "json"],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *options: str) -> str:
        """The state in which a run ends."""
        process = self.start(*options)
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        return str(json.loads(out)[0]["state"])


@pytest.fixture
def project(shared_lake: Lake, shared_settings: Settings, namespace: str, tmp_path: Path) -> Project:
    shared_lake.sql("select 1", engine="spark")
    return new_project(namespace[:40], tmp_path, shared_settings.home)


def new_project(name: str, folder: Path, home: Path) -> Project:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.py").write_text(MODULE.format(name=name))
    (folder / "lake.toml").write_text(f'pipelines = ["{name}"]\n')
    made = Project(name, folder, home)
    made.greet("hello")
    return made


@pytest.fixture
def daemon(shared_settings: Settings) -> Iterator[psutil.Process]:
    health = spark_daemon(shared_settings).health()
    assert health is not None
    yield psutil.Process(health["pid"])


def rows(lake: Lake, project: Project) -> set[tuple[str, str]]:
    return set(lake.sql(f"select distinct greeting, who from {project.name}.rows", engine="duckdb").rows())


def children(process: subprocess.Popen[str]) -> list[str]:
    return [child.name() for child in psutil.Process(process.pid).children(recursive=True)]


def test_a_run_starts_no_java_if_a_warm_spark_stands_by(project: Project, shared_lake: Lake) -> None:
    process, seen = project.start(), set()
    while process.poll() is None:
        try:
            seen |= set(children(process))
        except psutil.Error:
            break
        time.sleep(0.05)
    out, err = process.communicate()
    assert json.loads(out)[0]["state"] == "published", err
    assert "java" not in seen
    assert rows(shared_lake, project) == {("hello", project.name)}


def test_isolated_a_run_starts_its_own(project: Project, shared_lake: Lake) -> None:
    process, seen = project.start("--isolated"), set()
    while process.poll() is None and "java" not in seen:
        seen |= set(children(process))
        time.sleep(0.02)
    assert "java" in seen
    process.communicate(timeout=300)
    assert rows(shared_lake, project) == {("hello", project.name)}


def test_a_changed_module_never_runs_as_its_old_version(project: Project, shared_lake: Lake) -> None:
    assert project.run() == "published"
    project.greet("goodbye")
    assert project.run() == "published"
    assert rows(shared_lake, project) == {("goodbye", project.name)}


def test_runs_at_once_share_neither_views_nor_settings(
    shared_lake: Lake, shared_settings: Settings, namespace: str, tmp_path: Path
) -> None:
    shared_lake.sql("select 1", engine="spark")
    several = [
        new_project(f"{namespace[:30]}_{number}", tmp_path / str(number), shared_settings.home)
        for number in range(repetitions(smoke=2, full=8))
    ]
    running = [project.start() for project in several]
    for project, process in zip(several, running, strict=True):
        out, err = process.communicate(timeout=600)
        assert process.returncode == 0, err
        assert json.loads(out)[0]["state"] == "published"
        assert rows(shared_lake, project) == {("hello", project.name)}


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT], ids=["killed", "Ctrl-C"])
def test_what_a_vanished_run_was_doing_is_cancelled(
    project: Project, shared_lake: Lake, jobs: Callable[[bool], None], sent: signal.Signals
) -> None:
    (project.folder / "wait").touch()
    process = project.start()
    jobs(True)
    process.send_signal(sent)
    process.communicate(timeout=60)
    jobs(False)
    (project.folder / "wait").unlink()
    assert project.run() == "published"
    assert rows(shared_lake, project) == {("hello", project.name)}


def test_a_run_whose_spark_is_killed_starts_over_with_another(
    project: Project, shared_lake: Lake, daemon: psutil.Process, jobs: Callable[[bool], None]
) -> None:
    (project.folder / "wait").touch()
    process = project.start()
    jobs(True)
    java(daemon).kill()
    (project.folder / "wait").unlink()
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert json.loads(out)[0]["state"] == "published"
    assert "Spark ended during the run. Retrying" in err and "Traceback" not in err
    assert rows(shared_lake, project) == {("hello", project.name)}


#: Attaches and closes the lake again, three times; prints how many Java objects of others the gateway holds each time.
CLOSED = """
import time
from lakehouse import open_lake
from py4j.finalizer import ThreadSafeFinalizer
for _ in range(3):
    with open_lake() as lake, lake._components.session.own({}) as spark:
        spark.range(3).selectExpr("id * 2").collect()
        gateway = spark._sc._gateway
        bindings = gateway.java_gateway_server.getGateway().getBindings()
        while gateway._gateway_client.finalizer_deque:  # its own objects that are being deleted would count in one number only
            time.sleep(0.01)
        print(bindings.size() - len(ThreadSafeFinalizer.finalizers))
"""


def test_a_closed_lake_leaves_the_warm_spark_to_others_and_no_objects_in_it(
    shared_lake: Lake, shared_settings: Settings
) -> None:
    shared_lake.sql("select 1", engine="spark")
    environment = {**os.environ, "LAKE_HOME": str(shared_settings.home)}
    done = subprocess.run([sys.executable, "-c", CLOSED], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    first, _, third = map(int, done.stdout.split())
    assert third < first + 20, "the daemon's own come and go; each time leaves 50 if they are not deleted"
    assert shared_lake.sql("select 2", engine="spark").rows() == [(2,)]


def test_memory_stays_flat(project: Project, shared_lake: Lake, daemon: psutil.Process) -> None:
    """What the JVM holds after a collection; its resident size follows the heap's limit and tells nothing."""
    project.run()
    before = held(daemon)
    for number in range(repetitions(smoke=1, full=200)):
        project.greet(f"hello {number}")
        assert project.run() == "published"
    assert held(daemon) < before * 1.5 + 20


def java(daemon: psutil.Process) -> psutil.Process:
    """The JVM of the warm Spark."""
    (process,) = [child for child in daemon.children(recursive=True) if child.name() == "java"]
    return process


def held(daemon: psutil.Process) -> float:
    """Megabytes of live objects in the JVM of the warm Spark."""
    shown = subprocess.run(
        [JMAP, "-histo:live", str(java(daemon).pid)], capture_output=True, text=True, check=True
    ).stdout
    return int(shown.splitlines()[-1].split()[2]) / 1e6


#: Prints the number of running jobs of all processes in the warm Spark, once a line.
WATCH = """
import sys, time
from lakehouse.config.load import load_settings
from lakehouse.engines.spark.attach import attach
from lakehouse.lake.spark import spark_daemon
lease = spark_daemon(load_settings()).lease(start=False)
tracker = attach(lease).sparkContext.statusTracker()
while True:
    print(len(list(tracker.getActiveJobsIds())), flush=True)
    time.sleep(0.1)
"""


@pytest.fixture
def jobs(shared_lake: Lake, shared_settings: Settings) -> Iterator[Callable[[bool], None]]:
    """Waits until there are jobs in the warm Spark, or none."""
    shared_lake.sql("select 1", engine="spark")
    environment = {**os.environ, "LAKE_HOME": str(shared_settings.home)}
    watch = subprocess.Popen([sys.executable, "-c", WATCH], env=environment, stdout=subprocess.PIPE, text=True)

    def wait(running: bool) -> None:
        deadline = time.monotonic() + 120
        assert watch.stdout
        for line in watch.stdout:
            if (int(line) > 0) == running:
                return
            assert time.monotonic() < deadline, "the jobs of the warm Spark did not change"
        raise AssertionError("the watch has ended")

    yield wait
    watch.kill()
    watch.communicate()
