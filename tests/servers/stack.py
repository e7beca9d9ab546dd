"""The real servers of the stack for tests: started by our own code, once per run, in a home and on ports of their own."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from lakehouse.config.endpoints import StackEndpoints, endpoints_of
from lakehouse.config.load import all_settings, load_settings
from lakehouse.config.settings import Settings
from lakehouse.config.stack import StackSettings
from lakehouse.stack.native import down, up
from lakehouse.stack.services.storage import minio

PORTS = tuple(name.rpartition(".")[2] for name, _, _ in all_settings(StackSettings) if name.endswith("_port"))


#: A branch that a test may make, and that Trino then shows.
SEEN_BY_TRINO = "seen_by_trino"


@dataclass
class Stack:
    """A stack of which a test says what it needs; that is started if it does not run yet."""

    settings: Settings
    running: set[str] = field(default_factory=set)

    @property
    def endpoints(self) -> StackEndpoints:
        return endpoints_of(self.settings)

    @property
    def environment(self) -> dict[str, str]:
        """The same stack for a `lake` command."""
        ports = {f"LAKE_STACK__{name.upper()}": str(getattr(self.settings.stack, name)) for name in PORTS}
        own = {"LAKE_HOME": str(self.settings.home), "LAKE_CACHE": str(self.settings.cache), **ports}
        own["LAKE_STACK__STORAGE"] = self.settings.stack.storage
        return {**os.environ, **own}

    def need(self, *services: str) -> StackEndpoints:
        """The endpoints of a stack in which at least these services run."""
        if not set(services) <= self.running:
            up(self.settings, services)
            self.running |= set(services)
        return self.endpoints


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One stack for all tests of a run; nothing runs until a test needs it."""
    from tests.conftest import cache_only

    own = {"home": tmp_path_factory.mktemp("stack") / "lake", "trino.branches": [SEEN_BY_TRINO]}
    settings = load_settings({**own, **free_ports()}, environ=cache_only())
    if minio(settings) is None:  # to build one takes longer than all tests
        settings = replace(settings, stack=replace(settings.stack, storage="s3proxy"))
    made = Stack(settings)
    try:
        yield made
    finally:
        if made.running:
            down(settings)


def stack_settings(home: Path, **changed: Any) -> Settings:
    """Settings of a stack on ports that nobody uses; what is changed is named as in [stack]."""
    from tests.conftest import cache_only

    own = {f"stack.{name}": value for name, value in changed.items()}
    return load_settings({"home": home, **free_ports(), **own}, environ=cache_only())


def free_ports(host: str = "127.0.0.1") -> dict[str, Any]:
    """A port that nobody uses for every service, none of those that the system gives to outgoing connections."""
    found: dict[str, Any] = {}
    for port in random.sample(range(20_000, 32_000), 1000):
        if len(found) == len(PORTS):
            return found
        with socket.socket() as probe:
            if probe.connect_ex((host, port)) != 0:
                found[f"stack.{PORTS[len(found)]}"] = port
    raise RuntimeError("all ports are taken")
