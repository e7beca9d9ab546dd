"""Users, posts and follows out of a real PostgreSQL through Spark."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.servers.postgres import Postgres

from lakehouse.core.errors import BadSettingError, LakeError, SourceError
from lakehouse.pipelines.model import SourceContext
from lakehouse.pipelines.postgres import Address, PostgresSettings
from lakehouse.pipelines.social import sample
from lakehouse.pipelines.social import source as social
from lakehouse.pipelines.social.source import FOLLOWS, POSTS, USERS, Batch, SourceTable
from lakehouse.storage.raw import local_raw_area

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = SourceTable("t", ("id",))
Read = Callable[..., Batch]


@pytest.fixture
def read(request: pytest.FixtureRequest, postgres: Postgres, tmp_path: Path) -> Read:
    """Reads a table of the test's database; Spark is started when one is really read."""

    def reading(
        table: SourceTable, after: Batch | None = None, progress: Any = lambda text: None, **given: str
    ) -> Batch:
        spark: SparkSession = request.getfixturevalue("spark")
        settings = {"url": postgres.url, **given}
        return social.read(
            SourceContext(
                lambda: spark,
                settings,
                "",
                NOW,
                local_raw_area(tmp_path),
                cursor=after.cursor if after else "",
                progress=progress,
            ),
            table,
        )

    return reading


NOW = datetime(2026, 11, 1, tzinfo=UTC)


def values(rows: DataFrame, *names: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in rows.select(*(names or rows.columns)).collect())


def keys(batch: Batch) -> tuple[list[int], list[int]]:
    """The keys of the rows that were read, and of those that are there."""
    return [row[0] for row in values(batch.rows, "id")], [row[0] for row in values(batch.present, "id")]


@pytest.fixture
def small(postgres: Postgres) -> Postgres:
    """A table t with three rows that were changed long ago."""
    postgres.run(
        "CREATE TABLE t (id bigint PRIMARY KEY, word text, updated_at timestamptz DEFAULT now())",
        "INSERT INTO t VALUES (1, 'a', '2026-01-01+00'), (2, 'b', '2026-01-02+00'), (3, 'c', '2026-01-03+00')",
    )
    return postgres


# ---- rows -----------------------------------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.parametrize("table", [USERS, POSTS, FOLLOWS], ids=lambda table: table.name)
def test_the_first_reading_has_every_row_in_one_part_or_in_many(
    read: Read, postgres: Postgres, table: SourceTable
) -> None:
    with postgres.connect() as connection:
        sample.create(connection, users=120)
    whole, parts = read(table), read(table, rows_per_read="25")
    text = ", tags::text AS tags, metadata::text AS metadata" if table is POSTS else ""
    names = [name for name in whole.rows.columns if name not in ("tags", "metadata")]
    expected = postgres.rows(f"SELECT {', '.join(names)}{text} FROM {table.name}")
    ordered = [*names, *(["tags", "metadata"] if text else [])]
    assert _in_utc(values(parts.rows, *ordered)) == _in_utc(values(whole.rows, *ordered)) == _in_utc(sorted(expected))
    assert values(parts.present) == sorted(postgres.rows(f"SELECT {', '.join(table.key)} FROM {table.name}"))
    assert whole.rows.inputFiles() and len(parts.rows.inputFiles()) > 3


@pytest.mark.spark
def test_a_key_that_is_no_number_is_read_in_one_part(read: Read, postgres: Postgres) -> None:
    postgres.run(
        "CREATE TABLE t (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), updated_at timestamptz DEFAULT now())",
        "INSERT INTO t SELECT FROM generate_series(1, 50)",
    )
    batch = read(T, rows_per_read="10")
    assert sorted(postgres.rows("SELECT id::text FROM t")) == values(batch.present)


