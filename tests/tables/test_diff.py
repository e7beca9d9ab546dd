"""What changed between two moments: rows by key and without one, and the schema."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

import pyarrow
import pytest
from pyiceberg.catalog.sql import SqlCatalog as PyIceberg
from pyiceberg.expressions import EqualTo
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import DateType, IntegerType, LongType, NestedField, StringType, StructType

from lakehouse.core.errors import BadNameError, NoSuchTableError, NotSupportedError, WhenError
from lakehouse.lake import Lake

Open = Callable[[], Lake]


def batch(*rows: tuple[int | None, str | None]) -> pyarrow.Table:
    return pyarrow.table(
        {"id": pyarrow.array([row[0] for row in rows], pyarrow.int32()), "item": [row[1] for row in rows]},
        schema=pyarrow.schema([("id", pyarrow.int32()), ("item", pyarrow.string())]),
    )


@pytest.fixture
def changed(pyiceberg: PyIceberg) -> Table:
    """(1, tea) and (2, mate) first; then 1 is changed, 2 is gone, 3 is new."""
    table = pyiceberg.create_table("shop.t", schema=batch().schema)
    table.append(batch((1, "tea"), (2, "mate"), (9, None)))
    table.overwrite(batch((1, "coffee"), (3, "juice"), (9, None)))
    return table


def first_and_last(lake: Lake, name: str = "shop.t") -> tuple[str, str]:
    history = lake.history(name)
    return history[0].id, history[-1].id


def test_rows_are_matched_by_key(open_lake: Open, changed: Table) -> None:
    lake = open_lake()
    first, last = first_and_last(lake)
    diff = lake.diff("shop.t", first, key=["id"])
    assert (diff.added, diff.removed, diff.changed) == (1, 1, 1)
    assert (diff.start, diff.end, diff.key) == (first, last, ("id",))
    assert diff.rows.names == ["change", "id", "item"]
    assert diff.rows.rows() == [
        ("before", 1, "tea"),
        ("after", 1, "coffee"),
        ("removed", 2, "mate"),
        ("added", 3, "juice"),
    ]


def test_without_a_key_a_changed_row_is_removed_and_added(open_lake: Open, changed: Table) -> None:
    lake = open_lake()
    diff = lake.diff("shop.t", first_and_last(lake)[0])
    assert (diff.added, diff.removed, diff.changed, diff.key) == (2, 2, 0, ())
    assert sorted(diff.rows.rows()) == [
        ("added", 1, "coffee"),
        ("added", 3, "juice"),
        ("removed", 1, "tea"),
        ("removed", 2, "mate"),
    ]


def test_without_a_key_duplicates_count(open_lake: Open, pyiceberg: PyIceberg) -> None:
    table = pyiceberg.create_table("shop.t", schema=batch().schema)
    table.append(batch((1, "tea")))
    table.append(batch((1, "tea"), (1, "tea")))
    lake = open_lake()
    diff = lake.diff("shop.t", first_and_last(lake)[0])
    assert (diff.added, diff.removed) == (2, 0)


def test_backwards_is_the_other_way_round(open_lake: Open, changed: Table) -> None:
    lake = open_lake()
    first, last = first_and_last(lake)
    diff = lake.diff("shop.t", last, first, key=["id"])
    assert diff.rows.rows()[0] == ("before", 1, "coffee")
    assert (diff.added, diff.removed, diff.changed) == (1, 1, 1)


def test_between_a_moment_and_itself_nothing_changed(open_lake: Open, changed: Table) -> None:
    diff = open_lake().diff("shop.t", "now", "now", key=["id"])
    assert (diff.added, diff.removed, diff.changed, diff.rows.rows()) == (0, 0, 0, [])


def test_a_null_in_the_key_is_a_key(open_lake: Open, pyiceberg: PyIceberg) -> None:
    table = pyiceberg.create_table("shop.t", schema=batch().schema)
    table.append(batch((None, "tea")))
    table.overwrite(batch((None, "mate")))
    lake = open_lake()
    diff = lake.diff("shop.t", first_and_last(lake)[0], key=["id"])
    assert (diff.added, diff.removed, diff.changed) == (0, 0, 1)


def test_a_key_that_is_not_unique_is_refused(open_lake: Open, pyiceberg: PyIceberg) -> None:
    table = pyiceberg.create_table("shop.t", schema=batch().schema)
    table.append(batch((1, "tea"), (1, "mate"), (2, "tea"), (2, "tea"), (3, "tea")))
    with pytest.raises(NotSupportedError, match="id is not a key of shop.t: 2 of its values") as refused:
        open_lake().diff("shop.t", "now", "now", key=["id"])
    assert "id, item" in refused.value.hint


def test_all_columns_may_be_the_key(open_lake: Open, changed: Table) -> None:
    lake = open_lake()
    diff = lake.diff("shop.t", first_and_last(lake)[0], key=["id", "item"])
    assert (diff.added, diff.removed, diff.changed) == (2, 2, 0)


def test_the_tables_own_key_is_used(open_lake: Open, pyiceberg: PyIceberg) -> None:
    schema = Schema(
        NestedField(1, "id", IntegerType(), required=True),
        NestedField(2, "item", StringType(), required=False),
        identifier_field_ids=[1],
    )
    table = pyiceberg.create_table("shop.t", schema=schema)
    rows = pyarrow.schema([pyarrow.field("id", pyarrow.int32(), nullable=False), ("item", pyarrow.string())])
    table.append(pyarrow.Table.from_pylist([{"id": 1, "item": "tea"}], rows))
    table.overwrite(pyarrow.Table.from_pylist([{"id": 1, "item": "mate"}], rows))
    lake = open_lake()
    diff = lake.diff("shop.t", first_and_last(lake)[0])
    assert (diff.key, diff.changed) == (("id",), 1)


def test_all_rows_are_counted_and_some_are_shown(open_lake: Open, pyiceberg: PyIceberg) -> None:
    table = pyiceberg.create_table("shop.t", schema=batch().schema)
    table.append(batch((0, "x")))
    table.append(batch(*((number, "y") for number in range(1, 51))))
    lake = open_lake()
    diff = lake.diff("shop.t", first_and_last(lake)[0], key=["id"], limit=3)
    assert diff.added == 50
    assert [row[1] for row in diff.rows.rows()] == [1, 2, 3]


def test_a_change_of_the_schema_is_told(open_lake: Open, changed: Table) -> None:
    with changed.update_schema(allow_incompatible_changes=True) as update:
        update.add_column("price", LongType())
        update.update_column("id", LongType())
        update.delete_column("item")
    changed.append(
        pyarrow.table({"id": pyarrow.array([5], pyarrow.int64()), "price": pyarrow.array([7], pyarrow.int64())})
    )
    lake = open_lake()
    diff = lake.diff("shop.t", first_and_last(lake)[0], key=["id"])
    assert [column.name for column in diff.columns_added] == ["price"]
    assert [column.name for column in diff.columns_removed] == ["item"]
    assert [(old.type, new.type) for old, new in diff.columns_changed] == [("int", "bigint")]
    assert diff.rows.names == ["change", "id", "price", "item"]
    assert ("removed", 2, None, "mate") in diff.rows.rows()
    assert ("added", 5, 7, None) in diff.rows.rows()


DATE = date(2026, 1, 14)


@pytest.mark.parametrize("key", [["id"], []], ids=["keyed", "unkeyed"])
@pytest.mark.parametrize("backwards", [False, True], ids=["forwards", "backwards"])
def test_tables_are_compared_across_any_change_of_columns(
    open_lake: Open, pyiceberg: PyIceberg, key: list[str], backwards: bool
) -> None:
    old = pyarrow.schema([("id", pyarrow.int32()), ("n", pyarrow.int32()), ("gone", pyarrow.string())])
    old = old.append(pyarrow.field("other", pyarrow.int32())).append(pyarrow.field("old_name", pyarrow.date32()))
    table = pyiceberg.create_table("shop.t", schema=old)
    table.append(pyarrow.Table.from_pylist([{"id": 1, "n": 1, "gone": "x", "other": 5, "old_name": DATE}], old))
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.update_column("id", LongType())
        update.update_column("n", LongType())
        update.delete_column("gone")
        update.delete_column("other")
        update.rename_column("old_name", "new_name")
    with table.update_schema() as update:
        update.add_column("other", StringType())  # the same name with another type
        update.add_column("day", DateType())
        update.add_column("at", StructType(NestedField(90, "city", StringType(), required=False)))
    row = {"id": 2**40, "n": 2**40, "new_name": DATE, "other": "five", "day": DATE, "at": {"city": "Ulm"}}
    table.append(pyarrow.Table.from_pylist([row], table.schema().as_arrow()))
    lake = open_lake()
    first, last = first_and_last(lake)
    diff = lake.diff("shop.t", *((last, first) if backwards else (first, last)), key=key)
    # Row 1 has lost and got columns; without a key that is one row removed and one added.
    assert (diff.added + diff.removed, diff.changed) == ((1, 1) if key else (3, 0))
    rows = [dict(zip(diff.rows.names, values, strict=True)) for values in diff.rows.rows()]
    (new,) = [row for row in rows if row["id"] == 2**40]
    assert (new["n"], new["other"], new["day"], new["gone"]) == (2**40, "five", DATE, None)
    assert {row["gone"] for row in rows if row["id"] == 1} == {"x", None}
    assert {row["old_name"] for row in rows if row["id"] == 1} == {DATE, None}


@pytest.mark.parametrize("key", [["id"], []], ids=["keyed", "unkeyed"])
def test_a_number_that_became_text_is_compared_as_text(open_lake: Open, pyiceberg: PyIceberg, key: list[str]) -> None:
    table = pyiceberg.create_table("shop.t", schema=pyarrow.schema([("id", pyarrow.int32()), ("n", pyarrow.int32())]))
    table.append(pyarrow.table({"id": [1, 2], "n": [10, 20]}, schema=table.schema().as_arrow()))
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("n")
    with table.update_schema() as update:
        update.add_column("n", StringType())
    table.overwrite(pyarrow.table({"id": [1, 2], "n": ["ten", "20"]}, schema=table.schema().as_arrow()))
    lake = open_lake()
    diff = lake.diff("shop.t", first_and_last(lake)[0], key=key)
    names = ("before", "after") if key else ("removed", "added")
    assert sorted(diff.rows.rows()) == sorted([(names[0], 1, "10"), (names[1], 1, "ten")])


def test_a_column_added_without_a_write_changes_no_row(open_lake: Open, changed: Table) -> None:
    with changed.update_schema() as update:
        update.add_column("price", LongType())
    lake = open_lake()
    diff = lake.diff("shop.t", lake.history("shop.t")[-1].id, key=["id"])
    assert (diff.added, diff.removed, diff.changed) == (0, 0, 0)


@pytest.mark.parametrize("key", [["id"], []], ids=["keyed", "unkeyed"])
def test_a_table_may_have_a_column_called_change(open_lake: Open, pyiceberg: PyIceberg, key: list[str]) -> None:
    rows = pyarrow.table({"id": [1, 2], "change": ["added", "zero"]})
    table = pyiceberg.create_table("shop.t", schema=rows.schema)
    table.append(rows.slice(0, 1))
    table.append(rows.slice(1, 1))
    lake = open_lake()
    diff = lake.diff("shop.t", first_and_last(lake)[0], key=key)
    assert (diff.added, diff.removed) == (1, 0)
    assert diff.rows.rows() == [("added", 2, "zero")]
    assert len(set(diff.rows.names)) == 3
    assert diff.rows.names[2] == "change"


@pytest.mark.parametrize("key", [["nope"], ["id", "nope"]])
def test_an_unknown_key_names_the_columns(open_lake: Open, changed: Table, key: list[str]) -> None:
    with pytest.raises(BadNameError, match="nope is not a column") as refused:
        open_lake().diff("shop.t", "now", key=key)
    assert "id, item" in refused.value.hint


def test_a_key_may_be_written_in_any_case(open_lake: Open, changed: Table) -> None:
    lake = open_lake()
    diff = lake.diff("shop.t", first_and_last(lake)[0], key=["ID"])
    assert (diff.key, diff.changed) == (("id",), 1)


def test_a_wrong_moment_or_table_is_told(open_lake: Open, changed: Table) -> None:
    lake = open_lake()
    with pytest.raises(WhenError, match="did not exist yet"):
        lake.diff("shop.t", "2020-01-01", key=["id"])
    with pytest.raises(WhenError, match="is in the future"):
        lake.diff("shop.t", "now", (datetime.now(UTC) + timedelta(days=1)).isoformat(), key=["id"])
    with pytest.raises(NoSuchTableError):
        lake.diff("shop.tt", "now")


def test_a_delete_is_a_difference(open_lake: Open, changed: Table) -> None:
    changed.delete(EqualTo("id", 9))
    lake = open_lake()
    diff = lake.diff("shop.t", lake.history("shop.t")[-2].id, key=["id"])
    assert diff.rows.rows() == [("removed", 9, None)]
