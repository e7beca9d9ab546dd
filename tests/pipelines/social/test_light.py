"""The social tables without Spark, against a real PostgreSQL and a real Iceberg catalog."""

from __future__ import annotations

import json
import threading
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from tests.support.servers.postgres import Postgres

from lakehouse.core.errors import RunConflictError, SourceError
from lakehouse.engines.duckdb import DuckDB
from lakehouse.pipelines import LightContext
from lakehouse.pipelines.social import sample
from lakehouse.pipelines.social.light import refresh
from lakehouse.pipelines.social.source import FOLLOWS, POSTS, USERS, SourceTable
from lakehouse.pipelines.upsert import UpsertReport

TABLES = (USERS, POSTS, FOLLOWS)
T = SourceTable("t", ("id",))


@pytest.fixture
def catalog(tmp_path: Path) -> SqlCatalog:
    return SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/warehouse")


def refreshed(catalog: SqlCatalog, postgres: Postgres, table: SourceTable, **settings: str) -> UpsertReport:
    duckdb = DuckDB(2**30, Path(catalog.properties["warehouse"].removeprefix("file://")).parent)
    context = LightContext(
        catalog, {"url": postgres.url, **settings}, validate=lambda rows: rows, notes={}, duckdb=duckdb
    )
    return refresh(context, f"social.{table.name}", table)


def rows_in_lake(catalog: SqlCatalog, table: SourceTable) -> list[dict[str, Any]]:
    rows = catalog.load_table(f"social.{table.name}").scan().to_arrow().to_pylist()
    return sorted(rows, key=lambda row: [row[name] for name in table.key])


def rows_in_database(postgres: Postgres, table: SourceTable) -> list[dict[str, Any]]:
    """As the database itself writes arrays and JSON."""
    text = ", tags::text AS tags, metadata::text AS metadata" if table is POSTS else ""
    with postgres.connect() as connection:
        cursor = connection.execute(f"SELECT *{text} FROM {table.name} ORDER BY {', '.join(table.key)}".encode())
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_the_lake_has_what_the_database_has_after_the_first_load_and_after_a_day_of_changes(
    catalog: SqlCatalog, postgres: Postgres, table: SourceTable
) -> None:
    with postgres.connect() as connection:
        sample.create(connection, users=60)
        first = refreshed(catalog, postgres, table)
        assert rows_in_lake(catalog, table) == rows_in_database(postgres, table)
        assert (first.inserted, first.updated, first.deleted) == (len(rows_in_lake(catalog, table)), 0, 0)
        sample.change(connection)
    second = refreshed(catalog, postgres, table)
    assert rows_in_lake(catalog, table) == rows_in_database(postgres, table)
    assert second.deleted and second.inserted
    assert second.columns == (("verified",) if table is USERS else ())


def test_a_refresh_without_changes_commits_nothing(catalog: SqlCatalog, postgres: Postgres) -> None:
    with postgres.connect() as connection:
        sample.create(connection, users=20)
    before = refreshed(catalog, postgres, USERS)
    after = refreshed(catalog, postgres, USERS)
    assert (after.inserted, after.updated, after.deleted, after.snapshot) == (0, 0, 0, before.snapshot)
    assert after.read.startswith("rows changed since")


def test_the_snapshot_keeps_the_cursor_and_no_password(catalog: SqlCatalog, postgres: Postgres) -> None:
    with postgres.connect() as connection:
        sample.create(connection, users=5)
    refreshed(catalog, postgres, USERS)
    snapshot = catalog.load_table("social.users").current_snapshot()
    assert snapshot is not None and snapshot.summary is not None
    notes = snapshot.summary.additional_properties
    assert json.loads(notes["lake.cursor"])["source"] == notes["lake.source"] == f"{_shown(postgres)}/public.users"
    assert postgres.password not in str(notes)


def test_a_new_column_with_a_default_reaches_rows_that_were_not_touched(
    catalog: SqlCatalog, postgres: Postgres
) -> None:
    postgres.run(
        "CREATE TABLE t (id int PRIMARY KEY, updated_at timestamptz DEFAULT now())", "INSERT INTO t VALUES (1), (2)"
    )
    refreshed(catalog, postgres, T, overlap="0s")
    postgres.run("ALTER TABLE t ADD COLUMN level int DEFAULT 7")
    report = refreshed(catalog, postgres, T, overlap="0s")
    assert [row["level"] for row in rows_in_lake(catalog, T)] == [7, 7]
    assert report.read == "all rows: the columns have changed"


