"""A lake whose Spark is a Spark Connect server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.conftest import cache_only
from tests.support.servers.spark_connect import connect_server

from lakehouse.config.load import load_settings
from lakehouse.lake import Lake
from lakehouse.lake.assemble import assemble

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def connected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    home: Path = tmp_path_factory.mktemp("connect") / "lake"
    settings = load_settings({"home": home}, environ=cache_only())
    with (
        connect_server(settings) as url,
        assemble(replace(settings, spark=replace(settings.spark, master=url))) as lake,
    ):
        yield lake


def test_statements_share_no_session(connected: Lake) -> None:
    def rows(sql: str) -> list[tuple[object, ...]]:
        return connected.sql(sql, engine="spark").rows()

    rows("create table shop.orders as select 1 as id")
    asked = ("set spark.sql.shuffle.partitions", "show views in shop", "select current_database()")
    before = [rows(sql) for sql in asked]
    rows("set spark.sql.shuffle.partitions = 77")
    rows("create temporary view recent as select 1 as id")
    rows("use shop")
    assert [rows(sql) for sql in asked] == before
    assert rows("select id from shop.orders") == [(1,)]
