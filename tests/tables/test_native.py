"""Every engine reads rows that DuckDB wrote and PyIceberg committed as if Spark had written them."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from lakehouse.lake import Lake

pytestmark = pytest.mark.spark

ROWS = """id,k,flag,n,d,ts,city
1,7,true,-5,2026-01-14,2026-01-14 10:00:00,Zürich/é=x
2,8,false,3,1969-12-31,1969-12-31 23:30:00,a b%20c
3,,,,,,
4,7,true,-5,2026-01-14,2026-01-14 11:00:00,"q""uote"
"""
NATIVE = {
    "": 1,
    "k": 3,
    "flag": 3,
    "d": 3,
    "city": 4,
    "hours(ts)": 4,
    "days(ts)": 3,
    "months(ts), k": 3,
    "years(d)": 3,
}
BY_SPARK = {"bucket(4, id)": 3, "truncate(3, city)": 4}


@pytest.mark.parametrize(("partition_by", "files"), [*NATIVE.items(), *BY_SPARK.items()])
def test_rows_are_in_their_partitions_and_all_engines_agree(
    shared_lake: Lake, tmp_path: Path, partition_by: str, files: int
) -> None:
    file, name = tmp_path / "rows.csv", f"native.t_{uuid.uuid4().hex}"
    file.write_text(ROWS)
    shared_lake.ingest(file, into=name, partition_by=partition_by)
    table = shared_lake.sql(f"select * from {name} order by id", engine="duckdb").to_arrow()
    assert table.equals(shared_lake.sql(f"select * from {name} order by id", engine="spark").to_arrow())
    assert table.column("city").to_pylist() == ["Zürich/é=x", "a b%20c", None, 'q"uote']
    assert shared_lake.describe(name).current.files_total == files  # type: ignore[union-attr]
    for engine in ("duckdb", "spark"):
        # A wrong partition value or bound would make a reader skip the file that holds the row.
        for condition in (
            "k = 8",
            "d < date '1970-01-01'",
            "ts < timestamp '1970-01-01'",
            "city = 'a b%20c'",
            "not flag",
        ):
            rows = shared_lake.sql(f"select id from {name} where {condition}", engine=engine).rows()
            assert [row[0] for row in rows] == [2], (engine, condition)
        rows = shared_lake.sql(f"select id from {name} where k is null and ts is null", engine=engine).rows()
        assert [row[0] for row in rows] == [3], engine


@pytest.mark.parametrize("partition_by", ["days(ts)", "city"])
def test_spark_changes_what_was_written_natively(shared_lake: Lake, tmp_path: Path, partition_by: str) -> None:
    file, name = tmp_path / "rows.csv", f"native.t_{uuid.uuid4().hex}"
    file.write_text(ROWS)
    shared_lake.ingest(file, into=name, partition_by=partition_by)
    shared_lake.sql(f"update {name} set n = 9 where id = 2")
    shared_lake.sql(f"delete from {name} where id = 4")
    file.write_text(ROWS.replace("1,7,", "5,7,").replace("2,8,", "6,8,").replace("3,,", "7,,").replace("4,7,", "8,7,"))
    shared_lake.ingest(file, into=name)
    rows = shared_lake.sql(f"select id, n from {name} order by id").rows()
    assert [tuple(row) for row in rows] == [(1, -5), (2, 9), (3, None), (5, -5), (6, 3), (7, None), (8, -5)]


def test_an_append_to_an_existing_table_starts_no_spark(tmp_path: Path, shared_lake: Lake) -> None:
    file, name = tmp_path / "rows.csv", f"native.t_{uuid.uuid4().hex}"
    file.write_text(ROWS)
    shared_lake.ingest(file, into=name)
    (tmp_path / "more.csv").write_text(ROWS.replace("city\n", "city\n9,1,true,1,2026-01-01,2026-01-01 00:00:00,Bern\n"))

    class UnusedSpark:
        def run(self, *_: object) -> None:
            raise AssertionError("Spark was used")

        prepare = run

    ingester = shared_lake._components.ingester("")
    object.__setattr__(ingester, "spark", UnusedSpark())
    from lakehouse.core.names import TableName
    from lakehouse.core.requests import IngestRequest

    report = ingester.run(IngestRequest((str(tmp_path / "more.csv"),), TableName.parse(name)))
    assert report.inserted == 5


CHANGED = """id,k,flag,n,d,ts,city
2,8,false,99,1969-12-31,2026-01-14 23:30:00,moved
9,1,true,1,2026-02-01,2026-02-01 00:00:00,new
1,7,true,-5,2026-01-14,2026-01-14 10:00:00,Zürich/é=x
"""


@pytest.mark.parametrize("partition_by", ["", "days(ts)", "city", "bucket(4, id)"])
@pytest.mark.parametrize(
    "before",
    [
        "",
        "alter table {t} set tblproperties ('write.merge.mode' = 'merge-on-read')",
        "alter table {t} add column extra int",
    ],
    ids=["plain", "merge-on-read", "evolved"],
)
def test_an_upsert_changes_what_differs_whoever_writes_it(
    shared_lake: Lake, tmp_path: Path, partition_by: str, before: str
) -> None:
    file, name = tmp_path / "rows.csv", f"native.t_{uuid.uuid4().hex}"
    file.write_text(ROWS)
    shared_lake.ingest(file, into=name, key=("id",), partition_by=partition_by)
    if before:
        shared_lake.sql(before.format(t=name))
    file.write_text(CHANGED)
    report = shared_lake.ingest(file, into=name)
    assert (report.inserted, report.updated, report.unchanged) == (1, 1, 1)
    assert len(shared_lake.history(name)) == 2
    expected = [(1, -5, "Zürich/é=x"), (2, 99, "moved"), (3, None, None), (4, -5, 'q"uote'), (9, 1, "new")]
    for engine in ("duckdb", "spark"):
        rows = shared_lake.sql(f"select id, n, city from {name} order by id", engine=engine).rows()
        assert [tuple(row) for row in rows] == expected, engine
        moved = shared_lake.sql(
            f"select id from {name} where ts >= timestamp '2026-01-14 23:00:00' order by id", engine=engine
        )
        assert [row[0] for row in moved.rows()] == [2, 9], engine


@pytest.mark.parametrize("partition_by", ["", "days(ts)"])
def test_every_data_file_on_disk_is_one_that_the_table_names(
    shared_lake: Lake, tmp_path: Path, partition_by: str
) -> None:
    name = f"native.t_{uuid.uuid4().hex}"
    for number, change in enumerate(
        [("", ""), ("1,7,", "5,7,"), ("2,8,", "2,9,")]
    ):  # a new table, an append, an upsert
        file = tmp_path / f"rows{number}.csv"
        file.write_text(ROWS.replace(*change))
        shared_lake.ingest(file, into=name, partition_by=partition_by, key=("id",))
    namespace, table = name.split(".")
    on_disk = {str(file) for file in (shared_lake.folder / "warehouse" / namespace / table).rglob("*.parquet")}
    named = shared_lake.sql(f"select file_path from {name}.all_data_files", engine="spark").rows()
    assert on_disk == {row[0].removeprefix("file://") for row in named}
