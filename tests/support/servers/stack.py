"""The real servers of the stack for tests: started by our own code, once per run, in a home and on ports of their own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.servers.ports import free_ports

from lakehouse.config.endpoints import StackEndpoints, endpoints_of
from lakehouse.config.load import all_settings, load_settings
from lakehouse.config.profiles import resolve_profile
from lakehouse.config.settings import Settings
from lakehouse.config.stack import StackSettings
from lakehouse.lake import Lake
from lakehouse.lake.assemble import assemble
from lakehouse.lake.spark import spark_daemon
from lakehouse.stack.native import down, up
from lakehouse.stack.services.storage import minio

PORTS = tuple(name.rpartition(".")[2] for name, _, _ in all_settings(StackSettings) if name.endswith("_port"))


#: Tests on the stack run in these stretches, one after another (`pytest.mark.stretch`, "sql" by default). When one begins, the
#: lakes and Sparks of the one before end, and the servers that it does not need. `alone`: no server of the stack runs.
STRETCHES = {
    "alone": set[str](),
    "all": {"storage", "postgres", "rest", "nessie", "hive", "trino", "connect"},
    "sql": {"storage", "postgres", "rest", "trino"},
    "nessie": {"storage", "postgres", "rest", "nessie", "trino"},
    "hive": {"storage", "postgres", "rest", "hive", "trino"},
}
#: Where the session keeps the stack, so that the end of a stretch finds it.
STACK = pytest.StashKey["Stack"]()
#: A branch that a test may make, and that Trino then shows.
SEEN_BY_TRINO = "seen_by_trino"


@dataclass
class Stack:
    """A stack of which a test says what it needs; that is started if it does not run yet."""

    settings: Settings
    running: set[str] = field(default_factory=set)
    _lakes: dict[str, Lake] = field(default_factory=dict)
    _opened: ExitStack = field(default_factory=ExitStack)

    @property
    def endpoints(self) -> StackEndpoints:
        return endpoints_of(self.settings)

    @property
    def environment(self) -> dict[str, str]:
        """The same stack for a `lake` command."""
        ports = {f"LAKE_STACK__{name.upper()}": str(getattr(self.settings.stack, name)) for name in PORTS}
        own = {"LAKE_HOME": str(self.settings.home), "LAKE_CACHE": str(self.settings.cache), **ports}
        own["LAKE_PROFILE"] = self.settings.profile
        own["LAKE_STACK__STORAGE"] = self.settings.stack.storage
        return {**os.environ, **own}

    def need(self, *services: str) -> StackEndpoints:
        """The endpoints of a stack in which at least these services run."""
        if not set(services) <= self.running:
            up(self.settings, services)
            self.running |= set(services)
        return self.endpoints

    def lake(self, profile: str) -> Lake:
        """The lake of a profile. It and its Spark stay open until the stretch ends."""
        if profile not in self._lakes:
            settings = resolve_profile(replace(self.settings, profile=profile))
            self._lakes[profile] = self._opened.enter_context(assemble(settings))
        return self._lakes[profile]

    def begin(self, stretch: str) -> None:
        """Close the lakes of the stretch before, and stop the servers that this one does not need."""
        self.close()
        if unneeded := self.running - STRETCHES[stretch]:
            down(self.settings, unneeded)
            self.running -= unneeded

    def close(self) -> None:
        """Close all lakes and stop their Spark."""
        self._opened.close()
        self._lakes.clear()
        spark_daemon(self.settings).shut_down()


@pytest.fixture(scope="session")
def stack(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One stack for all tests of a run; nothing runs until a test needs it."""
    from tests.conftest import cache_only

    own = {"home": tmp_path_factory.mktemp("stack") / "lake", "profile": "sql", "trino.branches": [SEEN_BY_TRINO]}
    settings = with_ready_storage(load_settings({**own, **stack_ports()}, environ=cache_only()))
    made = request.session.stash[STACK] = Stack(settings)
    try:
        yield made
    finally:
        del request.session.stash[STACK]
        made.close()
        if made.running:
            down(settings)


def stack_settings(home: Path, **changed: Any) -> Settings:
    """Settings of a stack on ports that nobody uses; what is changed is named as in [stack]."""
    from tests.conftest import cache_only

    own = {f"stack.{name}": value for name, value in changed.items()}
    return load_settings({"home": home, "profile": "sql", **stack_ports(), **own}, environ=cache_only())


def with_ready_storage(settings: Settings) -> Settings:
    """The same settings, with s3proxy where MinIO is not built yet: to build it takes minutes of both processors."""
    if minio(settings) is not None:
        return settings
    return replace(settings, stack=replace(settings.stack, storage="s3proxy"))


def stack_ports(host: str = "127.0.0.1") -> dict[str, Any]:
    """A port that nobody uses for every service."""
    return {f"stack.{name}": port for name, port in zip(PORTS, free_ports(len(PORTS), host), strict=True)}