@pytest.mark.spark
def test_the_next_reading_has_what_changed_and_all_keys(read: Read, small: Postgres) -> None:
    first = read(T)
    small.run("UPDATE t SET word = 'new', updated_at = now() WHERE id = 2", "DELETE FROM t WHERE id = 1")
    small.run("INSERT INTO t VALUES (4, 'd')")
    second = read(T, first)
    assert keys(first) == ([1, 2, 3], [1, 2, 3])
    assert keys(second) == ([2, 4], [2, 3, 4])
    assert (second.notes["rows_read"], second.notes["rows_there"]) == ("2", "3")


@pytest.mark.spark
def test_a_row_of_the_very_moment_of_the_mark_is_read_again(read: Read, small: Postgres) -> None:
    first = read(T)
    mark = json.loads(first.cursor)["mark"]
    small.run(f"INSERT INTO t VALUES (4, 'd', '{mark}')")
    assert keys(read(T, first, overlap="0s"))[0] == [4]


@pytest.mark.spark
def test_a_transaction_that_commits_after_the_reading_is_not_lost(read: Read, small: Postgres) -> None:
    with small.connect(autocommit=False) as slow:
        slow.execute("INSERT INTO t VALUES (4, 'slow')")
        time.sleep(0.2)
        small.run("INSERT INTO t VALUES (5, 'quick')")
        first = read(T, overlap="0s")
        slow.commit()
    assert keys(first)[0] == [1, 2, 3, 5]
    assert 4 in keys(read(T, first, overlap="0s"))[0]


@pytest.mark.spark
def test_an_application_whose_clock_is_behind_is_covered_by_the_overlap(read: Read, small: Postgres) -> None:
    first = read(T)
    small.run("INSERT INTO t VALUES (4, 'late', now() - interval '4 minutes')")
    assert keys(read(T, first))[0] == [4]
    assert keys(read(T, first, overlap="1m"))[0] == []


@pytest.mark.spark
def test_rows_and_keys_are_of_one_moment_while_others_write(read: Read, small: Postgres) -> None:
    first = read(T)
    small.run("UPDATE t SET updated_at = now() WHERE id = 2")

    def meanwhile(_: str) -> None:
        small.run("DELETE FROM t WHERE id = 2", "INSERT INTO t VALUES (9, 'meanwhile')")

    second = read(T, first, progress=meanwhile)
    assert keys(second) == ([2], [1, 2, 3])
    assert keys(read(T, second))[1] == [1, 3, 9]


@pytest.mark.spark
def test_the_rows_stay_what_they_were_read_as(read: Read, small: Postgres) -> None:
    batch = read(T)
    small.run("DROP TABLE t")
    assert keys(batch) == ([1, 2, 3], [1, 2, 3])


@pytest.mark.spark
def test_rows_without_a_moment_and_from_the_future_are_read_each_time(read: Read, small: Postgres) -> None:
    small.run("INSERT INTO t VALUES (4, 'never', NULL), (5, 'future', '2199-01-01+00')")
    assert keys(read(T, read(T)))[0] == [4, 5]


@pytest.mark.spark
def test_a_wall_clock_without_a_zone_is_utc(read: Read, postgres: Postgres) -> None:
    postgres.run(
        "CREATE TABLE t (id int PRIMARY KEY, updated_at timestamp DEFAULT (now() AT TIME ZONE 'UTC'))",
        "INSERT INTO t VALUES (1, '2026-01-01 12:00:00.5')",
    )
    first = read(T)
    assert first.rows.selectExpr("unix_micros(updated_at)").first()[0] == 1_767_268_800_500_000  # type: ignore[index]
    postgres.run("INSERT INTO t VALUES (2)")
    assert keys(read(T, first))[0] == [2]


@pytest.mark.spark
def test_new_columns_another_database_and_no_cursor_column_mean_all_rows(
    read: Read, small: Postgres, postgres_server: Postgres
) -> None:
    first = read(T)
    small.run("ALTER TABLE t ADD COLUMN level int DEFAULT 7")
    second = read(T, first)
    assert values(second.rows, "id", "level") == [(1, 7), (2, 7), (3, 7)]
    other = postgres_server.new_database()
    other.run(
        "CREATE TABLE t (id bigint, word text, updated_at timestamptz)", "INSERT INTO t VALUES (8, 'x', '2020-01-01')"
    )
    assert keys(read(T, first, url=other.url))[0] == [8]
    assert keys(read(T, first, updated_at=""))[0] == [1, 2, 3]


