"""Lakes in folders with unusual names: rows that were written are read again, by every engine."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from tests.conftest import cache_only

from lakehouse.config.load import load_settings
from lakehouse.core.errors import NotSupportedError
from lakehouse.lake.assemble import assemble
from lakehouse.lake.backend import open_backend
from lakehouse.lake.spark import spark_daemon

pytestmark = pytest.mark.slow

NAMES = ["a b", "a%20b", "100%", "ü😀", "[x]", "*", "{y}", "a'b", "a`b", "$HOME", "a;b", "a&b=1", "a:b", "-x", "a\\b"]


@pytest.mark.parametrize("name", NAMES)
def test_pyiceberg_writes_and_duckdb_reads_in_any_folder(tmp_path: Path, name: str) -> None:
    settings = load_settings({"home": tmp_path / name}, environ=cache_only())
    catalog = load_catalog("lake", **open_backend(settings).catalog.pyiceberg_properties())
    catalog.create_namespace("shop")
    catalog.create_table("shop.t", pa.schema([("a", pa.int64())])).append(pa.table({"a": [1, 2]}))
    with assemble(settings) as lake:
        assert lake.sql("select sum(a) from shop.t", engine="duckdb").rows() == [(3,)]
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.spark
def test_spark_and_duckdb_read_what_spark_writes_in_a_folder_with_every_odd_character(tmp_path: Path) -> None:
    name = "lake %20 ü&e=1;f'[x]*{y}"
    settings = load_settings({"home": tmp_path / name}, environ=cache_only())
    try:
        with assemble(settings) as lake:
            lake.sql("create table shop.t as select 1 as a")
            lake.sql("insert into shop.t values (2)")
            assert lake.sql("select sum(a) from shop.t", engine="spark").rows() == [(3,)]
            assert lake.sql("select sum(a) from shop.t", engine="duckdb").rows() == [(3,)]
            with pytest.raises(NotSupportedError, match="Hudi cannot write to"):
                lake.sql("create table shop.h using hudi tblproperties (primaryKey = 'a') as select 1 as a")
    finally:
        spark_daemon(settings).shut_down()
    assert [path.name for path in tmp_path.iterdir()] == [name]
