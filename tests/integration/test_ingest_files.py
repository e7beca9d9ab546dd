"""Files as people have them: nested values, names in any language, no rows, no key, in both formats, with a real Spark."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.ingest_fixture import IngestFixture, both_formats, counts

from lakehouse.core.errors import NoSuchColumnError
from lakehouse.core.requests import ReadOptions

pytestmark = pytest.mark.spark

ORDERS = [
    {
        "id": 1,
        "Größe": 1.5,
        "customer": {"name": "Ann", "café": 7},
        "items": [{"sku": "a", "n": 1}, {"sku": "b", "n": 2}],
    },
    {"id": 2, "Größe": None, "customer": None, "items": []},
]
NESTED = {"customer": "struct<name:string,café:bigint>", "items": "array<struct<sku:string,n:bigint>>"}


def rows(fixture: IngestFixture, engine: str) -> list[tuple[Any, ...]]:
    values = fixture.lake.sql(f"SELECT id, `größe`, customer, items FROM {fixture.table} ORDER BY id", engine=engine)
    return values.rows()


@both_formats
def test_a_json_array_with_nested_values_and_unicode_names_is_a_table(
    fixture: IngestFixture, table_format: str
) -> None:
    fixture.ingest(json.dumps(ORDERS), "orders.json", key=("id",), format=table_format)
    assert fixture.types() == {"id": "bigint", "größe": "double", **NESTED}
    changed = [{**ORDERS[1], "customer": {"name": "Bob", "café": None}}]
    assert counts(fixture.ingest(json.dumps(changed), "later.json")) == (1, 0, 1, 0, 0)
    expected = [(order["id"], order["Größe"], order["customer"], order["items"]) for order in (ORDERS[0], *changed)]
    assert rows(fixture, "duckdb") == expected
    assert [json.loads(json.dumps(row, default=list)) for row in rows(fixture, "spark")] == [
        list(row) for row in expected
    ]


def test_a_struct_gets_the_fields_of_later_files(fixture: IngestFixture) -> None:
    fixture.ingest(json.dumps(ORDERS), "orders.json", key=("id",))
    later = [{"id": 2, "customer": {"name": "Bob", "vip": True}, "items": [{"sku": "c", "n": 1.5}]}]
    report = fixture.ingest(json.dumps(later), "later.json")
    assert (report.updated, fixture.types()) == (
        1,
        {
            "id": "bigint",
            "größe": "double",
            "customer": "struct<name:string,café:bigint,vip:boolean>",
            "items": "array<struct<sku:string,n:double>>",
        },
    )
    for engine in ("duckdb", "spark"):
        query = f"SELECT customer.name, customer.vip, items[0].n FROM {fixture.table} ORDER BY id"
        assert fixture.lake.sql(query, engine="spark").rows() == [("Ann", None, 1.0), ("Bob", True, 1.5)], engine


def test_rows_of_a_program_may_be_nested_without_spark(fixture: IngestFixture) -> None:
    fixture.lake.ingest_rows(ORDERS, fixture.table)
    assert fixture.types() == {"id": "bigint", "größe": "double", **NESTED}
    assert rows(fixture, "duckdb") == [(1, 1.5, *list(ORDERS[0].values())[2:]), (2, None, None, [])]
    assert len(rows(fixture, "spark")[0][3]) == 2


@pytest.mark.parametrize("layout", ["hudi", "bucket(4, id)", "truncate(2, name)"])
def test_rows_of_a_program_use_spark_where_they_must(fixture: IngestFixture, layout: str) -> None:
    options = {"format": "hudi"} if layout == "hudi" else {"partition_by": layout}
    fixture.ingest("id,name\n1,ann\n", "one.csv", key=("id",), **options)
    report = fixture.lake.ingest_rows([{"id": 1, "name": "anna"}, {"id": 2, "name": "bob"}], fixture.table)
    assert (report.inserted, report.updated) == (1, 1)
    assert fixture.lake.sql(f"SELECT * FROM {fixture.table} ORDER BY id").rows() == [(1, "anna"), (2, "bob")]


@both_formats
def test_a_table_may_be_named_by_a_reserved_word(fixture: IngestFixture, table_format: str) -> None:
    table = f"{fixture.table.split('.')[0]}.select"
    for name, content in {"one.csv": "id,from\n1,a\n", "two.csv": "id,from,order\n1,b,5\n"}.items():
        fixture.lake.ingest(fixture.file(name, content), into=table, key=("id",), format=table_format)
    namespace = table.split(".")[0]
    assert fixture.lake.sql(f"SELECT * FROM {namespace}.`select`").rows() == [(1, "b", 5)]


@both_formats
def test_a_file_without_rows_changes_nothing_and_says_so(fixture: IngestFixture, table_format: str) -> None:
    for name, content in {"empty.csv": "id,name\n", "empty.json": "[]"}.items():
        report = fixture.ingest(content, name, key=("id",), format=table_format)
        assert (report.snapshot, report.rows_read) == ("", 0)
        assert report.notes[-1].endswith(f"{name}: nothing was changed.")
        assert fixture.table not in [str(info.name) for info in fixture.lake.tables()]
    fixture.ingest("id,name\n1,ann\n", "one.csv", key=("id",), format=table_format)
    for mode in ("upsert", "append", "replace"):
        assert fixture.ingest("id,name,new\n", "header.csv", mode=mode).snapshot == ""
    assert len(fixture.lake.history(fixture.table)) == 1
    assert fixture.types() == {"id": "bigint", "name": "string"}


def test_a_file_without_the_key_column_is_an_error_that_names_it(fixture: IngestFixture) -> None:
    fixture.ingest("id,name\n1,ann\n", "one.csv", key=("id",))
    with pytest.raises(NoSuchColumnError, match=r"two\.csv has no column id, which is the key of") as error:
        fixture.ingest("nr,name\n2,bob\n", "two.csv")
    assert "Its columns: nr, name" in error.value.hint
    assert len(fixture.lake.history(fixture.table)) == 1


def test_superseded_rows_are_counted(fixture: IngestFixture) -> None:
    report = fixture.ingest("id,name\n1,a\n1,b\n2,c\n1,d\n,e\n", "one.csv", key=("id",))
    assert (counts(report), report.superseded) == ((5, 2, 0, 0, 1), 2)
    assert fixture.lake.sql(f"SELECT * FROM {fixture.table} ORDER BY id").rows() == [(1, "d"), (2, "c")]


def test_nested_values_are_unpacked_on_request(fixture: IngestFixture) -> None:
    fixture.ingest(json.dumps(ORDERS), "orders.json", read=ReadOptions(flatten=True))
    assert list(fixture.types()) == ["id", "größe", "customer_name", "customer_café", "items"]


def test_a_table_with_a_partition_name_that_duckdb_cannot_read_is_read_by_spark(fixture: IngestFixture) -> None:
    fixture.lake.sql(f"CREATE TABLE {fixture.table} (id int, `größe` int) USING iceberg PARTITIONED BY (`größe`)")
    fixture.lake.sql(f"INSERT INTO {fixture.table} VALUES (1, 5)")
    result = fixture.lake.sql(f"SELECT * FROM {fixture.table}")
    assert (result.rows(), result.explain.engine) == ([(1, 5)], "spark")
