"""Trino plans with the statistics that `lake maintain` keeps."""

from __future__ import annotations

import pyarrow
import pytest
from tests.support.damaged_tables import maintainer
from tests.support.light_runs import pyiceberg
from tests.support.servers.stack import Stack

from lakehouse.core.names import TableName
from lakehouse.core.requests import MaintainRequest
from lakehouse.lake import Lake

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.stretch("sql")]


def test_trino_reads_the_statistics_that_spark_computed(stack: Stack, namespace: str) -> None:
    stack.need("storage", "postgres", "rest", "trino")
    lake, table = stack.lake("sql"), f"{namespace}.t"
    theirs = pyiceberg(lake)
    theirs.create_namespace(namespace)
    rows = pyarrow.table({"id": range(1000), "x": [number % 7 for number in range(1000)]})
    theirs.create_table(table, schema=rows.schema).append(rows)
    theirs.close()
    assert distinct(lake, table) == {"id": None, "x": None}
    maintained = maintainer(lake, tables={namespace: {"statistics": "true"}})
    report = maintained.run(MaintainRequest((TableName.parse(table),), only=("statistics",)))
    assert [(action.action, action.state) for action in report.actions] == [("statistics", "done")]
    assert distinct(lake, table) == {"id": 1000.0, "x": 7.0}


def distinct(lake: Lake, table: str) -> dict[str, float | None]:
    """Trino's estimate of the number of distinct values of each column."""
    shown = lake.sql(f"show stats for {table}", engine="trino").rows()
    return {name: values for name, _, values, *_ in shown if name}
