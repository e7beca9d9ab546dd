"""A client of Spark Connect, installed as docs/thin-clients.md says: no Java, no lakehouse, the lake's own tables."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyspark
import pytest
from tests.conftest import command_for
from tests.support.repetitions import repetitions
from tests.support.servers.stack import Stack

from lakehouse.config.profiles import resolve_profile
from lakehouse.core.errors import LakeError
from lakehouse.lake.assemble import assemble

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.stretch("all")]

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).parent / "uv"
SPARKS_PYTHON = Path(pyspark.__path__[0]) / "python" / "lib" / "pyspark.zip"

ALONE = """
import importlib.util, os, shutil
assert importlib.util.find_spec("lakehouse") is None
assert shutil.which("java") is None and "JAVA_HOME" not in os.environ
"""


def pip_lines(text: str) -> list[list[str]]:
    return [line.split() for line in re.findall(r"pip install (.+==.+)$", text, re.MULTILINE)]


WHOLE, SMALL = pip_lines((ROOT / "docs" / "thin-clients.md").read_text())


def small_install(folder: Path) -> Path:
    """A Python of its own with what the docs name and nothing else. The other install has the same Python files, and jars
    that would be fetched and packed again in every run."""
    subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, folder], check=True)
    python = folder / "bin" / "python"
    subprocess.run([UV, "pip", "install", "--quiet", "--python", python, *SMALL], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    subprocess.run([python, "-m", "zipfile", "-e", SPARKS_PYTHON, packages], check=True)
    return python


def run(python: Path, code: str, nowhere: Path) -> str:
    """What the client prints. Of the environment it has a home and a PATH without any program."""
    environment = {"HOME": str(nowhere), "PATH": str(nowhere)}
    done = subprocess.run(
        [python, "-W", "ignore", "-c", ALONE + code], capture_output=True, text=True, env=environment, timeout=180
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def printed(stack: Stack) -> str:
    return command_for(stack.settings.home)("connect", "spark-connect", env=stack.environment).stdout


def query(stack: Stack, statement: str) -> str:
    told = command_for(stack.settings.home)("sql", statement, "-o", "csv", env=stack.environment)
    assert told.returncode == 0, told.stderr
    return told.stdout


def test_the_docs_install_what_is_printed_in_the_versions_of_the_lock(stack: Stack) -> None:
    (line,) = pip_lines(printed(stack))
    names = [package.partition("==")[0] for package in line]
    assert [package.partition("==")[0] for package in WHOLE] == names
    assert [package.partition("==")[0] for package in SMALL] == ["py4j", *names[1:]]
    locked = set(re.findall(r"^(\S+==\S+)", (ROOT / "requirements" / "lock.txt").read_text(), re.MULTILINE))
    assert {*WHOLE, *SMALL} <= locked


@pytest.mark.faults
@pytest.mark.skipif(not repetitions(smoke=False, full=True), reason="the install takes a minute: make test-faults")
def test_a_client_without_java_writes_and_reads_the_lakes_tables(stack: Stack, tmp_path: Path, namespace: str) -> None:
    stack.need("connect")
    python = small_install(tmp_path / "client")
    table = f"lake.{namespace}.orders"
    work = f"""
import pandas
from pyspark.sql import functions as F
spark.sql("CREATE NAMESPACE lake.{namespace}")
orders = spark.createDataFrame(pandas.DataFrame({{"item": ["tea", "mate", "tea"], "paid": [3, 4, 5]}}))
orders.writeTo("{table}").create()
spark.sql("INSERT INTO {table} VALUES ('coffee', 2)")
twice = F.pandas_udf(lambda paid: paid * 2, "bigint")
assert spark.table("{table}").agg(F.sum(twice("paid"))).first()[0] == 28
paid = spark.table("{table}").groupBy("item").agg(F.sum("paid").alias("paid")).orderBy("item")
print(paid.toPandas().to_csv(index=False))
"""
    (tmp_path / "nowhere").mkdir()
    told = run(python, printed(stack) + work, tmp_path / "nowhere")
    assert told.startswith("+-")  # what the printed script shows by itself
    assert told.endswith("item,paid\ncoffee,2\nmate,4\ntea,8\n\n")
    # Committed through the server, and read by the lake's own DuckDB from the same catalog.
    assert query(stack, f"SELECT sum(paid) AS paid FROM {namespace}.orders") == "paid\n14\n"


def test_a_client_of_spark_connect_passes_the_guard_as_docs_security_says(stack: Stack, namespace: str) -> None:
    """What cannot be prevented: `gc.enabled=false` stops a careless client, and not one that changes it first."""
    stack.need("connect")
    lake, table = stack.lake("sql"), f"{namespace}.t"
    expire = (
        f"CALL lake.system.expire_snapshots(table => '{table}', older_than => TIMESTAMP '2100-01-01', retain_last => 1)"
    )
    with connected(stack) as spark:
        spark.sql(f"CREATE NAMESPACE lake.{namespace}")
        spark.sql(f"CREATE TABLE lake.{table} AS SELECT 1 AS id")
        lake.refs.branches.create("needs_it")
        spark.sql(f"INSERT OVERWRITE lake.{table} SELECT 2 AS id")
        with pytest.raises(Exception, match="GC is disabled"):
            spark.sql(expire)
        assert lake.sql(f"select id from {table}", engine="duckdb", branch="needs_it").rows() == [(1,)]
        spark.sql(f"ALTER TABLE lake.{table} SET TBLPROPERTIES ('gc.enabled' = 'true')")
        spark.sql(expire)
    # Opened anew: this lake's DuckDB has the deleted files in its cache.
    with assemble(resolve_profile(replace(stack.settings, profile="sql"))) as fresh, pytest.raises(LakeError):
        fresh.sql(f"select id from {table}", engine="duckdb", branch="needs_it").rows()
    lake.refs.branches.drop("needs_it")


@contextmanager
def connected(stack: Stack) -> Iterator[Any]:
    from pyspark.sql.connect.session import SparkSession

    address = f"sc://{stack.endpoints.host}:{stack.settings.stack.connect_port}"
    session = SparkSession.builder.remote(address).create()
    try:
        yield session
    finally:
        session.stop()
