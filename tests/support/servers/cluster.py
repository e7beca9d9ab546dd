"""A real Spark cluster for tests: a master and two workers of the pyspark wheel's own Spark, on loopback.

Where the tests run as root, the cluster runs as another user, who can read no folder of the driver's: as on other machines, executors
reach only what the driver sends and what is in an object store.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from tests.support.servers.ports import free_port
from tests.support.servers.started import wait_until

from lakehouse.config.settings import Settings
from lakehouse.engines.spark.java import find_java
from lakehouse.engines.spark.launch import spark_home

_WORKERS = 2
_NOBODY = 65534


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
def cluster(shared_settings: Settings) -> Iterator[Cluster]:
    """A master and two workers with one core each."""
    with (
        tempfile.TemporaryDirectory(prefix="lake-cluster-") as folder,
        running_cluster(shared_settings, Path(folder)) as made,
    ):
        yield made


@contextmanager
def running_cluster(settings: Settings, folder: Path) -> Iterator[Cluster]:
    """A cluster with its files in a folder, which becomes its user's."""
    port = free_port()
    made = Cluster(f"spark://127.0.0.1:{port}", secrets.token_hex(16), folder)
    properties = folder / "spark.properties"
    properties.touch(0o600)  # the secret goes through a file, so that no list of processes shows it
    properties.write_text(f"spark.authenticate true\nspark.authenticate.secret {made.secret}\n")
    if os.geteuid() == 0:
        for place in (folder, properties):
            os.chown(place, _NOBODY, _NOBODY)
    java, spark = find_java(settings.spark.java_home).home, spark_home()
    start = _Starter(readable(java, folder), readable(spark, folder), folder, properties)
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
    java_home: Path
    spark_home: Path
    folder: Path
    properties: Path

    @contextmanager
    def __call__(self, name: str, *arguments: str, until: str) -> Iterator[None]:
        kind = "master.Master" if name == "master" else "worker.Worker"
        command = [str(self.java_home / "bin" / "java"), "-Xmx256m", "-XX:TieredStopAtLevel=1"]
        command += ["-cp", f"{self.spark_home}/jars/*"]
        command += [f"org.apache.spark.deploy.{kind}", "--host", "127.0.0.1", "--properties-file", str(self.properties)]
        environment = {
            **os.environ,
            "HOME": str(self.folder),
            "SPARK_HOME": str(self.spark_home),
            "JAVA_HOME": str(self.java_home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_SCALA_VERSION": "2.12",  # else a worker looks for a build of Spark's sources
        }
        log = self.folder / f"{name}.log"
        with log.open("w") as out:
            process = subprocess.Popen(
                [*command, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=environment,
                cwd=self.folder,
                **({"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}),  # type: ignore[arg-type]
            )
        try:
            wait_until(partial(_says, log, until), f"Spark's {log.stem}", process, log)
            yield
        finally:
            process.terminate()  # a worker ends its executors then
            process.wait(30)


def readable(home: Path, folder: Path) -> Path:
    """A folder of programs, or a copy of it in `folder` if its parents are closed to other users."""
    if all(parent.stat().st_mode & 0o005 == 0o005 for parent in (home, *home.parents)):
        return home
    return Path(shutil.copytree(home, folder / home.name, symlinks=True))


def _says(log: Path, words: str) -> bool:
    return words in log.read_text()
