"""Arrow rows are merged by key without Spark, whatever the table looks like."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.transforms import IdentityTransform

from lakehouse.core.files import local_path
from lakehouse.core.names import TableName
from lakehouse.engines.duckdb import DuckDB
from lakehouse.pipelines.upsert import Upsert, UpsertReport, create_table, upsert

NAME = TableName("shop", "sales")
TYPES = {"id": ("bigint", "int8"), "item": ("string", "text"), "raw": ("binary", "bytea")}
SCHEMA = pa.schema([("id", pa.int64()), ("item", pa.string()), ("raw", pa.binary())])


@pytest.fixture
def catalog(tmp_path: Path) -> SqlCatalog:
    return SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/warehouse")


def batch(**items: str) -> Upsert:
    """The whole source: an item by `id_N`."""
    ids = [int(name.removeprefix("id_")) for name in items]
    rows = pa.table([ids, list(items.values()), [b"\x00\xff"] * len(ids)], schema=SCHEMA)
    return Upsert(TYPES, rows, rows.select(["id"]), ("id",), "all rows", {"lake.source": "test"})


def run(catalog: SqlCatalog, given: Upsert, folder: Path) -> UpsertReport:
    exists = catalog.table_exists((NAME.namespace, NAME.table))
    table = catalog.load_table((NAME.namespace, NAME.table)) if exists else create_table(catalog, NAME, given)
    return upsert(table, NAME, given, DuckDB(2**30, folder))


def rows(catalog: SqlCatalog) -> dict[int, str]:
    table = catalog.load_table((NAME.namespace, NAME.table)).scan().to_arrow()
    return dict(zip(table["id"].to_pylist(), table["item"].to_pylist(), strict=True))


def test_rows_are_inserted_updated_and_deleted_in_one_snapshot(catalog: SqlCatalog, tmp_path: Path) -> None:
    run(catalog, batch(id_1="tea", id_2="jam", id_3="ham"), tmp_path)
    report = run(catalog, batch(id_1="tea", id_2="milk", id_4="egg"), tmp_path)
    assert (report.inserted, report.updated, report.deleted) == (1, 1, 1)
    assert rows(catalog) == {1: "tea", 2: "milk", 4: "egg"}
    table = catalog.load_table((NAME.namespace, NAME.table))
    assert len(table.snapshots()) == 2
    snapshot = table.current_snapshot()
    assert snapshot is not None and snapshot.summary is not None and snapshot.summary["lake.source"] == "test"


def test_an_emptied_table_has_no_files(catalog: SqlCatalog, tmp_path: Path) -> None:
    run(catalog, batch(id_1="tea"), tmp_path)
    assert run(catalog, batch(), tmp_path).deleted == 1
    assert rows(catalog) == {}
    table = catalog.load_table((NAME.namespace, NAME.table))
    assert list(table.scan().plan_files()) == []
    first = {local_path(path).name for path in table.inspect.all_files()["file_path"].to_pylist()}
    assert {file.name for file in local_path(table.location()).glob("data/*.parquet")} == first


def test_a_table_that_needs_spark_is_written_anew(catalog: SqlCatalog, tmp_path: Path) -> None:
    run(catalog, batch(id_1="tea", id_2="jam"), tmp_path)
    with catalog.load_table((NAME.namespace, NAME.table)).update_sort_order() as order:
        order.asc("item", IdentityTransform())
    run(catalog, batch(id_1="milk"), tmp_path)
    assert rows(catalog) == {1: "milk"}
