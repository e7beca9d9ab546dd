"""Maintenance of Hudi tables that a Hive Metastore registers."""

from __future__ import annotations

import pytest
from tests.support.damaged_tables import maintainer
from tests.support.servers.stack import Stack
from tests.support.small_hudi_files import names, request, with_small_files

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.stretch("hive")]


def test_small_files_in_a_bucket_are_clustered_and_no_instant_is_cleaned(stack: Stack, namespace: str) -> None:
    stack.need("hive")
    lake, table = stack.lake("hive"), f"{namespace}.t"
    lake.sql(f"create schema {namespace}")
    with_small_files(lake, table)
    first = lake.history(table)[0]
    done = maintainer(lake).run(request(table)).actions
    assert [(action.action, action.state, action.files_after) for action in done] == [("cluster", "done", 1)], done
    lake.sql(f"update {table} set name = 'Eve' where id = 1")
    for engine in ("duckdb", "spark"):
        assert names(lake, table, engine=engine) == [(1, "Eve"), (2, "Bob")]
    cleaned = maintainer(lake, 60, keep_snapshots=1).run(request(table)).actions
    assert [(action.action, action.state) for action in cleaned] == [("expire", "skipped")]
    assert "a metastore registers it" in cleaned[0].detail
    assert names(lake, table, engine="spark", as_of=first.id) == [(1, "Ada")]
