"""Fixtures for all tests: a clean environment, a lake of one's own, the real `lake` command, one warm Spark to share."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from lakehouse.config.load import load_settings
from lakehouse.config.settings import Settings
from lakehouse.engines.spark.daemon.client import SOCKET
from lakehouse.lake import Lake
from lakehouse.lake.assemble import assemble
from lakehouse.lake.spark import spark_daemon
from tests.support.home_watch import HomeWatch, default_homes
from tests.support.repetitions import repetitions
from tests.support.servers.postgres import postgres, postgres_server
from tests.support.servers.s3 import s3_server
from tests.support.servers.stack import STACK, STRETCHES, stack

# How long an example takes says something of the machine, which may be busy, and nothing of the code.
# Every `make test` draws the same examples; `make test-faults` draws new ones, and prints how to repeat those that fail.
hypothesis_settings.register_profile(
    "lakehouse",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=repetitions(True, False),
    print_blob=True,
)
hypothesis_settings.load_profile("lakehouse")

__all__ = ["postgres", "postgres_server", "s3_server", "stack"]

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LAKE = Path(sys.executable).parent / "lake"

Command = Callable[..., "subprocess.CompletedProcess[str]"]


#: What every Java process of a test gets. Tests are short: a small heap, and the first compiler alone, which takes a quarter less
#: processor time than both.
SMALL_JAVA = {"LAKE_SPARK__DRIVER_MEMORY": "1g", "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}
#: An option that Java does not know, so that it does not start.
NO_JAVA = {"JDK_JAVA_OPTIONS": "-XX:+ThisTestIsNotMarkedSparkServersOrSlow"}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[object]:
    """Set what Java may do in a test and in the fixtures that it is the first to use."""
    marked = any(item.get_closest_marker(name) for name in ("spark", "servers", "slow"))
    with pytest.MonkeyPatch.context() as environment:
        for name, value in (SMALL_JAVA if marked else NO_JAVA).items():
            environment.setenv(name, value)
        return (yield)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that the developer has set reaches a test, except where the jars are kept."""
    for name in list(os.environ):
        if name.startswith("LAKE_") and name not in ("LAKE_CACHE", *SMALL_JAVA):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session", autouse=True)
def home_watch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HomeWatch]:
    """Fails the suite if anything in a lake of the developer is other than it was."""
    tmp_path_factory.getbasetemp()  # empties an old --basetemp, by relative names that would look like a lake here
    watch = HomeWatch(default_homes())
    yield watch
    assert not watch.changed(), "a test changed a lake outside its temporary folder"


@pytest.fixture(autouse=True)
def _no_lake_but_ones_own(home_watch: HomeWatch) -> Iterator[None]:
    """Fails the test that opens a lake outside its temporary folder."""
    yield
    places = home_watch.found()
    assert not places, f"the test used {places[0]}, which is not in its temporary folder"


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
    """The environment of lakes made in this process: nothing but where the jars are kept and a small heap."""
    return {name: value for name, value in os.environ.items() if name in ("LAKE_CACHE", "XDG_CACHE_HOME", *SMALL_JAVA)}


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


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As in a background job of a shell: every process that a test starts would ignore Ctrl-C, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)

TESTS = Path(__file__).parent
#: What `make test-fast` leaves out, although it starts no JVM: services, terminals, races.
SLOW_FOLDERS, SLOW_FILES = {"http", "client", "maintenance", "copies"}, {"test_terminal.py", "test_script.py"}

#: What tests share, by the fixtures that start it, from the most expensive down. A file runs with the files of its most expensive
#: family in one process (tools/suite/lanes.py), so that each server and each Spark starts once and ends with its last user.
FAMILIES = {
    "stack": {"stack"},
    "session": {"local_lake"},
    "warm": {"shared_lake"},
    "servers": {"cluster", "nessie_server", "postgres", "postgres_server", "s3_server"},
}
#: Parameters that stand for a server, of tests that request it when they begin.
REQUESTED = {"bucket": "s3_server", "nessie": "nessie_server", "postgres": "postgres"}


def family_of(item: pytest.Item) -> str:
    """What a test shares: a family, "spark" or "sparks" for one that starts a JVM or two for itself, "plain" for one that starts none."""
    for family in FAMILIES:
        if uses(item, family):
            return family
    if item.get_closest_marker("sparks"):
        return "sparks"
    return "spark" if item.get_closest_marker("spark") else "plain"


def uses(item: pytest.Item, family: str) -> bool:
    """Whether a test uses a fixture of a family."""
    parameters = {str(value) for value in item.callspec.params.values()} if hasattr(item, "callspec") else set()
    names = {*getattr(item, "fixturenames", ()), *(REQUESTED[parameter] for parameter in parameters & set(REQUESTED))}
    return bool(names & FAMILIES[family])


@pytest.hookimpl(tryfirst=True)  # before pytest selects tests by their markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test with its family and the tests of shared servers as such; put those of the stack in order."""
    for item in items:
        family = family_of(item)
        item.add_marker(pytest.mark.family(family))
        if uses(item, "stack") or uses(item, "servers"):
            item.add_marker(pytest.mark.servers)
        if item.path.relative_to(TESTS).parts[0] in SLOW_FOLDERS or item.path.name in SLOW_FILES:
            item.add_marker(pytest.mark.slow)
    order = ("", *STRETCHES)
    items.sort(key=lambda item: order.index(stretch_of(item)))


def stretch_of(item: pytest.Item | None) -> str:
    """The stretch of a test on the stack (tests/support/servers/stack.py)."""
    if item is None or not uses(item, "stack"):
        return ""
    marker = item.get_closest_marker("stretch")
    return str(marker.args[0]) if marker else "sql"


@pytest.hookimpl(trylast=True)  # after the end of the fixtures that the next test does not use
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Stop the Sparks of a test's own lakes, and end a stretch of tests on the stack."""
    _stop_own_sparks(getattr(item, "funcargs", {}).get("tmp_path"))
    begins = stretch_of(nextitem)
    if begins and begins != stretch_of(item) and STACK in item.session.stash:
        item.session.stash[STACK].begin(begins)


def _stop_own_sparks(folder: Path | None) -> None:
    """Stop the warm Sparks of lakes below a folder, which would stand by for a quarter of an hour."""
    for depth in ("", "*/", "*/*/") if folder else ():
        for socket in folder.glob(f"{depth}run/{SOCKET}"):
            stop_spark(socket.parent.parent)


@pytest.fixture(scope="session")
def plugin_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with examples/plugin, installed from its own wheel."""
    from tests.support.wheel import install_plugin

    return install_plugin(tmp_path_factory.mktemp("plugin"))


@pytest.fixture
def plugin(plugin_site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plugin is installed for this test."""
    monkeypatch.syspath_prepend(str(plugin_site))
