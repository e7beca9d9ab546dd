"""Compaction of what Spark wrote, and compaction on Spark."""

from __future__ import annotations

from dataclasses import replace

import pyarrow
import pytest
from tests.support.damaged_tables import before_publish, maintainer, opened
from tests.support.light_runs import pyiceberg

from lakehouse.core.names import TableName
from lakehouse.core.requests import MaintainRequest
from lakehouse.lake import Lake
from lakehouse.maintenance.sorting import overlap
from lakehouse.tables.rewrite import read_snapshot

pytestmark = pytest.mark.spark

MERGE_ON_READ = "tblproperties ('write.delete.mode' = 'merge-on-read', 'format-version' = '2')"


def ids(lake: Lake, table: str) -> list[int]:
    return [row[0] for row in lake.sql(f"select id from {table} order by id", engine="duckdb").rows()]


def test_deletes_of_spark_are_folded_in_without_it(shared_lake: Lake, namespace: str) -> None:
    table = f"{namespace}.t"
    shared_lake.sql(f"create table {table} (id int, day string) partitioned by (day) {MERGE_ON_READ}")
    shared_lake.sql(f"insert into {table} select id, 'mon' from range(0, 10)")
    shared_lake.sql(f"insert into {table} select id, 'tue' from range(10, 20)")
    shared_lake.sql(f"delete from {table} where id in (3, 13)")
    assert shared_lake.health(table)[0].delete_files == 2
    action = shared_lake.maintain(table).actions[0]
    assert (action.state, action.engine) == ("done", "local")
    left = [id for id in range(20) if id not in (3, 13)]
    assert ids(shared_lake, table) == left and shared_lake.health(table)[0].delete_files == 0
    spark = shared_lake.sql(f"select id from {table} order by id", engine="spark").rows()
    assert [row[0] for row in spark] == left
    shared_lake.sql(f"delete from {table} where id = 5")
    assert ids(shared_lake, table) == [id for id in left if id != 5], "Spark writes on what we compacted"


def test_a_policy_that_sorts_runs_on_spark_and_keeps_what_is_appended_meanwhile(
    shared_lake: Lake, namespace: str
) -> None:
    table = f"{namespace}.t"
    name = TableName.parse(table)
    shared_lake.sql(f"create table {table} (id int, x int, y int) tblproperties ('format-version' = '2')")
    for start in (0, 10):
        shared_lake.sql(f"insert into {table} select id, id % 3 as x, id % 5 as y from range({start}, {start + 10})")

    def append() -> None:
        held = pyiceberg(shared_lake).load_table(table)
        held.append(pyarrow.table({"id": [100], "x": [1], "y": [1]}, schema=held.schema().as_arrow()))

    maintained = maintainer(shared_lake, tables={namespace: {"sort": "zorder(x, y)"}})
    report = before_publish(maintained, append).run(MaintainRequest((name,), only=("compact",)))
    assert [(action.state, action.engine) for action in report.actions] == [("done", "spark")]
    assert ids(shared_lake, table) == [*range(20), 100]
    assert shared_lake.history(table)[-1].operation == "replace"


def test_a_decayed_order_is_sorted_again_once(shared_lake: Lake, namespace: str) -> None:
    table = f"{namespace}.t"
    shared_lake.sql(f"create table {table} (id int) tblproperties ('format-version' = '2')")
    held = pyiceberg(shared_lake).load_table(table)
    for start in (0, 1):
        held.append(pyarrow.table({"id": list(range(start, 20_000, 2))}, schema=held.schema().as_arrow()))
    # Both files are larger than what is small, so that their order alone is the reason; Spark writes two files again.
    maintained = maintainer(shared_lake, tables={namespace: {"sort": "id", "target_file_size": "32kB"}})
    request = MaintainRequest((TableName.parse(table),), only=("compact",))
    reason = maintained.run(replace(request, dry_run=True)).actions[0].detail
    report = maintained.run(request)
    assert [(action.state, action.engine) for action in report.actions] == [("done", "spark")]
    assert "overlap" in reason, "the order was the reason"
    iceberg_table = opened(shared_lake, table)
    assert overlap(iceberg_table, read_snapshot(iceberg_table), ["id"]) == 0, (
        "several files, each with a range of its own"
    )
    planned = maintained.run(replace(request, dry_run=True)).actions
    assert not [action for action in planned if "overlap" in action.detail], "the order is no reason any more"
    assert ids(shared_lake, table) == list(range(20_000))


def test_statistics_are_kept_where_a_policy_asks_for_them(shared_lake: Lake, namespace: str) -> None:
    lake, table = shared_lake, f"{namespace}.t"
    request = MaintainRequest((TableName.parse(table),), only=("statistics",))
    lake.sql(f"create table {table} (id int, x int) tblproperties ('format-version' = '2')")
    lake.sql(f"insert into {table} select id, id % 7 as x from range(0, 100)")
    assert maintainer(lake).run(request).actions == (), "not unless a policy says so"
    maintained = maintainer(lake, tables={namespace: {"statistics": "true"}})
    assert [action.state for action in maintained.run(replace(request, dry_run=True)).actions] == ["planned"]

    def append(rows: int) -> None:
        held = pyiceberg(lake).load_table(table)
        held.append(pyarrow.table({"id": [0] * rows, "x": [0] * rows}, schema=held.schema().as_arrow()))

    report = before_publish(maintained, lambda: append(5)).run(request)
    assert [(action.action, action.state, action.engine) for action in report.actions] == [
        ("statistics", "done", "spark")
    ]
    assert len(ids(lake, table)) == 105, "what was appended meanwhile stays"
    assert distinct(lake, table) == {"1": "100", "2": "7"}
    assert maintained.run(request).actions == (), "five rows more change little"
    append(50)
    assert [action.state for action in maintained.run(request).actions] == ["done"]
    assert len(opened(lake, table).metadata.statistics) == 2
    assert not lake.verify(table).damage
    assert [row[0] for row in lake.sql(f"select count(*) from {table}", engine="spark").rows()] == [155]


def distinct(lake: Lake, table: str) -> dict[str, str]:
    """The number of distinct values of each column, by its field id."""
    blobs = opened(lake, table).metadata.statistics[-1].blob_metadata
    return {str(blob.fields[0]): blob.properties["ndv"] for blob in blobs}
