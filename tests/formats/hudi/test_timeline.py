"""What the instants of a Hudi timeline say about rows and files, without a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse import open_lake
from lakehouse.core.tables import REPLACE
from lakehouse.formats.hudi.timeline import (
    Instant,
    avro_type,
    changes_since,
    columns_of,
    files_with_rows,
    open_table,
    snapshots,
)


def stat(file: str, rows: int, inserts: int = 0, updates: int = 0, deletes: int = 0) -> dict[str, Any]:
    return {
        "fileId": file,
        "numWrites": rows,
        "fileSizeInBytes": rows * 10,
        "numInserts": inserts,
        "numUpdateWrites": updates,
        "numDeletes": deletes,
    }


def commit(time: str, operation: str, *stats: dict[str, Any], replaced: tuple[str, ...] = (), **notes: str) -> Instant:
    metadata: dict[str, Any] = {"operationType": operation, "partitionToWriteStats": {"": list(stats)}}
    metadata["partitionToReplaceFileIds"] = {"": list(replaced)}
    metadata["extraMetadata"] = {f"hoodie.lake.{name}": value for name, value in notes.items()}
    return Instant(time, "commit", metadata)


TIMELINE = [
    commit("20260114100000000", "BULK_INSERT", stat("a", 3, inserts=3), stat("b", 2, inserts=2), source="one.csv"),
    commit("20260114110000000", "UPSERT", stat("a", 3, inserts=0, updates=1), stat("c", 1, inserts=1)),
    commit("20260114120000000", "DELETE", stat("b", 0, deletes=2)),
    commit("20260114130000000", "CLUSTER", stat("d", 4), replaced=("a", "c")),
    commit("20260114140000000", "INSERT_OVERWRITE_TABLE", stat("e", 1, inserts=1), replaced=("b", "d")),
]


def test_each_instant_has_the_rows_that_it_added_and_removed_and_the_total_after_it() -> None:
    read = snapshots(TIMELINE)
    assert [
        (snapshot.operation, snapshot.rows_added, snapshot.rows_removed, snapshot.rows_total) for snapshot in read
    ] == [
        ("append", 5, 0, 5),
        ("upsert", 2, 1, 6),
        ("delete", 0, 2, 4),
        (REPLACE, 0, 4, 4),
        ("insert_overwrite", 1, 4, 1),
    ]


def test_instants_follow_each_other_and_the_last_one_is_current() -> None:
    read = snapshots(TIMELINE)
    assert [snapshot.parent for snapshot in read] == ["", *(snapshot.id for snapshot in read[:-1])]
    assert [snapshot.is_current for snapshot in read] == [False, False, False, False, True]
    assert (read[0].source, dict(read[0].notes)) == ("one.csv", {"source": "one.csv"})
    assert snapshots([]) == []


@pytest.mark.parametrize(("count", "files"), [(0, 0), (1, 2), (2, 3), (3, 2), (4, 1), (5, 1)])
def test_files_without_rows_do_not_count(count: int, files: int) -> None:
    assert files_with_rows(TIMELINE[:count]) == files


@pytest.mark.parametrize(
    ("avro", "spark"),
    [
        ("long", "bigint"),
        (["null", "string"], "string"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}, "decimal(10,2)"),
        ({"type": "long", "logicalType": "timestamp-micros"}, "timestamp"),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, "timestamp_ntz"),
        ({"type": "int", "logicalType": "date"}, "date"),
        ({"type": "array", "items": ["null", "long"]}, "array<bigint>"),
        ({"type": "map", "values": "double"}, "map<string,double>"),
        ({"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]}, "struct<a:int>"),
    ],
)
def test_avro_types_are_written_as_spark_writes_them(avro: Any, spark: str) -> None:
    assert avro_type(avro) == spark


_POINT = {"type": "record", "name": "point", "fields": [{"name": "x", "type": "long"}]}
#: As other programs write it: the second column has the type of the first by its name.
_REFERENCE = {"type": "record", "name": "shop", "namespace": "own", "fields": []}
_REFERENCE["fields"] = [
    {"name": "id", "type": "long"},
    {"name": "from", "type": ["null", _POINT]},
    {"name": "to", "type": ["null", "own.point"]},
    {"name": "via", "type": {"type": "array", "items": "point"}},
]


def make_table(folder: Path, schema: dict[str, Any]) -> None:
    """A table of one commit, in Hudi's own layout."""
    time, file = "20260114100000000", "0a1b2c3d-0000-0000-0000-000000000000-0"
    timeline = folder / ".hoodie"
    timeline.mkdir(parents=True)
    properties = ["name=shop", "type=COPY_ON_WRITE", "version=6", "base.file.format=PARQUET", "recordkey.fields=id"]
    lines = [*(f"hoodie.table.{line}" for line in properties), "hoodie.timeline.layout.version=1"]
    (timeline / "hoodie.properties").write_text("\n".join(lines))
    points = pa.array([{"x": 5}], pa.struct([("x", pa.int64())]))
    path = folder / f"{file}_0-1-1_{time}.parquet"
    pq.write_table(pa.table({"id": [7], "from": points, "to": points, "via": [[{"x": 5}]]}), path)
    written = {**stat(file, 1, inserts=1), "path": path.name, "fileSizeInBytes": path.stat().st_size}
    written |= {"prevCommit": "null", "partitionPath": ""}
    metadata = {"operationType": "INSERT", "partitionToWriteStats": {"": [written]}}
    for name in (f"{time}.commit.requested", f"{time}.inflight"):
        (timeline / name).touch()
    (timeline / f"{time}.commit").write_text(
        json.dumps({**metadata, "extraMetadata": {"schema": json.dumps(schema)}, "compacted": False})
    )


