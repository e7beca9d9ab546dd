"""The whole stack, as `lake up all` starts it: every server answers, sees what the others wrote, and keeps to loopback."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest
import trino
from pyiceberg.catalog import load_catalog
from tests.support.repetitions import repetitions
from tests.support.servers.stack import Stack, stack_ports, stack_settings, with_ready_storage

from lakehouse.config.stack import StackSettings
from lakehouse.core.names import TableName
from lakehouse.pipelines.upsert import Upsert, create_table
from lakehouse.stack import native
from lakehouse.stack.services import services

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.stretch("all")]

#: What `lake up all` starts; Superset, which takes 1 GB to install, has tests of its own.
NATIVE = [service.name for service in services() if service.process and service.in_all]


@pytest.fixture(scope="module")
def whole(stack: Stack) -> Stack:
    stack.need(*NATIVE)
    return stack


def ask(stack: Stack, statement: str) -> list[Any]:
    connection = trino.dbapi.connect(host=stack.endpoints.host, port=stack.settings.stack.trino_port, user="tests")
    try:
        cursor = connection.cursor()
        cursor.execute(statement)
        return [tuple(row) for row in cursor.fetchall()]
    finally:
        connection.close()


def get(url: str) -> Any:
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=60) as answer:
        return json.loads(answer.read())


def test_everything_runs_and_idles_below_8_gib(whole: Stack) -> None:
    servers = native.status(whole.settings)
    assert {server.service: server.state for server in servers} == dict.fromkeys(NATIVE, "running")
    taken = {server.service: server.memory_mb or 0 for server in servers}
    assert all(taken.values())
    assert sum(taken.values()) < 8 * 1024, taken


def test_nothing_listens_beyond_loopback(whole: Stack) -> None:
    """Spark Connect and the Hive Metastore do when they are started the usual way."""
    sockets = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, check=True).stdout.splitlines()
    for server in native.status(whole.settings):
        assert server.pid
        below = {server.pid, *(child.pid for child in psutil.Process(server.pid).children(recursive=True))}
        places = {line.split()[3] for line in sockets if any(f"pid={pid}," in line for pid in below)}
        assert places, server.service
        assert all(place.startswith(("127.", "[::ffff:127.", "[::1]")) for place in places), (
            f"{server.service}: {places}"
        )


def test_no_secret_is_in_an_argument_list(whole: Stack) -> None:
    endpoints = whole.endpoints
    secrets = [
        endpoints.s3_secret_key,
        endpoints.s3_access_key,
        *(database.password for database in endpoints.databases.values()),
    ]
    for server in native.status(whole.settings):
        for process in [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]:
            words = " ".join(process.cmdline())
            assert not any(secret in words for secret in secrets), server.service


def test_no_secret_is_on_the_pages_of_spark(whole: Stack) -> None:
    spark_connect(whole)
    endpoints = whole.endpoints
    secrets = [
        endpoints.s3_secret_key,
        endpoints.rest_token,
        *(database.password for database in endpoints.databases.values()),
    ]
    pages = [
        f"http://{endpoints.host}:{whole.settings.stack.connect_ui_port}/{page}/"
        for page in ("environment", "SQL", "connect")
    ]
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for page in pages:
        with opener.open(page, timeout=30) as answer:
            shown = answer.read().decode()
        assert len(shown) > 1000, page
        assert not any(secret in shown for secret in secrets), page


def test_nessie_answers_and_names_the_bucket(whole: Stack) -> None:
    assert get(f"{whole.endpoints.nessie_uri}/config")["defaultBranch"] == "main"
    assert get(f"{whole.endpoints.nessie_iceberg_uri}/v1/config")["defaults"]["warehouse"] == whole.endpoints.warehouse


def created(stack: Stack, profile: str, table: str, rows: pa.Table) -> None:
    """Create a table as the lake does without Spark: Trino must not, where it could drop it with its files."""
    properties = stack.lake(profile)._components.runner().catalog.pyiceberg_properties()
    with load_catalog("lake", **properties) as catalog:
        create_table(catalog, TableName.parse(table), Upsert({}, rows, rows, (), "", {})).append(rows)


@pytest.mark.parametrize(("catalog", "profile"), [("nessie", "stack"), ("hive", "hive"), ("rest", "sql")])
def test_trino_writes_and_reads_through_each_catalog(whole: Stack, catalog: str, profile: str) -> None:
    created(whole, profile, f"t_{catalog}.nation", pa.table({"nationkey": [100], "name": ["NOWHERE"]}))
    table = f"{catalog}.t_{catalog}.nation"
    ask(whole, f"INSERT INTO {table} SELECT nationkey, name FROM tpch.tiny.nation")
    assert ask(whole, f"SELECT count(*) FROM {table}") == [(26,)]


def test_the_rest_catalog_and_the_sql_catalog_are_one(whole: Stack) -> None:
    ask(whole, f"CREATE SCHEMA rest.shared WITH (location = '{whole.endpoints.warehouse}/shared')")
    ask(whole, "CREATE TABLE rest.shared.region AS SELECT * FROM tpch.tiny.region")
    assert ask(whole, "SELECT count(*) FROM lake.shared.region") == [(5,)]


def test_one_statement_joins_postgresql_and_iceberg(whole: Stack) -> None:
    ask(whole, "CREATE TABLE oltp.public.sizes (regionkey bigint, size varchar)")
    ask(whole, "INSERT INTO oltp.public.sizes VALUES (1, 'large'), (2, 'small')")
    created(whole, "stack", "joined.region", pa.table({"regionkey": [1, 2], "name": ["AMERICA", "ASIA"]}))
    statement = (
        "SELECT r.name, s.size FROM nessie.joined.region r JOIN oltp.public.sizes s USING (regionkey) ORDER BY r.name"
    )
    assert ask(whole, statement) == [("AMERICA", "large"), ("ASIA", "small")]


def test_the_metastore_serves_many_clients_one_after_another(whole: Stack) -> None:
    for _ in range(8):
        catalog = load_catalog("hms", type="hive", uri=whole.endpoints.hive_uri)
        assert ("default",) in catalog.list_namespaces()


CONNECT = """
import sys, warnings
warnings.simplefilter("ignore")
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.connected")
spark.sql("CREATE OR REPLACE TABLE lake.connected.t (id INT) USING iceberg")
spark.sql("INSERT INTO lake.connected.t VALUES (1), (2), (3)")
twice = udf(lambda number: number * 2, "int")
print(sorted(row[0] for row in spark.table("lake.connected.t").select(twice("id")).collect()))
"""


def spark_connect(stack: Stack) -> str:
    """In a process of its own: there may be only one kind of session in ours."""
    command = [sys.executable, "-c", CONNECT, stack.endpoints.connect_url]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return completed.stdout or completed.stderr[-2000:]


def test_spark_connect_is_the_lakes_own_spark(whole: Stack) -> None:
    assert spark_connect(whole) == "[2, 4, 6]\n"


def test_the_catalogs_data_outlives_a_restart(whole: Stack) -> None:
    created(whole, "stack", "kept.t", pa.table({"answer": [42]}))
    assert set(native.down(whole.settings, ["nessie"])) == {"nessie"}
    native.up(whole.settings, ["nessie"])
    assert ask(whole, "SELECT answer FROM nessie.kept.t") == [(42,)]


#: Trino, the metastore and Spark Connect take a minute of two cores to start, and their settings are rendered like the others'.
SET_OTHERWISE = repetitions(smoke=("storage", "postgres", "rest", "nessie"), full=tuple(NATIVE))


@pytest.mark.stretch("alone")
@pytest.mark.faults
def test_the_whole_stack_comes_up_with_everything_set_otherwise(stack: Stack, home: Path) -> None:
    """What is not changed is where servers of one's own would be, and which Java and object store are there."""
    assert not stack.running, "two stacks at once take too much memory"
    host = "127.0.0.2"
    texts = {"bucket": "elsewhere", "region": "eu-west-3", "data": str(home.parent / "data"), "nessie_store": "rocksdb"}
    heaps = {
        "storage_memory": "200m",
        "nessie_memory": "300m",
        "hive_memory": "200m",
        "connect_memory": "900m",
        "trino_memory": "900m",
        "superset_memory": "900MB",
    }
    secrets = {
        name: f"changed-{name}"
        for name in StackSettings.__dataclass_fields__
        if name.endswith(("_password", "_key", "_token"))
    }
    ports = {name.removeprefix("stack."): port for name, port in stack_ports(host).items()}
    settings = with_ready_storage(
        stack_settings(home, host=host, trino_ownership=True, **texts, **heaps, **secrets, **ports)
    )
    same = {
        name
        for name in StackSettings.__dataclass_fields__
        if getattr(settings.stack, name) == getattr(StackSettings(), name)
    }
    assert same - {"storage"} == {"java_home"} | {
        name for name in StackSettings.__dataclass_fields__ if name.endswith("_host")
    }
    changed = Stack(settings)
    try:
        changed.need(*SET_OTHERWISE)
        warehouse = changed.endpoints.warehouse
        assert get(f"{changed.endpoints.nessie_iceberg_uri}/v1/config")["defaults"]["warehouse"] == warehouse
        properties = {"uri": changed.endpoints.rest_uri, "token": changed.endpoints.rest_token}
        with load_catalog("rest", type="rest", **properties) as catalog:
            catalog.create_namespace("there")
            assert catalog.list_namespaces() == [("there",)]
        if "trino" not in changed.running:
            return
        for name in ("nessie", "hive", "rest"):
            ask(changed, f"CREATE SCHEMA {name}.a{name} WITH (location = '{warehouse}/{name}')")
            ask(changed, f"CREATE TABLE {name}.a{name}.t AS SELECT 42 AS answer")
            assert ask(changed, f"SELECT answer FROM {name}.a{name}.t") == [(42,)]
        assert spark_connect(changed) == "[2, 4, 6]\n"
    finally:
        native.down(settings)
