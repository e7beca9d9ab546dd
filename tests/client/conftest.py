"""A service for tests of the client: the real application on a free port of loopback."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.servers.service import Served, serving

import lakehouse
from lakehouse.client import RemoteLake


@pytest.fixture(scope="package")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One service for all tests of the client; tests use namespaces of their own."""
    with serving(tmp_path_factory.mktemp("client") / "lake", concurrency=0, max_rows=25_000_000) as service:
        yield service


@pytest.fixture
def lake(served: Served) -> Iterator[RemoteLake]:
    with lakehouse.connect(served.url, key=served.admin.key) as remote:
        yield remote
