"""`lake ingest` that changes the type of a column of the partitioning or sort order."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.ingest_fixture import IngestFixture
from tests.support.repetitions import repetitions

from lakehouse.core.errors import NotSupportedError

pytestmark = pytest.mark.spark


def test_a_sorted_column_can_become_text(fixture: IngestFixture) -> None:
    fixture.ingest("id,k\n1,5\n", "one.csv", sort_by="k DESC, id")
    report = fixture.ingest("id,k\n2,a\n", "two.csv")
    assert report.changes == ("column changed: k bigint -> string",)
    assert fixture.rows() == [(1, "5"), (2, "a")]
    info = fixture.lake.describe(fixture.table)
    assert info.sorting == ("k DESC NULLS LAST", "id ASC NULLS FIRST")
    assert info.properties["write.distribution-mode"] == "range"
    assert len(fixture.lake.history(fixture.table)) == 2


@pytest.mark.parametrize("field", ["k", "bucket(4, k)", "truncate(2, k)"])
def test_a_partition_column_can_become_text(fixture: IngestFixture, field: str) -> None:
    fixture.ingest("id,k,v\n1,5,a\n2,6,b\n", "one.csv", key=("id",), partition_by=f"{field}, bucket(2, id)")
    report = fixture.ingest("id,k\n2,6\n3,west\n", "two.csv")
    assert report.changes == ("column changed: k bigint -> string",)
    assert (report.inserted, report.updated, report.unchanged) == (1, 0, 1)
    assert sorted(fixture.lake.describe(fixture.table).partitioning) == sorted([field, "bucket(2, id)"])
    assert fixture.ingest("id,k\n1,5\n3,east\n", "three.csv").updated == 1
    now: list[tuple[Any, ...]] = [(1, "5", "a"), (2, "6", "b"), (3, "east", None)]
    first = fixture.lake.history(fixture.table)[0]
    for engine in ("duckdb", "spark"):
        query = f"SELECT * FROM {fixture.table} ORDER BY 1"
        assert fixture.lake.sql(query, engine=engine).rows() == now
        assert fixture.lake.sql(query, engine=engine, as_of=first.id).rows() == [(1, 5, "a"), (2, 6, "b")]
        chosen = f"SELECT id FROM {fixture.table} WHERE k = '5'"
        assert fixture.lake.sql(chosen, engine=engine).rows() == [(1,)]
    assert len(fixture.lake.history(fixture.table)) == 3


def test_a_rollback_over_a_changed_partition_column_is_read_by_both_engines(fixture: IngestFixture) -> None:
    fixture.ingest("id,k\n1,5\n", "one.csv", partition_by="k")
    fixture.ingest("id,k\n2,west\n", "two.csv")
    fixture.lake.rollback(fixture.table, fixture.lake.history(fixture.table)[0].id)
    for engine in ("spark", "duckdb"):
        assert fixture.lake.sql(f"SELECT * FROM {fixture.table}", engine=engine).rows() == [(1, "5")]


def test_days_of_a_column_that_becomes_text_are_dropped_and_reported(fixture: IngestFixture) -> None:
    fixture.ingest("id,ts\n1,2026-01-01 10:00:00\n", "one.csv", partition_by="days(ts), id", sort_by="ts")
    path = fixture.file("two.csv", "id,ts\n2,soon\n")
    changes = (
        "column changed: ts timestamp_ntz -> string",
        "no longer partitioned by days(ts)",
    )
    assert fixture.lake.ingest(path, into=fixture.table, dry_run=True).changes == changes
    assert fixture.lake.ingest(path, into=fixture.table).changes == changes
    info = fixture.lake.describe(fixture.table)
    assert (info.partitioning, info.sorting) == (("id",), ("ts ASC NULLS FIRST",))
    assert fixture.rows() == [(1, "2026-01-01 10:00:00"), (2, "soon")]


def test_a_replace_may_change_the_type_of_a_partition_column(fixture: IngestFixture) -> None:
    fixture.ingest("id,k\n1,5\n", "one.csv", partition_by="k")
    fixture.ingest("id,k\n2,west\n", "two.csv", mode="replace")
    assert (fixture.rows(), fixture.lake.describe(fixture.table).partitioning) == ([(2, "west")], ("k",))


def test_a_partition_column_cannot_change_its_type_while_updates_merge_on_read(fixture: IngestFixture) -> None:
    fixture.ingest("id,k\n1,5\n", "one.csv", partition_by="k")
    fixture.lake.sql(f"ALTER TABLE {fixture.table} SET TBLPROPERTIES ('write.update.mode' = 'merge-on-read')")
    with pytest.raises(NotSupportedError, match="merge on read") as caught:
        fixture.ingest("id,k\n2,west\n", "two.csv")
    fixture.lake.sql(caught.value.hint.removeprefix("First: "))
    fixture.ingest("id,k\n2,west\n", "two.csv")
    assert fixture.rows() == [(1, "5"), (2, "west")]


@pytest.mark.faults
def test_a_file_with_thousands_of_partitions_is_ingested(fixture: IngestFixture) -> None:
    count = repetitions(smoke=300, full=6000)  # with an open file each, 6,000 ran out of 6 GB
    lines = "".join(f"shop-{number % count:04},{number}\n" for number in range(2 * count))
    fixture.ingest("shop,n\n" + lines, partition_by="shop")
    totals = fixture.rows("count(*) AS a, count(DISTINCT shop) AS b, sum(n) AS c")
    assert totals == [(2 * count, count, sum(range(2 * count)))]


def test_a_hudi_table_says_that_it_has_no_partition_transforms(fixture: IngestFixture) -> None:
    with pytest.raises(NotSupportedError, match=r"not by transforms: days\(ts\)") as caught:
        fixture.ingest("id,ts\n1,2026-01-01 10:00:00\n", format="hudi", partition_by="days(ts)")
    assert "--partition-by" in caught.value.hint and "--format iceberg" in caught.value.hint
    assert not fixture.exists()