@pytest.mark.spark
@pytest.mark.parametrize("rows_per_read", ["1000", "1"], ids=["by-the-driver", "by-spark"])
def test_types_are_mapped_and_what_the_lake_does_not_know_is_text(
    read: Read, postgres: Postgres, rows_per_read: str
) -> None:
    postgres.run(
        """CREATE TABLE t (id int PRIMARY KEY, "Mixed.Case" text, money numeric(10, 2), free numeric, tags text[], j jsonb,
           u uuid, small smallint, span interval, raw bytea, day date, updated_at timestamptz)""",
        r"""INSERT INTO t VALUES (1, 'x', 9.99, 0.1, '{a,"b c"}', '{"a": 1}', '00000000-0000-0000-0000-00000000000a', 3,
           '1 day', '\x00ff', '2026-02-03', '2026-01-01+00')""",
        "INSERT INTO t (id, money, free, day, updated_at) VALUES (2, 'NaN', 'NaN', 'infinity', '-infinity')",
    )
    frame = read(T, rows_per_read=rows_per_read).rows
    assert {field.name: field.dataType.simpleString() for field in frame.schema} == {
        "id": "int",
        "mixed.case": "string",
        "money": "decimal(10,2)",
        "free": "decimal(38,18)",
        "tags": "string",
        "j": "string",
        "u": "string",
        "small": "int",
        "span": "string",
        "raw": "binary",
        "day": "date",
        "updated_at": "timestamp",
    }
    full, odd = sorted(frame.collect())
    assert full[1:5] == ("x", Decimal("9.99"), Decimal("0.1"), '{a,"b c"}') and full["span"] == "1 day"
    assert full["raw"] == b"\x00\xff" and str(full["day"]) == "2026-02-03"
    assert odd[1:] == (None,) * 11


@pytest.mark.spark
def test_an_empty_table_is_no_error(read: Read, postgres: Postgres) -> None:
    postgres.run("CREATE TABLE t (id int PRIMARY KEY, updated_at timestamptz)")
    batch = read(T)
    assert keys(batch) == ([], []) and batch.cursor


# ---- what goes wrong ------------------------------------------------------------------------------------------------


@pytest.mark.spark
def test_no_plan_no_error_and_no_log_of_spark_shows_the_password(
    read: Read, small: Postgres, tmp_path_factory: pytest.TempPathFactory
) -> None:
    plan = read(T, rows_per_read="1").rows._jdf.queryExecution().toString()
    assert "Relation" in plan and small.password not in plan and "jdbc" not in plan.lower()
    small.run("ALTER TABLE t ADD COLUMN free numeric DEFAULT 1e30")
    with pytest.raises(SourceError) as caught:
        read(T, rows_per_read="1")
    shown = f"{caught.value.message} {caught.value.hint} {caught.value!r} {caught.value.__cause__}"
    assert "public.t" in shown and "numeric field overflow" in shown and small.password not in shown
    assert "20 digits before the point" in caught.value.hint
    logs = [file for file in tmp_path_factory.getbasetemp().glob("local*/lake/logs/*") if file.is_file()]
    assert logs and not any(small.password in file.read_text(errors="replace") for file in logs)


def _asking(postgres: Postgres, **given: str) -> SourceError | LakeError:
    """The error of a reading that never gets as far as Spark, and quickly."""
    reading = SourceContext(
        lambda: pytest.fail("Spark is not needed"),
        {"url": postgres.url, **given},
        "",
        NOW,
        local_raw_area(Path("/nowhere")),
    )  # type: ignore[arg-type]
    started = time.monotonic()
    with pytest.raises(LakeError) as caught:
        social.read(reading, T)
    assert time.monotonic() - started < 10
    assert postgres.password not in f"{caught.value.message}{caught.value.hint}{caught.value!r}"
    return caught.value


