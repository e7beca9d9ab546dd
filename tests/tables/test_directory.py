"""Tables by name, their description and their history, over tables that PyIceberg made."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pyarrow
import pytest
from pyiceberg.catalog.sql import SqlCatalog as PyIceberg
from pyiceberg.expressions import EqualTo
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform
from pyiceberg.types import (
    DecimalType,
    IntegerType,
    ListType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)

from lakehouse.core.errors import BadNameError, NoSuchTableError, TableError, TableExistsError, WhenError
from lakehouse.lake import Lake

Open = Callable[[], Lake]
IDS = pyarrow.schema([("id", pyarrow.int32())])


def ids(*numbers: int) -> pyarrow.Table:
    return pyarrow.table({"id": pyarrow.array(numbers, pyarrow.int32())})


def test_a_new_lake_has_no_tables(open_lake: Open) -> None:
    lake = open_lake()
    assert lake.tables() == []
    assert lake.dropped() == []
    with pytest.raises(NoSuchTableError) as refused:
        lake.table("crm.leads")
    assert refused.value.hint == "The lake is empty. Try: lake demo"


def test_a_table_is_described(open_lake: Open, pyiceberg: PyIceberg) -> None:
    schema = Schema(
        NestedField(1, "id", IntegerType(), required=True, doc="the key"),
        NestedField(2, "price", DecimalType(10, 2), required=False),
        NestedField(3, "at", TimestamptzType(), required=False),
        NestedField(4, "local", TimestampType(), required=False),
        NestedField(5, "tags", ListType(6, StringType()), required=False),
        NestedField(7, "more", MapType(8, StringType(), 9, IntegerType()), required=False),
        NestedField(10, "place", StructType(NestedField(11, "x", IntegerType(), required=False)), required=False),
        identifier_field_ids=[1],
    )
    spec = PartitionSpec(
        PartitionField(3, 1000, DayTransform(), "day"),
        PartitionField(1, 1001, BucketTransform(4), "bucket"),
        PartitionField(2, 1002, IdentityTransform(), "price"),
    )
    pyiceberg.create_table("shop.t", schema=schema, partition_spec=spec, properties={"owner": "ada"})
    info = open_lake().describe("shop.t")
    assert (str(info.name), info.format, info.current) == ("shop.t", "iceberg", None)
    assert {column.name: column.type for column in info.columns} == {
        "id": "int",
        "price": "decimal(10,2)",
        "at": "timestamp",
        "local": "timestamp_ntz",
        "tags": "array<string>",
        "more": "map<string,int>",
        "place": "struct<x:int>",
    }
    assert (info.columns[0].required, info.columns[0].comment) == (True, "the key")
    assert info.partitioning == ("days(at)", "bucket(4, id)", "price")
    assert info.key == ("id",)
    assert info.properties["owner"] == "ada"
    assert "warehouse/shop/t" in info.location


def test_the_history_tells_each_change(open_lake: Open, pyiceberg: PyIceberg) -> None:
    table = pyiceberg.create_table("shop.t", schema=IDS)
    lake = open_lake()
    assert lake.history("shop.t") == []
    started = datetime.now(UTC)
    table.append(ids(1, 2, 3), snapshot_properties={"lake.source": "orders.csv"})
    table.append(ids(4))
    table.delete(EqualTo("id", 1))
    history = lake.history("shop.t")
    assert [entry.operation for entry in history] == ["append", "append", "overwrite"]
    assert [entry.rows_total for entry in history] == [3, 4, 3]
    assert [entry.rows_added for entry in history][:2] == [3, 1]
    last = history[-1]
    assert (last.rows_removed or 0) - (last.rows_added or 0) == 1
    assert [entry.is_current for entry in history] == [False, False, True]
    assert history[0].source == "orders.csv"
    assert history[-1].refs == ("main",)
    assert abs((history[0].at - started).total_seconds()) < 60
    assert [entry.at for entry in history] == sorted(entry.at for entry in history)
    assert lake.describe("shop.t").current == history[-1]
    assert "<td>append</td>" in history._repr_html_()


def test_one_travels_by_id_time_tag_and_word(open_lake: Open, pyiceberg: PyIceberg) -> None:
    table = pyiceberg.create_table("shop.t", schema=IDS)
    table.append(ids(1))
    table.append(ids(2))
    lake = open_lake()
    first, second = lake.history("shop.t")
    table.manage_snapshots().create_tag(int(first.id), "opening").commit()
    assert lake.history("shop.t")[0].refs == ("opening",)
    for when, expected in [
        (first.id, [1]),
        ("opening", [1]),
        (first.at.isoformat(), [1]),
        (second.at.isoformat(), [1, 2]),
        ("now", [1, 2]),
        ("main", [1, 2]),
    ]:
        assert sorted(row[0] for row in lake.travel("shop.t", when)) == expected, when
    with pytest.raises(WhenError) as refused:
        lake.travel("shop.t", "closing")
    assert "opening" in refused.value.hint


def test_one_travels_to_the_schema_of_that_time(open_lake: Open, pyiceberg: PyIceberg) -> None:
    table = pyiceberg.create_table("shop.t", schema=IDS)
    table.append(ids(1))
    with table.update_schema() as update:
        update.rename_column("id", "number")
        update.add_column("note", StringType())
    lake = open_lake()
    now = lake.sql("select * from shop.t")
    assert (now.names, now.rows()) == (["number", "note"], [(1, None)])
    then = lake.travel("shop.t", lake.history("shop.t")[0].id)
    assert (then.names, then.rows()) == (["id"], [(1,)])


def test_a_table_without_a_snapshot_cannot_be_travelled_in(open_lake: Open, pyiceberg: PyIceberg) -> None:
    pyiceberg.create_table("shop.t", schema=IDS)
    with pytest.raises(WhenError, match="no snapshot yet"):
        open_lake().travel("shop.t", "now")


def test_after_a_rollback_history_tells_both(open_lake: Open, pyiceberg: PyIceberg) -> None:
    table = pyiceberg.create_table("shop.t", schema=IDS)
    table.append(ids(1))
    table.append(ids(2))
    lake = open_lake()
    first, second = lake.history("shop.t")
    table.manage_snapshots().set_current_snapshot(int(first.id)).commit()
    assert [entry.is_current for entry in lake.history("shop.t")] == [True, False]
    assert len(lake.sql("select * from shop.t")) == 1
    assert len(lake.travel("shop.t", second.id)) == 2
    assert len(lake.travel("shop.t", "now")) == 1


def test_a_handle_does_what_the_lake_does(open_lake: Open, pyiceberg: PyIceberg) -> None:
    pyiceberg.create_table("shop.t", schema=IDS).append(ids(1))
    table = open_lake().table("SHOP.T")
    assert table.read().rows() == [(1,)]
    assert table.describe().current == table.history()[0]
    assert table.diff("now", key=["id"]).added == 0
    assert "<td>1</td>" in table._repr_html_()
    table.drop()
    with pytest.raises(NoSuchTableError):
        table.read()


def test_a_dropped_table_comes_back(open_lake: Open, pyiceberg: PyIceberg) -> None:
    pyiceberg.create_table("shop.t", schema=IDS).append(ids(1))
    lake = open_lake()
    lake.drop("shop.t")
    assert (lake.tables(), lake.dropped()) == ([], ["shop.t"])
    with pytest.raises(NoSuchTableError):
        lake.drop("shop.t")
    assert str(lake.undrop("shop.t").name) == "shop.t"
    assert (len(lake.tables()), lake.dropped()) == (1, [])
    with pytest.raises(TableExistsError):
        lake.undrop("shop.t")


def test_what_was_not_dropped_cannot_come_back(open_lake: Open, pyiceberg: PyIceberg) -> None:
    pyiceberg.create_table("shop.t", schema=IDS)
    lake = open_lake()
    with pytest.raises(TableError) as refused:
        lake.undrop("shop.u")
    assert refused.value.hint == "No table was dropped."
    lake.drop("shop.t")
    with pytest.raises(TableError) as refused:
        lake.undrop("shop.u")
    assert refused.value.hint == "Dropped tables: shop.t."


def test_bringing_back_what_was_never_dropped_was_asked_wrongly(open_lake: Open) -> None:
    with pytest.raises(TableError) as refused:
        open_lake().undrop("shop.u")
    assert refused.value.is_user_error


@pytest.mark.parametrize("name", ["../x", "a;drop", "shop.\N{PILE OF POO}", "shop." + "x" * 200, "shop.'t'"])
def test_a_bad_name_is_refused_everywhere(shop: Lake, name: str) -> None:
    for ask in (shop.table, shop.describe, shop.history, shop.drop, shop.undrop):
        with pytest.raises(BadNameError):
            ask(name)
    with pytest.raises(BadNameError):
        shop.travel(name, "now")
    with pytest.raises(BadNameError):
        shop.diff(name, "now")
    with pytest.raises(BadNameError):
        shop.rollback(name, "now")


def test_an_unknown_table_names_the_nearest(shop: Lake) -> None:
    for ask in (shop.table, shop.describe, shop.history, shop.drop):
        with pytest.raises(NoSuchTableError) as refused:
            ask("shop.order")
        assert refused.value.nearest[0] == "shop.orders"
    with pytest.raises(NoSuchTableError):
        shop.rollback("shop.order", "now")
