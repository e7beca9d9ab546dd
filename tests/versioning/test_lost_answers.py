"""A publish whose answer is lost: the run finds out what became of it, and does it if it was not done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.support.light_runs import ONE, TWO, names_in, run
from tests.support.servers.nessie import NessieServer, nessie_server
from tests.support.servers.postgres import Postgres
from tests.support.servers.relay import Relay, relay
from tests.support.servers.rest_catalog import serving
from tests.support.transaction_pipelines import opened

from lakehouse.catalogs.sql import SqlCatalog, open_database
from lakehouse.core.errors import CatalogUnreachableError
from lakehouse.lake import Lake

__all__ = ["nessie_server"]


@dataclass(frozen=True)
class Far:
    """A lake whose catalog is behind a relay."""

    lake: Lake
    relay: Relay
    publishing: tuple[bytes, ...]
    """What a publish alone says to the catalog, up to the request that does it."""


@pytest.fixture(params=["postgres", "rest", pytest.param("nessie", marks=pytest.mark.slow)])
def far(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Far]:
    monkeypatch.setattr("lakehouse.versioning.publish._POLL_INTERVAL_S", 0.1)  # the relay counts requests, not seconds
    home = tmp_path / "home"
    if request.param == "postgres":
        postgres: Postgres = request.getfixturevalue("postgres")
        with relay(postgres.port) as between:
            settings = {"LAKE_CATALOG__KIND": "sql", "LAKE_CATALOG__URI": replace(postgres, port=between.port).url}
            with opened(home, settings) as lake:
                yield Far(lake, between, (b"INSERT INTO lake_tags ", b""))  # and then COMMIT, by whatever name
    elif request.param == "rest":
        theirs = SqlCatalog(open_database(tmp_path / "theirs.db"), f"file://{home}/warehouse")
        with serving(theirs) as served, relay(urlsplit(served.url).port or 0) as between:
            uri = f"http://127.0.0.1:{between.port}"
            settings = {
                "LAKE_CATALOG__KIND": "rest",
                "LAKE_CATALOG__URI": uri,
                "LAKE_CATALOG__TOKEN": served.token,
            }
            with opened(home, settings) as lake:
                yield Far(lake, between, (b"/transactions/commit",))
    else:
        nessie: NessieServer = request.getfixturevalue("nessie_server").emptied()
        with relay(urlsplit(nessie.uri).port or 0) as between:
            settings = {**nessie.settings, "LAKE_CATALOG__URI": f"http://127.0.0.1:{between.port}/api/v2"}
            with opened(home, settings) as lake:
                yield Far(lake, between, (b"/history/merge",))


@pytest.mark.parametrize("done", [True, False], ids=["done", "not done"])
@pytest.mark.slow
def test_a_run_is_published_once_though_the_answer_was_lost(far: Far, done: bool) -> None:
    run(far.lake, "first", ONE, TWO)
    far.relay.lose(*far.publishing, passed_on=done, deaf=2)
    record = run(far.lake, "second", ONE, TWO)
    assert (far.relay.lost, far.relay.deaf) == (1, 0)
    assert record.state == "published"
    assert names_in(far.lake, ONE) == names_in(far.lake, TWO) == ["first", "second"]
    catalog = far.lake.refs.branches.catalog
    assert [entry.id for entry in catalog.log() if entry.commit.run == "second"] == [record.commit]
    assert [ref.name for ref in catalog.branch_refs()] == []
    assert [ref.name for ref in catalog.tags()] == ["run_first", "run_second"]


@pytest.mark.slow
def test_a_catalog_that_stays_away_is_told_of_and_nothing_is_published(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakehouse.versioning.publish.RECOVERY_TIMEOUT_S", 0.5)
    run(far.lake, "first", ONE, TWO)
    far.relay.lose(*far.publishing, passed_on=False, deaf=10_000)
    with pytest.raises(CatalogUnreachableError):
        run(far.lake, "second", ONE, TWO)
    far.relay.deaf = 0
    assert names_in(far.lake, ONE) == names_in(far.lake, TWO) == ["first"]
    assert run(far.lake, "second", ONE, TWO).state == "published"
    assert names_in(far.lake, ONE) == names_in(far.lake, TWO) == ["first", "second"]