def test_a_server_that_is_not_there_is_named_with_the_next_step(postgres: Postgres) -> None:
    error = _asking(postgres, url=postgres.url.replace(str(postgres.port), "1"))
    assert "postgresql://127.0.0.1:1/" in error.message and "cannot be reached" in error.message
    assert "Start the database" in error.hint


def test_a_wrong_password_is_said_without_any_password(postgres: Postgres) -> None:
    error = _asking(postgres, url=postgres.url.replace(postgres.password, "wr%40ng"))
    assert "rejects the password of lake" in error.message
    assert "wr@ng" not in repr(error) and "wr%40ng" not in error.message + error.hint


def test_a_database_that_is_not_there_is_named(postgres: Postgres) -> None:
    error = _asking(postgres, url=postgres.url.replace(postgres.database, "nothere"))
    assert 'database "nothere" does not exist' in error.message


def test_a_missing_table_is_answered_with_the_nearest(postgres: Postgres) -> None:
    postgres.run("CREATE SCHEMA app", "CREATE TABLE app.t (id int)")
    error = _asking(postgres)
    assert "has no table public.t." in error.message and "app.t" in error.hint


def test_a_missing_key_or_cursor_column_is_named(postgres: Postgres) -> None:
    postgres.run("CREATE TABLE t (id int, updatedat timestamptz)")
    error = _asking(postgres)
    assert "public.t has no column updated_at" in error.message
    assert "Did you mean updatedat" in error.hint and 'updated_at = ""' in error.hint
    postgres.run("ALTER TABLE t RENAME id TO nr")
    assert "no column id, which is its key" in _asking(postgres).message


def test_a_cursor_column_that_is_no_moment_is_refused(postgres: Postgres) -> None:
    postgres.run("CREATE TABLE t (id int, updated_at text)")
    assert "public.t.updated_at is a text, not a timestamp" in _asking(postgres).message


def test_a_user_who_may_not_read_is_told_so(postgres: Postgres) -> None:
    postgres.run(
        "CREATE TABLE t (id int, updated_at timestamptz)",
        f"CREATE ROLE r_{postgres.database} LOGIN PASSWORD 'guest word'",
    )
    guest = f"r_{postgres.database}:guest%20word@"
    error = _asking(postgres, url=postgres.url.replace(f"lake:{postgres.password}@", guest))
    assert "permission denied for table t" in error.message and "GRANT SELECT" in error.hint


@pytest.mark.parametrize("url", ["", "mysql://u:sec@h/d", "postgresql://h/d", "postgresql://u:sec@h:x/d"])
def test_an_address_that_is_none_says_how_one_is_written(url: str) -> None:
    with pytest.raises(SourceError) as caught:
        Address.parse(url)
    assert "postgresql://USER:PASSWORD@HOST:PORT/DATABASE" in caught.value.hint
    assert "sec" not in f"{caught.value.message}{caught.value.hint}"


def test_an_address_keeps_its_password_to_itself() -> None:
    address = Address.parse("postgresql://me:p%40ss%2Fword@[::1]:5433/my%20db?sslmode=require")
    assert (address.user, address.password, address.database) == ("me", "p@ss/word", "my db")
    assert address.jdbc_url == "jdbc:postgresql://[::1]:5433/my%20db?sslmode=require"
    assert "p@ss" not in f"{address} {address!r} {PostgresSettings(address)!r}"
    assert address.redact("no p@ss/word, no p%40ss%2Fword\nsecond line") == "no ***, no ***"


@pytest.mark.parametrize("given", [{"overlap": "soon"}, {"rows_per_read": "0"}], ids=lambda given: next(iter(given)))
def test_a_setting_of_the_wrong_kind_is_named(given: dict[str, str]) -> None:
    with pytest.raises(BadSettingError, match=next(iter(given))):
        PostgresSettings.parse({"url": "postgresql://u:p@h/d", **given})


def _in_utc(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Spark gives moments without a zone, in the zone of this process; the database with one."""
    return [tuple(value.astimezone(UTC) if isinstance(value, datetime) else value for value in row) for row in rows]
