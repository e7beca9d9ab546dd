"""The pipelines on the `stack` profile (Nessie, an object store, and there also Spark Connect): the same rows as embedded."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.conftest import cache_only
from tests.support.all_pipelines import ALL, everything
from tests.support.servers.nessie import NessieServer
from tests.support.servers.s3 import S3Server
from tests.support.servers.spark_connect import connect_server
from tests.support.servers.stack import Stack

from lakehouse.config.load import load_settings
from lakehouse.engines.trino import Trino, TrinoSettings
from lakehouse.pipelines.market.sample import write_day
from lakehouse.pipelines.social import sample as social
from lakehouse.pipelines.taxi.sample import write_month

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.stretch("nessie")]


@dataclass(frozen=True)
class Embedded:
    """Sources, and what the pipelines make of them in a lake without servers."""

    sources: dict[str, str]
    made: dict[str, Any]


@pytest.fixture(scope="module")
def embedded(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Embedded:
    folder = tmp_path_factory.mktemp("sources")
    for day in (14, 15):
        write_day(folder / "bars", date(2026, 1, day), tickers=2)
    write_month(folder / "trips", "2026-01", rows=1_000)
    (folder / "leads").mkdir()
    (folder / "leads" / "one.csv").write_text("id,name,score\n1,Ada,10\n2,Bob,20\n")
    (folder / "leads" / "two.csv").write_text("id,name,score,city\n2,Bob,25,London\n")
    database = stack.need("postgres").databases["oltp"]
    with psycopg.connect(database.url, autocommit=True) as connection:
        social.create(connection, users=50)
    sources = {
        "LAKE_SOURCES__MARKET__PATH": str(folder / "bars"),
        "LAKE_SOURCES__TAXI__PATH": str(folder / "trips"),
        "LAKE_SOURCES__SOCIAL__URL": database.url,
        "LAKE_SOURCES__FILES__PATH": str(folder / "leads"),
    }
    return Embedded(sources, everything({**sources, "LAKE_HOME": str(folder / "lake")}))


def test_all_pipelines_make_the_same_rows_on_the_stack(stack: Stack, embedded: Embedded) -> None:
    facts = stack.need("storage", "postgres", "nessie", "trino")
    there = everything({**stack.environment, **embedded.sources, "LAKE_PROFILE": "stack"})
    assert there["states"] == embedded.made["states"] == {name: ["published", "nothing"] for name in ALL}
    assert there["rows"] == embedded.made["rows"]
    assert all(there["rows"].values())
    assert there["branches"] == []
    trino = Trino(TrinoSettings(facts.trino_url))
    for table in ("gold.daily_bars", "gold.fct_daily_trips", "gold.user_activity", "crm.leads"):
        (counted,) = trino.run(f"select count(*) from nessie.{table}", "asked for").rows()
        assert counted == (len(there["rows"][table]),), table


def test_pipelines_run_through_spark_connect_unchanged(stack: Stack, embedded: Embedded, tmp_path: Path) -> None:
    facts = stack.need("storage", "postgres", "nessie")
    store = S3Server(facts.s3_endpoint, facts.s3_access_key, facts.s3_secret_key)
    nessie = NessieServer(facts.nessie_uri, store, stack.settings.stack.bucket)
    lake = {**nessie.emptied().settings, "LAKE_HOME": str(tmp_path / "lake")}
    with connect_server(load_settings({}, environ={**cache_only(), **lake})) as url:
        there = everything({**embedded.sources, **lake, "LAKE_SPARK__MASTER": url}, "market", "taxi")
    assert there["states"] == {name: ["published", "nothing"] for name in ("market", "taxi")}
    assert there["rows"] == {name: embedded.made["rows"][name] for name in there["rows"]}
