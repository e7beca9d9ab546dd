"""Rights of keys that are limited to namespaces: which engines they may use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.support.servers.service import request_to

from lakehouse.config.settings import QuerySettings, ServeSettings, Settings, TrinoSettings
from lakehouse.core.errors import ForbiddenError
from lakehouse.core.requests import QueryRequest
from lakehouse.http.app import create_service
from lakehouse.http.execution import check_rights
from lakehouse.http.principal import Principal
from lakehouse.http.service import Service
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


TRINO, SERVE = TrinoSettings(url="http://127.0.0.1:1"), ServeSettings(workers=1)
ALLOWED = {"auto": True, "duckdb": True, "spark": True, "polars": True, "trino": False, "abacus": False}


@contextmanager
def serving(settings: Settings) -> Iterator[Service]:
    """A service that nobody can reach, for the checks that it makes."""
    with assemble(settings) as lake, closing(create_service(lake, settings)) as service:
        yield service


@pytest.fixture
def engine_site(tmp_path: Path, plugin: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with an engine is installed for this test."""
    metadata = tmp_path / "site" / "abacus-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: abacus\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[lakehouse.engines]\nabacus = abacus_engine:open_engine\n")
    (tmp_path / "site" / "abacus_engine.py").write_text(ENGINE)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))


def test_a_limited_key_may_use_engines_that_read_only_the_lake(engine_site: None, tmp_path: Path) -> None:
    with serving(Settings(home=tmp_path / "lake", trino=TRINO, serve=SERVE)) as service:
        free = request_to(service, Principal("all", "reader"))
        limited = request_to(service, Principal("limited", "reader", namespaces=("mine",)))
        for engine, is_allowed in ALLOWED.items():
            checked = service.lake.check(QueryRequest("select 1 as n"), engine)
            check_rights(free, checked)
            if is_allowed:
                check_rights(limited, checked)
                continue
            with pytest.raises(ForbiddenError, match=f"The engine {engine} may read other databases"):
                check_rights(limited, checked)


def test_a_limited_key_that_names_no_engine_is_checked_for_the_default_one(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "lake", query=QuerySettings(engine="trino"), trino=TRINO, serve=SERVE)
    with serving(settings) as service:
        limited = request_to(service, Principal("limited", "reader", namespaces=("mine",)))
        with pytest.raises(ForbiddenError, match="The engine trino may read other databases"):
            check_rights(limited, service.lake.check(QueryRequest("select 1 as n")))
