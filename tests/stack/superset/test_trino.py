"""Superset on Trino, over a lake in a bucket: SQL Lab, a dataset with a chart, and the numbers of `lake sql`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from tests.support.agent_lakes import fill_demo
from tests.support.servers.stack import stack_settings
from tests.support.servers.superset import NEEDS_SUPERSET, Api, one_number

from lakehouse.config.profiles import resolve_profile
from lakehouse.config.settings import Settings
from lakehouse.lake.assemble import assemble
from lakehouse.stack import native

pytestmark = NEEDS_SUPERSET
TRINO = "Lake (Trino)"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """The profile sql, whose warehouse is in a bucket; Trino runs before Superset is provisioned."""
    own = resolve_profile(stack_settings(tmp_path_factory.mktemp("superset-trino") / "lake", storage="s3proxy"))
    try:
        native.up(own, ["storage", "postgres", "trino"])
        with assemble(own) as lake:
            fill_demo(lake)
        native.up(own, ["superset"])
        yield own
    finally:
        native.down(own)


@pytest.fixture(scope="module")
def api(settings: Settings) -> Api:
    return Api(settings)


def test_both_databases_are_there_and_give_the_numbers_of_the_lake(settings: Settings, api: Api) -> None:
    assert set(api.objects("database")) == {"Lake", TRINO}
    volume = one_number(settings, "SELECT sum(volume) FROM gold.daily_bars")
    assert volume > 0
    for database, table in (("Lake", "lake.gold.daily_bars"), (TRINO, "gold.daily_bars")):
        answer = api.sql(f"SELECT sum(volume) AS volume FROM {table}", database)
        assert answer.status_code == 200, answer.text
        assert [int(row["volume"]) for row in answer.json()["data"]] == [volume], database


def test_trino_sees_a_commit_at_once_and_changes_nothing(settings: Settings, api: Api) -> None:
    with assemble(settings) as lake:
        for number in (1, 2):
            lake.ingest_rows(pa.table({"id": [number]}), "crm.fresh")
            assert api.sql("SELECT count(*) AS n FROM crm.fresh", TRINO).json()["data"] == [{"n": number}]
    assert api.sql("DELETE FROM crm.fresh", TRINO).status_code >= 400
    assert one_number(settings, "SELECT count(*) FROM crm.fresh") == 2


def test_a_chart_of_a_dataset_on_trino_has_the_rows_of_the_lake(settings: Settings, api: Api) -> None:
    database = api.objects("database")[TRINO]
    made = api.post("dataset/", database=database, schema="gold", table_name="daily_bars")
    assert made.status_code == 201, made.text
    total = {"expressionType": "SQL", "sqlExpression": "sum(volume)", "label": "volume"}
    query: dict[str, Any] = {"columns": ["ticker"], "metrics": [total], "row_limit": 100}
    source = {"id": made.json()["id"], "type": "table"}
    answer = api.post("chart/data", datasource=source, queries=[query], result_format="json", result_type="full")
    assert answer.status_code == 200, answer.text
    charted = {row["ticker"]: int(row["volume"]) for row in answer.json()["result"][0]["data"]}
    with assemble(settings) as lake:
        rows = lake.sql("SELECT ticker, sum(volume) FROM gold.daily_bars GROUP BY ticker").rows()
    assert charted == dict(rows)
