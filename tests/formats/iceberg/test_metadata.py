"""What we read from a metadata file is what PyIceberg, which wrote it, reads from it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField, SortOrder
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, TruncateTransform
from pyiceberg.types import (
    DecimalType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)

from lakehouse.core.errors import TableError
from lakehouse.core.format import MARK
from lakehouse.core.result import RowChanges
from lakehouse.formats.iceberg.metadata import Metadata, read_metadata, row_changes, spark_type

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "at", TimestamptzType(), required=False, doc="when it happened"),
    NestedField(3, "city", StringType(), required=False),
    identifier_field_ids=[1],
)


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqlCatalog]:
    (tmp_path / "warehouse").mkdir()
    catalog = SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/warehouse")
    with closing(catalog):
        catalog.create_namespace("n")
        yield catalog


def metadata_of(table: Any) -> Metadata:
    return read_metadata(table.metadata_location)


def rows(*ids: int) -> pyarrow.Table:
    schema = SCHEMA.as_arrow()
    return pyarrow.Table.from_pylist([{"id": number, "at": None, "city": "Bern"} for number in ids], schema=schema)


def test_a_new_table_has_columns_and_a_key_and_no_snapshot(catalog: SqlCatalog) -> None:
    metadata = metadata_of(catalog.create_table("n.t", SCHEMA))
    described = [(column.name, column.type, column.required, column.comment) for column in metadata.columns()]
    assert described == [
        ("id", "bigint", True, ""),
        ("at", "timestamp", False, "when it happened"),
        ("city", "string", False, ""),
    ]
    assert metadata.key() == ("id",)
    assert (metadata.current_id, metadata.snapshots(), metadata.snapshot_ids()) == ("", [], [])


def test_snapshots_are_those_that_pyiceberg_wrote(catalog: SqlCatalog) -> None:
    table = catalog.create_table("n.t", SCHEMA)
    table.append(rows(1, 2, 3), {"lake.source": "a.csv", "other": "x"})
    table.delete("id = 2")
    table.append(rows(4))
    table.manage_snapshots().create_tag(table.history()[0].snapshot_id, "first").commit()
    read, metadata = table.refresh().snapshots(), metadata_of(table.refresh())
    snapshots = metadata.snapshots()
    assert [snapshot.id for snapshot in snapshots] == [str(snapshot.snapshot_id) for snapshot in read]
    assert [snapshot.parent for snapshot in snapshots] == [str(snapshot.parent_snapshot_id or "") for snapshot in read]
    assert [snapshot.rows_total for snapshot in snapshots] == [3, 2, 3]
    assert [snapshot.is_current for snapshot in snapshots] == [False, False, True]
    assert (snapshots[0].source, dict(snapshots[0].notes), snapshots[0].refs) == (
        "a.csv",
        {"source": "a.csv"},
        ("first",),
    )
    assert metadata.snapshot(snapshots[1].id) == snapshots[1]
    assert metadata.snapshot("7") is None
    assert [number for number, _ in metadata.log()] == [str(entry.snapshot_id) for entry in table.history()]


def test_partitions_and_sort_order_are_written_as_one_would_write_them(catalog: SqlCatalog) -> None:
    spec = PartitionSpec(
        PartitionField(2, 1000, DayTransform(), "at_day"),
        PartitionField(1, 1001, BucketTransform(4), "id_bucket"),
        PartitionField(3, 1002, TruncateTransform(2), "city_trunc"),
    )
    order = SortOrder(
        SortField(3, IdentityTransform(), SortDirection.DESC, NullOrder.NULLS_FIRST),
        SortField(1, BucketTransform(8), SortDirection.ASC, NullOrder.NULLS_LAST),
    )
    metadata = metadata_of(catalog.create_table("n.t", SCHEMA, partition_spec=spec, sort_order=order))
    assert metadata.partitioning() == ("days(at)", "bucket(4, id)", "truncate(2, city)")
    assert metadata.sorting() == ("city DESC NULLS FIRST", "bucket(8, id) ASC NULLS LAST")


def test_a_snapshot_has_the_columns_of_its_time(catalog: SqlCatalog) -> None:
    table = catalog.create_table("n.t", SCHEMA)
    table.append(rows(1))
    with table.update_schema() as update:
        update.rename_column("city", "place")
        update.add_column("note", StringType())
    table.append(pyarrow.Table.from_pylist([{"id": 2}], schema=table.schema().as_arrow()))
    metadata = metadata_of(table)
    first, second = metadata.snapshot_ids()
    assert [column.name for column in metadata.columns(first)] == ["id", "at", "city"]
    assert [column.name for column in metadata.columns(second)] == ["id", "at", "place", "note"]
    assert metadata.same_columns(second)
    assert metadata.same_columns(first)  # a renamed column keeps its id
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("note")
    with table.update_schema() as update:
        update.add_column("note", LongType())
    assert not metadata_of(table).same_columns(second)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (DecimalType(10, 2), "decimal(10,2)"),
        (TimestampType(), "timestamp_ntz"),
        (ListType(1, LongType()), "array<bigint>"),
        (MapType(1, StringType(), 2, ListType(3, TimestamptzType())), "map<string,array<timestamp>>"),
        (StructType(NestedField(1, "a", LongType()), NestedField(2, "b", StringType())), "struct<a:bigint,b:string>"),
    ],
    ids=str,
)
def test_types_are_written_as_spark_writes_them(kind: Any, expected: str) -> None:
    dumped = kind.model_dump(mode="json")
    assert spark_type(dumped) == expected


def test_a_missing_file_says_what_points_at_it(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"00001\.metadata\.json, which cannot be read"):
        read_metadata(f"file://{tmp_path}/00001.metadata.json")


@pytest.mark.parametrize(
    ("effects", "added", "removed", "marked", "text"),
    [
        pytest.param("insert", 3, 0, 0, "3 rows inserted", id="an append"),
        pytest.param("insert overwrite", 3, 5, 0, "3 rows inserted, 5 deleted", id="an overwrite"),
        pytest.param("delete", 0, 5, 0, "5 rows deleted", id="whole files"),
        pytest.param("delete", 999, 1000, 0, "1 row deleted", id="a delete that copies rows"),
        pytest.param("delete", 0, 0, 2, "2 rows deleted", id="a delete that marks rows"),
        pytest.param("update", 1000, 1000, 0, "", id="an update among copies"),
        pytest.param("update", 2, 0, 2, "2 rows updated", id="an update that marks rows"),
        pytest.param("insert update", 5, 3, 0, "2 rows inserted, updated rows not counted", id="a merge among copies"),
        pytest.param("insert update", 5, 0, 3, "2 rows inserted, 3 updated", id="a merge that marks rows"),
        pytest.param("insert delete", 5, 0, 3, "5 rows inserted, 3 deleted", id="a merge that marks deleted rows"),
        pytest.param("insert delete", 5, 3, 0, "", id="copies, new and deleted rows"),
        pytest.param("insert update delete", 5, 0, 3, "", id="a merge that does everything"),
        pytest.param("update", 0, 0, 0, "0 rows affected", id="nothing"),
    ],
)
def test_rows_are_counted_only_where_the_summary_tells(
    effects: str, added: int, removed: int, marked: int, text: str
) -> None:
    assert str(row_changes(frozenset(effects.split()), added, removed, marked)) == text


def test_a_commit_after_others_is_not_counted(catalog: SqlCatalog) -> None:
    table = catalog.create_table("n.counted", SCHEMA)
    rows = pyarrow.Table.from_pylist([{"id": 1, "at": None, "city": "Rome"}], schema=table.schema().as_arrow())
    before = [""]
    for _ in range(2):
        table.append(rows)
        before.append(str(table.current_snapshot().snapshot_id))  # type: ignore[union-attr]
    metadata = metadata_of(table)
    said = [str(metadata.changes_since(snapshot, {"insert"}, "")) for snapshot in before]
    assert said == ["", "1 row inserted", "0 rows affected"]
    table.delete("id = 1")  # whole files
    assert str(metadata_of(table).changes_since(before[-1], {"delete"}, "")) == "2 rows deleted"


@pytest.mark.parametrize(
    ("effects", "engine", "notes"),
    [
        pytest.param("update", "", {}, id="an append is no update"),
        pytest.param("delete", "", {}, id="an append is no delete"),
        pytest.param("insert", "spark", {}, id="of another engine"),
        pytest.param("insert", "", {"lake.source": "a.csv"}, id="of an ingest"),
    ],
)
def test_a_statement_that_committed_nothing_does_not_count_the_commit_of_another(
    catalog: SqlCatalog, effects: str, engine: str, notes: dict[str, str]
) -> None:
    table = catalog.create_table_if_not_exists("n.of_another", SCHEMA)
    before = str(table.metadata.current_snapshot_id or "")
    rows = pyarrow.Table.from_pylist([{"id": 1, "at": None, "city": "Rome"}], schema=table.schema().as_arrow())
    table.append(rows, snapshot_properties=notes)
    metadata = metadata_of(table)
    assert metadata.changes_since(before, set(effects.split()), engine) == RowChanges()
    if not notes:
        assert str(metadata.changes_since(before, {"insert"}, "")) == "1 row inserted"


def test_the_commit_of_a_statement_is_known_by_its_mark(catalog: SqlCatalog) -> None:
    """Of two appends at once, the one that committed nothing must not take the count of the other."""
    table = catalog.create_table_if_not_exists("n.marked", SCHEMA)
    before = str(table.metadata.current_snapshot_id or "")
    rows = pyarrow.Table.from_pylist([{"id": 1, "at": None, "city": "Rome"}], schema=table.schema().as_arrow())
    table.append(rows, snapshot_properties={MARK: "ours"})
    metadata = metadata_of(table)
    said = [str(metadata.changes_since(before, {"insert"}, "", mark)) for mark in ("ours", "other", "")]
    assert said == ["1 row inserted", "", ""]
