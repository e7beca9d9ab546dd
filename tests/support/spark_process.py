"""Spark in a process of its own, with the jars that an object store needs: the tests' shared one runs without them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lakehouse.config.settings import Settings

_CHILD = """
import json, sys
from pathlib import Path
from lakehouse.engines.spark.java import Java, find_java
from lakehouse.engines.spark.launch import LaunchOptions, start_session
told = json.loads(sys.stdin.readline())
started = start_session(LaunchOptions(find_java(told["java_home"]), [Path(jar) for jar in told["jars"]], "1g", told["conf"], Path(told["log"])))
sessions = {}  # a session never forgets a catalog that it has seen under a name
for line in sys.stdin:
    asked = json.loads(line)
    told = json.dumps(asked["conf"], sort_keys=True)
    if told not in sessions:
        sessions[told] = started.spark.newSession()
        for name, value in asked["conf"].items():
            sessions[told].conf.set(name, value)
    try:
        rows = [row.asDict() for row in sessions[told].sql(asked["sql"]).collect()]
        print("answer " + json.dumps({"rows": rows}, default=str), flush=True)
    except Exception as exc:
        print("answer " + json.dumps({"error": str(exc)}), flush=True)
"""


@dataclass
class SparkApart:
    """A Spark that answers statements; what it is told of catalogs comes with each."""

    process: subprocess.Popen[str]
    log: Path

    def sql(self, statement: str, conf: Mapping[str, str]) -> list[dict[str, Any]]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"sql": statement, "conf": dict(conf)}) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("answer "):
                answer = json.loads(line.removeprefix("answer "))
                if "error" in answer:
                    raise RuntimeError(_told(answer["error"]))
                return list(answer["rows"])
        raise RuntimeError(f"Spark ended: {self.log.read_text(errors='replace')[-2000:]}")


def _told(error: str) -> str:
    """What Java says went wrong and why, without where in Java: the last lines are what is read first."""
    return "\n".join(line for line in error.splitlines() if not line.lstrip("\t").startswith(("at ", "... ")))


@pytest.fixture(scope="module")
def spark_apart(shared_settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkApart]:
    """One such Spark for the tests of a file."""
    from lakehouse.engines.spark.jars import EMBEDDED, ICEBERG_AWS, ensure_jars

    folder = tmp_path_factory.mktemp("apart")
    java_home = shared_settings.spark.java_home
    jars = ensure_jars(shared_settings.cache, shared_settings.maven_repo, jars=(*EMBEDDED, *ICEBERG_AWS))
    conf = {
        "spark.master": "local[2]",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": f"file://{folder}/spark",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    }
    told = {"jars": [str(jar) for jar in jars], "conf": conf, "log": str(folder / "log"), "java_home": java_home}
    process = subprocess.Popen(
        [sys.executable, "-c", _CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(told) + "\n")
    process.stdin.flush()
    try:
        yield SparkApart(process, folder / "log")
    finally:
        with process.stdin, process.stdout or nullcontext():
            process.stdin.close()  # which ends it, and with it its JVM
            process.wait(60)