def test_a_type_that_widens_widens_the_table_and_one_that_changes_is_refused(
    catalog: SqlCatalog, postgres: Postgres
) -> None:
    postgres.run(
        "CREATE TABLE t (id int PRIMARY KEY, n int, updated_at timestamptz DEFAULT now())",
        "INSERT INTO t VALUES (1, 1)",
    )
    refreshed(catalog, postgres, T)
    postgres.run("ALTER TABLE t ALTER n TYPE bigint", "UPDATE t SET n = 5000000000")
    refreshed(catalog, postgres, T)
    assert [row["n"] for row in rows_in_lake(catalog, T)] == [5_000_000_000]
    postgres.run("ALTER TABLE t ALTER n TYPE smallint USING 3")
    refreshed(catalog, postgres, T)
    assert [row["n"] for row in rows_in_lake(catalog, T)] == [3]
    postgres.run("ALTER TABLE t ALTER n TYPE text")
    with pytest.raises(SourceError, match="social.t.n is a long, and the database has a text"):
        refreshed(catalog, postgres, T)


def test_every_type_of_the_database_is_read(catalog: SqlCatalog, postgres: Postgres) -> None:
    postgres.run(
        "CREATE TYPE mood AS ENUM ('glad')",
        "CREATE DOMAIN price AS numeric(8, 2)",
        """CREATE TABLE t (id smallint PRIMARY KEY, "Mixed Case" text, price price, free numeric, n numeric(10, 3),
           flag boolean, f real, d double precision, day date, at timestamptz, wall timestamp, raw bytea, u uuid, j jsonb,
           tags text[], mood mood, c char(4), span interval, updated_at timestamptz DEFAULT now())""",
        r"""INSERT INTO t VALUES (1, 'x', 9.99, 0.1, 1.5, true, 1.5, 2.5, '2026-02-03', '2026-02-03 04:05:06.123456+02',
           '2026-02-03 04:05:06', '\x00ff', '00000000-0000-0000-0000-00000000000a', '{"a": [1, null]}', '{a,"b c",NULL}',
           'glad', 'ab', '1 day', '2026-01-01+00')""",
        "INSERT INTO t (id, free, n, day, at, updated_at) VALUES (2, 'NaN', 'NaN', 'infinity', '-infinity', NULL)",
    )
    refreshed(catalog, postgres, T)
    full, odd = rows_in_lake(catalog, T)
    assert full == {
        "id": 1,
        "mixed case": "x",
        "price": Decimal("9.99"),
        "free": Decimal("0.1"),
        "n": Decimal("1.500"),
        "flag": True,
        "f": 1.5,
        "d": 2.5,
        "day": date(2026, 2, 3),
        "at": datetime(2026, 2, 3, 2, 5, 6, 123456, UTC),
        "wall": datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC),
        "raw": b"\x00\xff",
        "u": "00000000-0000-0000-0000-00000000000a",
        "j": '{"a": [1, null]}',
        "tags": '{a,"b c",NULL}',
        "mood": "glad",
        "c": "ab",
        "span": "1 day",
        "updated_at": datetime(2026, 1, 1, tzinfo=UTC),
    }
    assert odd == {**dict.fromkeys(full), "id": 2}


def test_two_refreshes_at_once_insert_no_row_twice(catalog: SqlCatalog, postgres: Postgres, tmp_path: Path) -> None:
    with postgres.connect() as connection:
        sample.create(connection, users=10)
        refreshed(catalog, postgres, USERS)
        connection.execute("INSERT INTO users (name) SELECT 'n' || g FROM generate_series(1, 50) g")
    start, failures = threading.Barrier(2), []

    def work() -> None:
        own = SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/warehouse")
        start.wait()
        try:
            refreshed(own, postgres, USERS)
        except BaseException as exc:  # noqa: BLE001 - a thread's failure would be lost
            failures.append(exc)
        finally:
            own.close()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(failures) < 2 and all(isinstance(failure, RunConflictError) for failure in failures), failures
    assert rows_in_lake(catalog, USERS) == rows_in_database(postgres, USERS)


def test_a_table_is_rewritten_when_most_of_it_changes(catalog: SqlCatalog, postgres: Postgres) -> None:
    postgres.run(
        "CREATE TABLE t (id int PRIMARY KEY, n int, updated_at timestamptz DEFAULT now())",
        "INSERT INTO t SELECT g, g FROM generate_series(1, 1500) g",
    )
    refreshed(catalog, postgres, T)
    postgres.run("UPDATE t SET n = -n, updated_at = now() WHERE id > 100", "DELETE FROM t WHERE id > 1400")
    report = refreshed(catalog, postgres, T)
    assert (report.inserted, report.updated, report.deleted) == (0, 1300, 100)
    assert rows_in_lake(catalog, T) == rows_in_database(postgres, T)


def _shown(postgres: Postgres) -> str:
    return f"postgresql://127.0.0.1:{postgres.port}/{postgres.database}"
