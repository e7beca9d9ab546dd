"""Fixtures for all tests: a clean environment, a lake of one's own, the real `lake` command, one warm Spark to share."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakehouse.config.load import load_settings
from lakehouse.config.settings import Settings
from lakehouse.lake import Lake
from lakehouse.lake.assemble import assemble, spark_daemon
from tests.servers.postgres import postgres, postgres_server
from tests.servers.s3 import s3_server
from tests.servers.stack import stack
from tests.watch import HomeWatch, default_homes

__all__ = ["postgres", "postgres_server", "s3_server", "stack"]

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LAKE = Path(sys.executable).parent / "lake"

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that the developer has set reaches a test, except where the jars are kept."""
    for name in list(os.environ):
        if name.startswith("LAKE_") and name != "LAKE_CACHE":
            monkeypatch.delenv(name)


@pytest.fixture(scope="session", autouse=True)
def home_watch() -> Iterator[HomeWatch]:
    """Fails the suite if anything in a lake of the developer is other than it was."""
    watch = HomeWatch(default_homes())
    yield watch
    assert not watch.changed(), "a test changed a lake outside its temporary folder"


@pytest.fixture(autouse=True)
def _no_lake_but_ones_own(home_watch: HomeWatch) -> Iterator[None]:
    """Fails the test that opens a lake outside its temporary folder."""
    yield
    found = home_watch.found()
    assert not found, f"the test used {found[0]}, which is not in its temporary folder"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder for a lake that is not there yet."""
    return tmp_path / "lake"


@pytest.fixture
def lake_command(home: Path) -> Command:
    """Runs the real `lake` against the test's own lake."""
    return command_for(home)


def command_for(home: Path) -> Command:
    """`lake` against a given lake, as a function that returns the finished process."""

    def run(
        *arguments: str, env: dict[str, str] | None = None, cwd: Path | None = None, input: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "LAKE_HOME": str(home), **(env or {})}
        return subprocess.run(
            [LAKE, *arguments], capture_output=True, text=True, env=environment, cwd=cwd, input=input, timeout=600
        )

    return run


def cache_only() -> dict[str, str]:
    """The environment of lakes made in this process: nothing but where the jars are kept."""
    return {name: value for name, value in os.environ.items() if name in ("LAKE_CACHE", "XDG_CACHE_HOME")}


def stop_spark(home: Path) -> None:
    """Stop a lake's background Spark, if it has one."""
    spark_daemon(load_settings({"home": home}, environ=cache_only())).shut_down()


@pytest.fixture(scope="session")
def shared_settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The settings of the lake that all Spark tests share: starting Spark is the dear part."""
    return load_settings({"home": tmp_path_factory.mktemp("shared") / "lake"}, environ=cache_only())


@pytest.fixture(scope="session")
def shared_lake(shared_settings: Settings) -> Iterator[Lake]:
    """A lake with a warm Spark; tests use namespaces of their own."""
    with assemble(shared_settings) as lake:
        yield lake
    stop_spark(shared_settings.home)


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> str:
    """A namespace that no other test uses."""
    return "t_" + "".join(letter if letter.isalnum() else "_" for letter in request.node.name.lower())[:80]


@pytest.fixture(scope="session")
def local_lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """A lake whose Spark runs in this process, for tests that hold DataFrames."""
    home = tmp_path_factory.mktemp("local") / "lake"
    settings = load_settings({"home": home, "spark.master": "local[2]"}, environ=cache_only())
    with assemble(settings) as lake:
        yield lake


@pytest.fixture(scope="session")
def spark(local_lake: Lake) -> SparkSession:
    """One session for all tests of transformations: UTC, few partitions, no UI."""
    return local_lake.spark


#: Fixtures of the servers that tests share. Those that use one run in one lane (tools/lanes.py), so that it is started once.
SERVERS = {"stack", "cluster", "nessie_server", "postgres", "postgres_server", "s3_server"}
#: The same as parameters, of tests that ask for a server when they begin.
ASKED_FOR = {"postgres", "nessie"}


@pytest.hookimpl(tryfirst=True)  # before pytest picks tests by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use a shared server."""
    for item in items:
        asked = {str(value) for value in item.callspec.params.values()} if hasattr(item, "callspec") else set()
        if SERVERS & set(getattr(item, "fixturenames", ())) or asked & ASKED_FOR:
            item.add_marker(pytest.mark.servers)
