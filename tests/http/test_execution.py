"""Rights of keys that are limited to namespaces: which engines they may use."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lakehouse.config.settings import QuerySettings, Settings, TrinoSettings
from lakehouse.core.errors import ForbiddenError
from lakehouse.core.requests import QueryRequest
from lakehouse.http.execution import check_rights
from lakehouse.http.principal import Principal
from lakehouse.lake import Lake
from lakehouse.lake.assemble import assemble

#: An engine that finds tables itself, and does not say that they are all of the lake.
ENGINE = """
from lakehouse.core.engine import EngineCapabilities

class Abacus:
    name = "abacus"
    capabilities = EngineCapabilities()

def open_engine(context):
    return Abacus()
"""


@dataclass
class Request:
    """A request with a key."""

    principal: Principal
    opened: Lake

    def lake(self, branch: str = "") -> Lake:
        return self.opened

    def check_when(self, when: str) -> None:
        """Any moment may be read."""

    def note(self, **facts: Any) -> None:
        """Nothing is logged."""


@pytest.fixture
def lake(tmp_path: Path, plugin: None, monkeypatch: pytest.MonkeyPatch) -> Lake:
    metadata = tmp_path / "site" / "abacus-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: abacus\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[lakehouse.engines]\nabacus = abacus_engine:open_engine\n")
    (tmp_path / "site" / "abacus_engine.py").write_text(ENGINE)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return assemble(Settings(home=tmp_path / "lake", trino=TrinoSettings(url="http://127.0.0.1:1")))


@pytest.mark.parametrize(
    ("engine", "allowed"),
    [("auto", True), ("duckdb", True), ("spark", True), ("polars", True), ("trino", False), ("abacus", False)],
)
def test_a_limited_key_may_use_engines_that_read_only_the_lake(lake: Lake, engine: str, allowed: bool) -> None:
    checked = lake.check(QueryRequest("select 1 as n"), engine)
    check_rights(Request(Principal("all", "reader"), lake), checked)
    limited = Request(Principal("limited", "reader", namespaces=("mine",)), lake)
    if allowed:
        check_rights(limited, checked)
    else:
        with pytest.raises(ForbiddenError, match=f"The engine {engine} may read other databases"):
            check_rights(limited, checked)


def test_a_limited_key_that_names_no_engine_is_checked_for_the_default_one(tmp_path: Path) -> None:
    trino = TrinoSettings(url="http://127.0.0.1:1")
    lake = assemble(Settings(home=tmp_path / "lake", query=QuerySettings(engine="trino"), trino=trino))
    limited = Request(Principal("limited", "reader", namespaces=("mine",)), lake)
    with pytest.raises(ForbiddenError, match="The engine trino may read other databases"):
        check_rights(limited, lake.check(QueryRequest("select 1 as n")))
