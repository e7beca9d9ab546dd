"""A catalog on PostgreSQL: what others are told to reach it, and what is said when it cannot be."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from tests.support.servers.postgres import Postgres

from lakehouse.catalogs.sql import SqlCatalog, open_database
from lakehouse.catalogs.sql.database import DuplicateKeyError
from lakehouse.catalogs.sql.postgres import create_tables_sql
from lakehouse.core.errors import BadSettingError, CatalogAccessError, CatalogUnreachableError, LakeError
from lakehouse.core.names import TableName

LEADS = TableName("crm", "leads")


def catalog_at(url: str) -> SqlCatalog:
    return SqlCatalog(open_database(url), "s3://lake/warehouse", io={"s3.endpoint": "x"}, spark_io={"io-impl": "y"})


def test_spark_gets_the_user_and_the_password_as_properties_of_their_own() -> None:
    conf = catalog_at("postgresql://ada:p%40ss@db.example:6432/lake?sslmode=require").on("exp").spark_conf()
    prefix = "spark.sql.catalog.exp"
    assert conf[f"{prefix}.uri"] == "jdbc:postgresql://db.example:6432/lake?sslmode=require"
    assert (conf[f"{prefix}.jdbc.user"], conf[f"{prefix}.jdbc.password"]) == ("ada", "p@ss")
    assert (conf[f"{prefix}.warehouse"], conf[f"{prefix}.io-impl"]) == ("s3://lake/warehouse", "y")


def test_pyiceberg_gets_the_address_with_its_driver_and_the_way_to_the_files() -> None:
    properties = catalog_at("postgres://ada:p%40ss@db.example/lake").pyiceberg_properties()
    assert properties["uri"] == "postgresql+psycopg://ada:p%40ss@db.example/lake"
    assert properties["s3.endpoint"] == "x"


def test_a_server_that_is_down_is_told_with_its_place(postgres: Postgres) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with pytest.raises(CatalogUnreachableError, match=f"127.0.0.1:{port}") as told:
        catalog_at(replace(postgres, port=port).url).tables()
    assert postgres.password not in told.value.message + told.value.hint


def test_a_wrong_password_is_told_and_not_shown(postgres: Postgres) -> None:
    with pytest.raises(CatalogAccessError, match="lake") as told:
        catalog_at(replace(postgres, password="hunter2").url).tables()
    assert "hunter2" not in f"{told.value.message} {told.value.hint} {told.value}"
    assert "password" in told.value.hint


def test_a_database_that_is_not_there_is_told_with_the_next_step(postgres: Postgres) -> None:
    with pytest.raises(CatalogAccessError, match="no database nowhere") as told:
        catalog_at(replace(postgres, database="nowhere").url).tables()
    assert told.value.hint == "createdb nowhere"


def test_an_address_whose_port_is_none_is_refused_without_showing_it() -> None:
    with pytest.raises(BadSettingError) as told:
        open_database("postgresql://ada:hunter2@db.example:port/lake")
    assert "hunter2" not in told.value.message


def test_a_connection_that_died_meanwhile_is_made_anew(postgres: Postgres) -> None:
    catalog = catalog_at(postgres.url)
    catalog.ensure_namespace("crm")
    postgres.run(
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{postgres.database}' AND pid <> pg_backend_pid()"
    )
    assert list(catalog.tables()) == []


def test_a_transaction_that_failed_leaves_nothing(postgres: Postgres) -> None:
    database = open_database(postgres.url)
    row = ("lake", "crm", "leads", "a", None, None)
    insert = "INSERT INTO iceberg_tables VALUES (?, ?, ?, ?, ?, ?)"
    with pytest.raises(DuplicateKeyError), database.transaction() as db:
        db.execute(insert, row)
        db.execute(insert, row)
    assert catalog_at(postgres.url).pointer(LEADS) is None


FIRST_TOUCH = """
import os, sys
from lakehouse.catalogs.sql import SqlCatalog, open_database
sys.stdin.readline()
catalog = SqlCatalog(open_database(os.environ["URL"]), "file:///x")
catalog.ensure_namespace("n" + sys.argv[1])
catalog.tables()
"""


def test_eight_processes_may_make_the_catalog_at_once(postgres: Postgres) -> None:
    started = [
        subprocess.Popen(
            [sys.executable, "-c", FIRST_TOUCH, str(number)],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "URL": postgres.url},
        )
        for number in range(8)
    ]
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda process: process.communicate("go\n", timeout=60)[1], started))
    assert told == [""] * 8
    assert postgres.rows("SELECT count(*) FROM iceberg_namespace_properties") == [(8,)]


def test_a_process_that_was_forked_has_connections_of_its_own(postgres: Postgres) -> None:
    catalog = catalog_at(postgres.url)
    catalog.ensure_namespace("crm")
    program = (
        "import os, sys\n"
        "from lakehouse.catalogs.sql import SqlCatalog, open_database\n"
        "catalog = SqlCatalog(open_database(os.environ['URL']), 'file:///x')\n"
        "catalog.ensure_namespace('a')\n"
        "child = os.fork()\n"
        "for _ in range(20): catalog.tables()\n"
        "if not child: os._exit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "catalog.tables()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, "URL": postgres.url}
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_writer_that_waits_too_long_is_told_that_it_may_try_again(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lakehouse.catalogs.sql import postgres as module

    monkeypatch.setattr(module, "_LOCK_TIMEOUT_MS", 100)
    monkeypatch.setattr(module, "_ATTEMPTS", 2)
    catalog, other = catalog_at(postgres.url), open_database(postgres.url)
    with other.transaction() as db:
        db.execute("SELECT 1")
        with pytest.raises(LakeError) as told:
            catalog.ensure_namespace("crm")
    assert told.value.code == "catalog_busy"


def test_the_tables_that_a_server_starts_with_are_those_that_we_make(
    postgres: Postgres, postgres_server: Postgres
) -> None:
    columns = (
        "select table_name, ordinal_position, column_name, data_type, is_nullable from information_schema.columns"
        " where table_schema = 'public' order by 1, 2"
    )
    catalog_at(postgres.url).ensure_ready()
    started_with = postgres_server.new_database()
    started_with.run(create_tables_sql(), create_tables_sql())
    assert started_with.rows(columns) == postgres.rows(columns)
    assert started_with.rows("table lake_schema") == postgres.rows("table lake_schema")
    catalog_at(started_with.url).create_branch("exp")
