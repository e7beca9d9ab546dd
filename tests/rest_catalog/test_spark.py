"""Spark through Iceberg's own REST client on our catalog, beside Spark on the same rows through JDBC."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.servers.rest_catalog import Serve, Served

from lakehouse.catalogs.sql import SqlCatalog, open_database
from lakehouse.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
_NUMBERS = itertools.count()

Sql = Callable[[str], list[tuple[object, ...]]]


@pytest.fixture
def sql(spark: SparkSession) -> Sql:
    return lambda statement: [tuple(row) for row in spark.sql(statement).collect()]


def attached(spark: SparkSession, served: Served, **properties: str) -> str:
    """The name of a new Spark catalog on the REST catalog."""
    name = f"rest_{next(_NUMBERS)}"
    prefix = f"spark.sql.catalog.{name}"
    settings = {"type": "rest", "uri": served.url, "cache-enabled": "false", "token": served.token, **properties}
    spark.conf.set(prefix, "org.apache.iceberg.spark.SparkCatalog")
    for key, value in settings.items():
        spark.conf.set(f"{prefix}.{key}", value)
    return name


def test_spark_makes_merges_evolves_and_travels(spark: SparkSession, sql: Sql, serve: Serve) -> None:
    served = serve()
    lake = attached(spark, served)
    sql(f"CREATE NAMESPACE {lake}.crm")
    sql(f"CREATE TABLE {lake}.crm.leads (id BIGINT, note STRING) USING iceberg PARTITIONED BY (bucket(4, id))")
    sql(f"INSERT INTO {lake}.crm.leads VALUES (1, 'a'), (2, 'b')")
    sql(f"ALTER TABLE {lake}.crm.leads ADD COLUMN score INT")
    sql(
        f"MERGE INTO {lake}.crm.leads t USING (SELECT 2L id, 'B' note, 5 score UNION ALL SELECT 3L, 'c', 7) s"
        " ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert sql(f"SELECT * FROM {lake}.crm.leads ORDER BY id") == [(1, "a", None), (2, "B", 5), (3, "c", 7)]
    first = sql(f"SELECT snapshot_id FROM {lake}.crm.leads.snapshots ORDER BY committed_at")[0][0]
    assert len(sql(f"SELECT * FROM {lake}.crm.leads.snapshot_id_{first}")) == 2
    sql(f"CALL {lake}.system.rewrite_data_files(table => 'crm.leads', options => map('rewrite-all', 'true'))")
    assert sql(f"SELECT count(*) FROM {lake}.crm.leads") == [(3,)]
    assert served.pyiceberg().load_table("crm.leads").scan().to_arrow().num_rows == 3


def test_spark_replaces_a_table_in_one_step_and_makes_views(spark: SparkSession, sql: Sql, serve: Serve) -> None:
    lake = attached(spark, serve())
    sql(f"CREATE NAMESPACE {lake}.crm")
    sql(f"CREATE TABLE {lake}.crm.n USING iceberg AS SELECT 1 AS a")
    sql(f"CREATE OR REPLACE TABLE {lake}.crm.n USING iceberg PARTITIONED BY (b) AS SELECT 'x' AS b, 2 AS a")
    assert sql(f"SELECT a, b FROM {lake}.crm.n") == [(2, "x")]
    sql(f"CREATE VIEW {lake}.crm.v AS SELECT a * 10 AS big FROM {lake}.crm.n")
    assert sql(f"SELECT * FROM {lake}.crm.v") == [(20,)]
    sql(f"CREATE OR REPLACE VIEW {lake}.crm.v AS SELECT a * 100 AS big FROM {lake}.crm.n")
    assert sql(f"SELECT * FROM {lake}.crm.v") == [(200,)]
    sql(f"ALTER VIEW {lake}.crm.v RENAME TO {lake}.crm.w")
    assert sql(f"SELECT big FROM {lake}.crm.w") == [(200,)]
    sql(f"DROP VIEW {lake}.crm.w")
    assert [row for row in sql(f"SHOW VIEWS IN {lake}.crm") if not row[-1]] == []  # but the session's temporary ones


def test_the_lakes_own_spark_and_a_rest_client_see_the_same_tables(
    spark: SparkSession, sql: Sql, serve: Serve, local_lake: Lake, namespace: str
) -> None:
    """One through JDBC, one through REST, on the same rows of the same database."""
    file = spark.conf.get("spark.sql.catalog.lake.uri").removeprefix("jdbc:sqlite:file:").partition("?")[0]
    served = serve(SqlCatalog(open_database(Path(file)), spark.conf.get("spark.sql.catalog.lake.warehouse")))
    rest = attached(spark, served)
    sql(f"CREATE NAMESPACE lake.{namespace}")
    sql(f"CREATE TABLE lake.{namespace}.t (id INT) USING iceberg")
    sql(f"INSERT INTO {rest}.{namespace}.t VALUES (1)")
    sql(f"INSERT INTO lake.{namespace}.t VALUES (2)")
    assert sql(f"SELECT id FROM {rest}.{namespace}.t ORDER BY id") == [(1,), (2,)]
    assert sql(f"SELECT id FROM lake.{namespace}.t ORDER BY id") == [(1,), (2,)]
    sql(f"CREATE VIEW {rest}.{namespace}.v AS SELECT id + 1 AS next FROM lake.{namespace}.t")
    assert sql(f"SELECT next FROM lake.{namespace}.v ORDER BY next") == [(2,), (3,)]
    sql(f"DROP TABLE {rest}.{namespace}.t")
    assert local_lake.undrop(f"{namespace}.t")
    assert sql(f"SELECT count(*) FROM {rest}.{namespace}.t") == [(2,)]


def test_spark_deletes_no_files_of_a_table_that_the_catalog_made(spark: SparkSession, sql: Sql, serve: Serve) -> None:
    """Branches may share them, and Spark would delete them by itself."""
    rest = attached(spark, serve())
    sql(f"CREATE NAMESPACE {rest}.crm")
    sql(f"CREATE TABLE {rest}.crm.leads USING iceberg AS SELECT 1 AS id")
    for statement in (
        f"DROP TABLE {rest}.crm.leads PURGE",
        f"CALL {rest}.system.expire_snapshots(table => 'crm.leads', retain_last => 1)",
        f"CALL {rest}.system.remove_orphan_files(table => 'crm.leads')",
    ):
        with pytest.raises(Exception, match="GC is disabled"):
            sql(statement)
    assert sql(f"SELECT id FROM {rest}.crm.leads") == [(1,)]


def test_spark_works_on_a_branch_by_its_prefix_and_with_a_token(spark: SparkSession, sql: Sql, serve: Serve) -> None:
    served = serve(tokens=["open-sesame"])
    main = attached(spark, served, token="open-sesame")
    sql(f"CREATE NAMESPACE {main}.crm")
    sql(f"CREATE TABLE {main}.crm.leads USING iceberg AS SELECT 1 AS id")
    served.catalog.create_branch("audit")
    audit = attached(spark, served, token="open-sesame", prefix="audit")
    sql(f"INSERT INTO {audit}.crm.leads VALUES (2)")
    counted = [sql(f"SELECT count(*) FROM {name}.crm.leads") for name in (main, audit)]
    assert counted == [[(1,)], [(2,)]]
    stranger = attached(spark, served, token="wrong")
    with pytest.raises(Exception, match="Not authorized"):
        sql(f"SHOW NAMESPACES IN {stranger}")
