"""QueryRouter over tables that trip others: odd names, empty or damaged ones, those of another time, dropped ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyiceberg.catalog.sql import SqlCatalog as PyIceberg
from tests.support.run_statements import choice, rows

from lakehouse.core.errors import (
    NoSuchTableError,
    NotSupportedError,
    TableError,
    WhenError,
)
from lakehouse.lake import Lake


def test_all_tables_are_shown_without_a_namespace_and_without_spark(shop: Lake) -> None:
    result = shop.sql("show tables;")
    assert result.names == ["namespace", "tableName", "isTemporary"]
    assert ("shop", "orders", False) in result.rows()
    assert result.engine == "catalog"


# ---- namespaces and homes that trip others ----------------------------------------------------------------------


@pytest.mark.parametrize("namespace", ["temp", "memory", "information_schema", "system", "pg_catalog", "main"])
def test_a_namespace_may_be_called_what_duckdb_calls_its_own(
    open_lake: Any, pyiceberg: PyIceberg, namespace: str
) -> None:
    ids = pyarrow.table({"id": pyarrow.array([1], pyarrow.int32())})
    pyiceberg.create_namespace(namespace)
    for name in (f"{namespace}.t", f"{namespace}.u", "shop.t"):
        pyiceberg.create_table(name, schema=ids.schema).append(ids)
    lake = open_lake()
    assert rows(lake, f"select * from {namespace}.t") == [(1,)]
    assert rows(lake, f"select {namespace}.t.id, u.id from {namespace}.t, lake.{namespace}.u") == [(1, 1)]
    assert rows(lake, f"select lake.shop.t.id from shop.t join {namespace}.t x on x.id = shop.t.id") == [(1,)]
    assert rows(lake, f"select {namespace}.t.id from {namespace}.t version as of 'main'") == [(1,)]


def test_a_table_at_another_time_may_be_named_in_full(shop: Lake) -> None:
    assert rows(shop, "select shop.orders.id from shop.orders version as of 'main' where shop.orders.id = 1") == [(1,)]


def test_an_unnamed_list_of_values_has_sparks_names(shop: Lake) -> None:
    for sql in (
        "values (1, 'a'), (2, 'b')",
        "select * from values (1, 'a'), (2, 'b')",
        "select t.* from values (1, 'a'), (2, 'b') t",
    ):
        result = shop.sql(sql, engine="duckdb")
        assert (result.names, result.rows()) == (["col1", "col2"], [(1, "a"), (2, "b")])
    assert shop.sql("select * from values (1), (2) as t(x)", engine="duckdb").names == ["x"]


@pytest.mark.xfail(
    strict=True, raises=NoSuchTableError, reason="core/names.py: names are folded, the catalog's are not"
)
def test_a_table_that_others_made_in_upper_case_is_found(open_lake: Any, pyiceberg: PyIceberg) -> None:
    pyiceberg.create_table("shop.Orders", schema=pyarrow.schema([("id", pyarrow.int32())]))
    lake = open_lake()
    assert [str(info.name) for info in lake.tables()] == ["shop.Orders"]
    assert rows(lake, "select * from shop.Orders") == []


def test_a_home_may_have_a_space_in_its_name(tmp_path: Path) -> None:
    from lakehouse.catalogs.sql import SqlCatalog, open_database
    from lakehouse.config.load import load_settings
    from lakehouse.lake.assemble import assemble

    home = tmp_path / "my lake"
    with assemble(load_settings({"home": home}, environ={})) as lake:
        ours = SqlCatalog(open_database(home / "catalog.db"), f"file://{home}/warehouse")
        theirs = PyIceberg("lake", **ours.pyiceberg_properties())
        theirs.create_namespace("shop")
        theirs.create_table("shop.t", schema=pyarrow.schema([("id", pyarrow.int32())]))
        theirs.close()
        assert rows(lake, "select count(*) from shop.t") == [(0,)]
        assert any((home / "warehouse").iterdir())
    assert [entry.name for entry in tmp_path.iterdir()] == ["my lake"]


def test_metadata_that_is_gone_is_told_of(open_lake: Any, pyiceberg: PyIceberg) -> None:
    table = pyiceberg.create_table("shop.t", schema=pyarrow.schema([("id", pyarrow.int32())]))
    Path(table.metadata_location.removeprefix("file://")).unlink()
    with pytest.raises(TableError, match="cannot be read") as refused:
        rows(open_lake(), "select * from shop.t")
    assert "restore" in refused.value.hint


def test_metadata_that_is_damaged_is_told_of(open_lake: Any, pyiceberg: PyIceberg) -> None:
    table = pyiceberg.create_table("shop.t", schema=pyarrow.schema([("id", pyarrow.int32())]))
    Path(table.metadata_location.removeprefix("file://")).write_text('{"format-version": 2, "loc')
    with pytest.raises(TableError):
        rows(open_lake(), "select * from shop.t")


def test_one_broken_table_does_not_hide_the_others(open_lake: Any, pyiceberg: PyIceberg) -> None:
    for name in ("shop.good", "shop.bad"):
        table = pyiceberg.create_table(name, schema=pyarrow.schema([("id", pyarrow.int32())]))
    Path(table.metadata_location.removeprefix("file://")).unlink()
    assert "shop.good" in [str(info.name) for info in open_lake().tables()]


# ---- empty tables, and as of ------------------------------------------------------------------------------------


def test_a_table_without_a_row_has_its_columns(open_lake: Any, pyiceberg: PyIceberg) -> None:
    kinds = [("id", pyarrow.int32()), ("at", pyarrow.timestamp("us", "UTC")), ("d", pyarrow.decimal128(10, 2))]
    kinds += [("tags", pyarrow.list_(pyarrow.string())), ("b", pyarrow.binary()), ("f", pyarrow.float32())]
    pyiceberg.create_table("shop.empty", schema=pyarrow.schema(kinds))
    result = open_lake().sql("select * from shop.empty")
    assert result.names == ["id", "at", "d", "tags", "b", "f"]
    assert result.rows() == []


def test_a_query_can_be_asked_as_of_a_moment(open_lake: Any, pyiceberg: PyIceberg) -> None:
    table = pyiceberg.create_table("shop.t", schema=pyarrow.schema([("id", pyarrow.int32())]))
    for number in range(3):
        table.append(pyarrow.table({"id": pyarrow.array([number], pyarrow.int32())}))
    lake = open_lake()
    first, second, third = lake.history("shop.t")
    count = "select count(*) from shop.t"
    assert rows(lake, count) == [(3,)]
    assert rows(lake, count, as_of=first.id) == [(1,)]
    assert rows(lake, count, as_of=second.at.isoformat()) == [(2,)]
    assert rows(lake, f"{count} version as of {first.id}") == [(1,)]
    assert rows(lake, f"{count} version as of {first.id}", as_of=second.id) == [(1,)]
    joined = f"select count(*) from shop.t a join shop.t version as of {second.id} b on a.id = b.id"
    assert rows(lake, joined) == [(2,)]
    assert rows(lake, f"select t.id from shop.t version as of {first.id} where t.id = 0") == [(0,)]
    assert choice(lake, count, as_of=third.id)[0] == "duckdb"
    with pytest.raises(WhenError) as refused:
        rows(lake, count, as_of="2020-01-01")
    assert first.id in refused.value.hint


def test_nobody_reads_stale_data(open_lake: Any, pyiceberg: PyIceberg) -> None:
    table = pyiceberg.create_table("shop.t", schema=pyarrow.schema([("id", pyarrow.int32())]))
    lake = open_lake()
    for number in range(3):
        assert rows(lake, "select count(*) from shop.t") == [(number,)]
        table.append(pyarrow.table({"id": pyarrow.array([number], pyarrow.int32())}))


# ---- drop in SQL ------------------------------------------------------------------------------------------------


def test_drop_table_in_sql_can_be_undone(open_lake: Any, pyiceberg: PyIceberg) -> None:
    table = pyiceberg.create_table("shop.t", schema=pyarrow.schema([("id", pyarrow.int32())]))
    table.append(pyarrow.table({"id": pyarrow.array([1], pyarrow.int32())}))
    lake = open_lake()
    result = lake.sql("drop table shop.t")
    assert (result.engine, result.rows(), result.to_arrow().num_rows) == ("catalog", [], 0)
    assert lake.tables() == []
    assert lake.undrop("shop.t").current.rows_total == 1
    assert rows(lake, "select count(*) from shop.t") == [(1,)]


def test_drop_table_of_nothing_is_an_error_unless_told_otherwise(open_lake: Any, pyiceberg: PyIceberg) -> None:
    lake = open_lake()
    with pytest.raises(NoSuchTableError):
        lake.sql("drop table shop.nothing")
    assert lake.sql("drop table if exists shop.nothing").rows() == []


@pytest.mark.parametrize("sql", ["drop table shop.t purge", "DROP TABLE IF EXISTS shop.t PURGE;"])
def test_purge_is_refused_and_nothing_dropped(open_lake: Any, pyiceberg: PyIceberg, sql: str) -> None:
    pyiceberg.create_table("shop.t", schema=pyarrow.schema([("id", pyarrow.int32())]))
    lake = open_lake()
    with pytest.raises(NotSupportedError, match="PURGE") as refused:
        lake.sql(sql)
    assert "undrop" in refused.value.hint
    assert [str(info.name) for info in lake.tables()] == ["shop.t"]


@pytest.mark.parametrize(
    ("table", "sql"),
    [
        pytest.param("shop.t", "drop table shop.t purge -- for good", id="a-comment-behind-it"),
        pytest.param("default.purge", "drop table purge", id="a-table-of-that-name"),
    ],
)
def test_purge_is_what_the_statement_says_and_not_its_last_word(
    open_lake: Any, pyiceberg: PyIceberg, table: str, sql: str
) -> None:
    pyiceberg.create_namespace("default")
    pyiceberg.create_table(table, schema=pyarrow.schema([("id", pyarrow.int32())]))
    lake = open_lake()
    if table == "shop.t":
        with pytest.raises(NotSupportedError):
            lake.sql(sql)
    else:
        lake.sql(sql)
        assert lake.dropped() == [table]