def test_a_type_by_its_name_is_read_although_hudi_rs_panics(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with open_lake(home=tmp_path / "lake") as lake:
        folder = lake.folder / "warehouse" / "shop" / "routes"
        make_table(folder, _REFERENCE)
        with pytest.raises(BaseException, match="AvroSchema::Ref") as panic:
            open_table(str(folder), {}).get_file_slices()
        assert type(panic.value).__name__ == "PanicException", "if it no longer panics, this test needs another type"
        capfd.readouterr()
        types = {column.name: column.type for column in lake.describe("shop.routes").columns}
        assert types == {
            "id": "bigint",
            "from": "struct<x:bigint>",
            "to": "struct<x:bigint>",
            "via": "array<struct<x:bigint>>",
        }
        assert lake.sql("select id, `to`.x from shop.routes").rows() == [(7, 5)]
        assert lake.verify().damage == []
    assert "panicked" not in capfd.readouterr().err


def test_hudis_own_columns_are_left_out() -> None:
    fields = [{"name": "_hoodie_commit_time", "type": "string"}, {"name": "id", "type": ["null", "long"]}]
    assert [(column.name, column.required) for column in columns_of(json.dumps({"fields": fields}))] == [("id", False)]


@pytest.mark.parametrize(
    ("commits", "effects", "text"),
    [
        pytest.param(1, "insert", "", id="an ingest, not the statement"),
        pytest.param(2, "insert update", "1 row inserted, 1 updated", id="an upsert"),
        pytest.param(3, "delete", "2 rows deleted", id="a delete"),
        pytest.param(5, "insert overwrite", "1 row inserted, deleted rows not counted", id="an overwrite"),
    ],
)
def test_a_commit_says_how_many_rows_it_changed(commits: int, effects: str, text: str) -> None:
    before = TIMELINE[commits - 2].id if commits > 1 else ""
    assert str(changes_since(TIMELINE[:commits], before, set(effects.split()))) == text


def test_several_commits_say_nothing() -> None:
    assert str(changes_since(TIMELINE, TIMELINE[2].id, {"insert"})) == ""
