"""Spark on a real Nessie, beside PyIceberg."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from pyiceberg.exceptions import (
    CommitFailedException,
)
from pyiceberg.expressions import AlwaysTrue
from tests.support.nessie_catalog import append, branch, catalog, count, leads, theirs
from tests.support.servers.relay import relay
from tests.support.servers.s3 import S3Server
from tests.support.spark_process import SparkApart
from tests.support.threads import at_once

from lakehouse.catalogs.nessie import NessieCatalog
from lakehouse.core.names import TableName
from lakehouse.core.refs import Commit

__all__ = ["branch", "catalog", "leads"]

pytestmark = pytest.mark.slow


@pytest.fixture
def sql(spark_apart: SparkApart, catalog: NessieCatalog) -> Iterator[Callable[..., list[dict[str, object]]]]:
    def run(statement: str, branch: str = "") -> list[dict[str, object]]:
        here = catalog.on(branch)
        return spark_apart.sql(statement.replace("lake.", f"{here.name}."), here.spark_conf())

    yield run


@pytest.mark.spark
def test_spark_and_pyiceberg_write_the_same_tables(
    catalog: NessieCatalog, namespace: str, branch: str, sql: Callable[..., list[dict[str, object]]]
) -> None:
    catalog.ensure_namespace(namespace)
    table = TableName(namespace, "t")
    sql(f"CREATE TABLE lake.{table} (id BIGINT) USING iceberg")
    sql(f"INSERT INTO lake.{table} VALUES (1), (2)")
    append(catalog, table)
    assert sql(f"SELECT count(*) AS n FROM lake.{table}") == [{"n": 4}]
    assert len(sql(f"SELECT * FROM lake.{table}.snapshots")) == 2
    # On a branch, by both; a schema change too.
    catalog.fork(branch, [table])
    sql(f"ALTER TABLE lake.{table} ADD COLUMN name STRING", branch)
    sql(f"INSERT INTO lake.{table} VALUES (3, 'c')", branch)
    append(catalog, table, branch)
    assert sql(f"SELECT count(*) AS n FROM lake.{table}") == [{"n": 4}]
    assert catalog.publish(branch, Commit(run="spark"))
    assert sql(f"SELECT count(*) AS n, count(name) AS named FROM lake.{table}") == [{"n": 7, "named": 1}]
    assert len(theirs(catalog).load_table(str(table)).metadata.snapshots) == 4


@pytest.mark.spark
def test_spark_and_pyiceberg_at_once_lose_nothing(
    catalog: NessieCatalog, leads: TableName, sql: Callable[..., list[dict[str, object]]]
) -> None:
    def write(number: int) -> int:
        done = 0
        for _ in range(3):
            try:
                if number == 0:
                    sql(f"INSERT INTO lake.{leads} VALUES (7), (8)")
                else:
                    append(catalog, leads)
                done += 1
            except (CommitFailedException, RuntimeError):
                continue
        return done

    done = sum(answer for answer in at_once(write, 2) if isinstance(answer, int))
    assert done >= 3
    assert count(catalog, leads) == 2 + 2 * done


@pytest.mark.spark
def test_spark_goes_on_from_a_pointer_that_was_moved(
    catalog: NessieCatalog, leads: TableName, sql: Callable[..., list[dict[str, object]]]
) -> None:
    first = catalog.pointer(leads)
    append(catalog, leads)
    second = catalog.pointer(leads)
    assert first and second
    for start, end, rows in ((second, first, 2), (first, second, 4)):
        assert catalog.swap_pointer(leads, start, end)
        assert sql(f"SELECT count(*) AS n FROM lake.{leads}") == [{"n": rows}]
    sql(f"INSERT INTO lake.{leads} VALUES (9)")
    assert count(catalog, leads) == 5
    assert catalog.drop(leads, "2026-01-01")
    assert catalog.undrop(leads)
    sql(f"DELETE FROM lake.{leads} WHERE id = 9")
    assert theirs(catalog).load_table(str(leads)).scan(row_filter=AlwaysTrue()).to_arrow().num_rows == 4


@pytest.mark.spark
def test_spark_asks_the_object_store_for_nothing_twice(
    catalog: NessieCatalog, leads: TableName, s3_server: S3Server, spark_apart: SparkApart
) -> None:
    """A client that takes dead connections for living ones tries again, and now and then in vain."""
    for _ in range(8):
        append(catalog, leads)  # many manifests, which a delete reads side by side while it writes
    with relay(urlsplit(s3_server.endpoint).port or 0) as between:
        there = {**catalog.spark_io, "s3.endpoint": f"http://127.0.0.1:{between.port}"}
        conf = replace(catalog, spark_io=there).spark_conf()
        for number in range(9, 15):
            spark_apart.sql(f"INSERT INTO lake.{leads} VALUES ({number})", conf)
            spark_apart.sql(f"DELETE FROM lake.{leads} WHERE id = {number}", conf)
    tries = [int(number) for chunk in between.said for number in re.findall(rb"amz-sdk-request: attempt=(\d+)", chunk)]
    assert len(tries) > 100
    assert set(tries) == {1}
    assert count(catalog, leads) == 18


@pytest.mark.spark
def test_snapshots_that_branches_and_tags_need_are_not_expired_by_spark(
    catalog: NessieCatalog, leads: TableName, sql: Callable[..., list[dict[str, object]]]
) -> None:
    append(catalog, leads)
    with pytest.raises(RuntimeError, match="GC is disabled"):
        sql(f"CALL lake.system.expire_snapshots(table => '{leads}', older_than => TIMESTAMP '2100-01-01 00:00:00')")
    assert len(theirs(catalog).load_table(str(leads)).metadata.snapshots) == 2


@pytest.mark.spark
def test_a_view_of_sparks_is_no_table(
    catalog: NessieCatalog, leads: TableName, sql: Callable[..., list[dict[str, object]]]
) -> None:
    view = TableName(leads.namespace, "seen")
    sql(f"CREATE VIEW lake.{view} AS SELECT id FROM lake.{leads}")
    assert catalog.has_view(view)
    assert view in catalog.views() and leads not in catalog.views()
    assert view not in catalog.tables()
    assert catalog.pointer(view) is None
    assert not catalog.drop(view, "2026-01-01")
