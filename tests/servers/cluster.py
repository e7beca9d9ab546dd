"""A real Spark cluster for tests: a master and two workers of the pyspark wheel's own Spark, on loopback."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from tests.servers.stack import free_ports
from tests.servers.started import wait_until

from lakehouse.config.settings import Settings
from lakehouse.engines.spark.java import find_java
from lakehouse.engines.spark.launch import class_path, spark_home

_WORKERS = 2


@dataclass(frozen=True)
class Cluster:
    """A running cluster: where it is, the secret that all of it shares, and what it wrote."""

    master: str
    secret: str
    logs: Path

    def executors_started(self) -> int:
        """How many workers were given an executor."""
        return sum("Asked to launch executor" in log.read_text() for log in self.logs.glob("worker*.log"))


@pytest.fixture(scope="module")
def cluster(shared_settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master and two workers with one core each."""
    folder = tmp_path_factory.mktemp("cluster")
    port = next(iter(free_ports().values()))
    made = Cluster(f"spark://127.0.0.1:{port}", secrets.token_hex(16), folder)
    properties = folder / "spark.properties"
    properties.touch(0o600)  # the secret goes through a file, so that no list of processes shows it
    properties.write_text(f"spark.authenticate true\nspark.authenticate.secret {made.secret}\n")
    start = _Starter(shared_settings, folder, properties)
    with ExitStack() as running:
        running.enter_context(
            start("master", "--port", str(port), "--webui-port", "0", until="I have been elected leader")
        )
        for number in range(_WORKERS):
            arguments = ("--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(folder / "work"))
            running.enter_context(
                start(f"worker{number}", *arguments, made.master, until="Successfully registered with master")
            )
        yield made


@dataclass(frozen=True)
class _Starter:
    settings: Settings
    folder: Path
    properties: Path

    @contextmanager
    def __call__(self, name: str, *arguments: str, until: str) -> Iterator[None]:
        java = find_java(self.settings.spark.java_home)
        kind = "master.Master" if name == "master" else "worker.Worker"
        command = [str(java.program), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", class_path([])]
        command += [f"org.apache.spark.deploy.{kind}", "--host", "127.0.0.1", "--properties-file", str(self.properties)]
        environment = {
            **os.environ,
            "SPARK_HOME": str(spark_home()),
            "JAVA_HOME": str(java.home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_SCALA_VERSION": "2.12",  # else a worker looks for a build of Spark's sources
        }
        log = self.folder / f"{name}.log"
        with log.open("w") as out:
            process = subprocess.Popen(
                [*command, *arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment
            )
        try:
            wait_until(partial(_says, log, until), f"Spark's {log.stem}", process, log)
            yield
        finally:
            process.terminate()  # a worker ends its executors then
            process.wait(30)


def _says(log: Path, words: str) -> bool:
    return words in log.read_text()
