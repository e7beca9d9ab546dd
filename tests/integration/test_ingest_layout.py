"""`lake ingest` into a table whose partitioning or sort order is made of a column that changes its type."""

from __future__ import annotations

from typing import Any

import pytest
from tests.desk import Desk

from lakehouse.core.errors import NotSupportedError

pytestmark = pytest.mark.spark


def test_a_sorted_column_can_become_text(desk: Desk) -> None:
    desk.ingest("id,k\n1,5\n", "one.csv", sort_by="k DESC, id")
    report = desk.ingest("id,k\n2,a\n", "two.csv")
    assert report.changes == ("column changed: k bigint -> string",)
    assert desk.rows() == [(1, "5"), (2, "a")]
    info = desk.lake.describe(desk.table)
    assert info.sorting == ("k DESC NULLS LAST", "id ASC NULLS FIRST")
    assert info.properties["write.distribution-mode"] == "range"
    assert len(desk.lake.history(desk.table)) == 2


@pytest.mark.parametrize("field", ["k", "bucket(4, k)", "truncate(2, k)"])
def test_a_partition_column_can_become_text(desk: Desk, field: str) -> None:
    desk.ingest("id,k,v\n1,5,a\n2,6,b\n", "one.csv", key=("id",), partition_by=f"{field}, bucket(2, id)")
    report = desk.ingest("id,k\n2,6\n3,west\n", "two.csv")
    assert report.changes == ("column changed: k bigint -> string",)
    assert (report.inserted, report.updated, report.unchanged) == (1, 0, 1)
    assert sorted(desk.lake.describe(desk.table).partitioning) == sorted([field, "bucket(2, id)"])
    assert desk.ingest("id,k\n1,5\n3,east\n", "three.csv").updated == 1
    now: list[tuple[Any, ...]] = [(1, "5", "a"), (2, "6", "b"), (3, "east", None)]
    first = desk.lake.history(desk.table)[0]
    for engine in ("duckdb", "spark"):
        query = f"SELECT * FROM {desk.table} ORDER BY 1"
        assert desk.lake.sql(query, engine=engine).rows() == now
        assert desk.lake.sql(query, engine=engine, as_of=first.id).rows() == [(1, 5, "a"), (2, 6, "b")]
        chosen = f"SELECT id FROM {desk.table} WHERE k = '5'"
        assert desk.lake.sql(chosen, engine=engine).rows() == [(1,)]
    assert len(desk.lake.history(desk.table)) == 3


def test_a_rollback_over_a_changed_partition_column_is_read_by_both_engines(desk: Desk) -> None:
    desk.ingest("id,k\n1,5\n", "one.csv", partition_by="k")
    desk.ingest("id,k\n2,west\n", "two.csv")
    desk.lake.rollback(desk.table, desk.lake.history(desk.table)[0].id)
    for engine in ("spark", "duckdb"):
        assert desk.lake.sql(f"SELECT * FROM {desk.table}", engine=engine).rows() == [(1, "5")]


def test_days_of_what_becomes_text_are_given_up_and_told(desk: Desk) -> None:
    desk.ingest("id,ts\n1,2026-01-01 10:00:00\n", "one.csv", partition_by="days(ts), id", sort_by="ts")
    path = desk.file("two.csv", "id,ts\n2,soon\n")
    told = (
        "column changed: ts timestamp_ntz -> string",
        "no longer partitioned by days(ts)",
    )
    assert desk.lake.ingest(path, into=desk.table, dry_run=True).changes == told
    assert desk.lake.ingest(path, into=desk.table).changes == told
    info = desk.lake.describe(desk.table)
    assert (info.partitioning, info.sorting) == (("id",), ("ts ASC NULLS FIRST",))
    assert desk.rows() == [(1, "2026-01-01 10:00:00"), (2, "soon")]


def test_a_replace_may_change_the_type_of_a_partition_column(desk: Desk) -> None:
    desk.ingest("id,k\n1,5\n", "one.csv", partition_by="k")
    desk.ingest("id,k\n2,west\n", "two.csv", mode="replace")
    assert (desk.rows(), desk.lake.describe(desk.table).partitioning) == ([(2, "west")], ("k",))


def test_files_partitioned_by_a_column_that_goes_are_not_left_in_the_table(desk: Desk) -> None:
    desk.ingest("id,k\n1,5\n", "one.csv", partition_by="k")
    desk.lake.sql(f"ALTER TABLE {desk.table} SET TBLPROPERTIES ('write.update.mode' = 'merge-on-read')")
    with pytest.raises(NotSupportedError, match="merged on read") as caught:
        desk.ingest("id,k\n2,west\n", "two.csv")
    desk.lake.sql(caught.value.hint.removeprefix("First: "))
    desk.ingest("id,k\n2,west\n", "two.csv")
    assert desk.rows() == [(1, "5"), (2, "west")]


def test_a_hudi_table_says_that_it_has_no_partition_transforms(desk: Desk) -> None:
    with pytest.raises(NotSupportedError, match=r"plain columns.*days\(ts\)") as caught:
        desk.ingest("id,ts\n1,2026-01-01 10:00:00\n", format="hudi", partition_by="days(ts)")
    assert "--partition-by" in caught.value.hint and "--format iceberg" in caught.value.hint
    assert not desk.exists()
