"""A web server with months of trips, and source contexts for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.support.servers.web import Web, serving

from lakehouse.pipelines.model import SourceContext
from lakehouse.pipelines.taxi.sample import write_month
from lakehouse.storage.raw import local_raw_area

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MONTH = "2026-01"
FILE = f"yellow_tripdata_{MONTH}.parquet"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The developer's proxy has nothing to do with a server on loopback."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def web() -> Iterator[Web]:
    with serving() as server:
        yield server


@pytest.fixture(scope="session")
def month_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_month(tmp_path_factory.mktemp("months"), MONTH, rows=2_000, seed=1)


@pytest.fixture(scope="session")
def other_month_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same month as it was published again."""
    return write_month(tmp_path_factory.mktemp("months again"), MONTH, rows=2_100, seed=2)


@dataclass
class Contexts:
    """Creates source contexts with one raw area and records their progress messages."""

    raw: Path
    messages: list[str] = field(default_factory=list)

    def __call__(self, partition: str = MONTH, spark: Any = None, **settings: str) -> SourceContext:
        quick = {"wait_s": "0.01", "timeout_s": "0.5", "tries": "3"} if "url" in settings else {}
        return SourceContext(
            lambda: spark,
            {**quick, **settings},
            partition,
            NOW,
            local_raw_area(self.raw),
            progress=self.messages.append,
        )


@pytest.fixture
def context(tmp_path: Path) -> Callable[..., SourceContext]:
    return Contexts(tmp_path / "raw")
