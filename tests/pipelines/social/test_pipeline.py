"""The social pipeline as a whole: a real PostgreSQL in, runs that publish, and the same rows as the path without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from tests.support.sales_pipeline import without_spark
from tests.support.servers.postgres import Postgres

from lakehouse.lake import Lake
from lakehouse.pipelines import LightContext, SourceContext, Table
from lakehouse.pipelines.postgres import PostgresSettings, open_snapshot, plan_read
from lakehouse.pipelines.social import sample
from lakehouse.pipelines.social.light import refresh
from lakehouse.pipelines.social.pipeline import social
from lakehouse.pipelines.social.source import FOLLOWS, POSTS, USERS, SourceTable, source_fingerprint
from lakehouse.runs.model import RunRecord
from lakehouse.storage.raw import local_raw_area

pytestmark = pytest.mark.spark

NOW = datetime(2026, 11, 1, tzinfo=UTC)

SIGNUPS = "SELECT (created_at AT TIME ZONE 'UTC')::date, count(*) FROM users GROUP BY 1 ORDER BY 1"
ACTIVITY = """
SELECT id, name, (SELECT count(*) FROM posts WHERE user_id = u.id), (SELECT count(*) FROM follows WHERE followed_id = u.id)
FROM users u ORDER BY id"""


@pytest.fixture
def lake(local_lake: Lake, postgres: Postgres) -> Iterator[Lake]:
    """The lake whose Spark runs here, with the test's database as the source, and without social tables."""
    rooms = local_lake._components
    settings = {"social": {"url": postgres.url, "rows_per_read": "40"}}
    runner = replace(rooms.runner(), settings=settings)
    yield Lake(replace(rooms, runner=lambda: runner))
    for table in social.tables:
        local_lake.sql(f"DROP TABLE IF EXISTS {table.name}")


def test_runs_bring_what_changed_and_the_light_path_has_the_same_rows(
    lake: Lake, postgres: Postgres, tmp_path: Path
) -> None:
    light = SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/warehouse")
    with postgres.connect() as connection:
        sample.create(connection, users=80)
        first = lake.run(social)
        _the_same(lake, light, postgres)
        sample.change(connection)
    second = lake.run(social)
    _the_same(lake, light, postgres)
    assert (first.state, second.state) == ("published", "published")
    assert {outcome.name for outcome in second.outcomes if not outcome.passed} <= {"email_not_null"}
    notes = lake.history("social.posts")[-1].notes
    assert notes["read"].startswith("rows changed since") and int(notes["rows_read"]) < int(notes["rows_there"])
    assert postgres.password not in repr([lake.history(table.name) for table in social.tables])
    light.close()


def test_an_unchanged_database_needs_no_spark_and_publishes_nothing(lake: Lake, postgres: Postgres) -> None:
    with postgres.connect() as connection:
        sample.create(connection, users=10)
        connection.execute("UPDATE users SET plan = 'pro' WHERE id = 3")
    lake.run(social)
    again = without_spark(lake).run(social)
    assert again.state == "nothing"
    assert {table.note for table in again.tables} == {"nothing new"}


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE users SET name = 'Eve', updated_at = now() WHERE id = 4",
        "DELETE FROM follows; DELETE FROM posts; DELETE FROM users WHERE id = 4",
        "UPDATE users SET name = 'Eve' WHERE updated_at IS NULL",
        "ALTER TABLE users ADD COLUMN more int DEFAULT 7",
    ],
    ids=["update", "delete", "without a time", "column"],
)
def test_any_change_of_the_database_changes_its_fingerprint(postgres: Postgres, change: str) -> None:
    def spark() -> Any:
        raise AssertionError("the database computes it")

    with postgres.connect() as connection:
        sample.create(connection, users=10)
        connection.execute(
            "ALTER TABLE users DISABLE TRIGGER USER; ALTER TABLE users ALTER COLUMN updated_at DROP NOT NULL"
        )
        connection.execute("UPDATE users SET updated_at = NULL WHERE id = 5")
        settings = PostgresSettings.parse({"url": postgres.url})
        with open_snapshot(settings.address) as snapshot:
            relation = snapshot.relation("public", "users", USERS.key, "updated_at")
            cursor = plan_read(snapshot, relation, "", settings.overlap).cursor
        context = SourceContext(spark, {"url": postgres.url}, "", NOW, local_raw_area(Path("/nowhere")), cursor=cursor)
        before = source_fingerprint(context, USERS)
        assert before and source_fingerprint(context, USERS) == before
        for statement in change.split("; "):
            connection.execute(statement.encode())
        assert source_fingerprint(context, USERS) != before


def test_a_run_that_reads_rows_again_but_finds_no_difference_publishes_nothing(lake: Lake, postgres: Postgres) -> None:
    with postgres.connect() as connection:
        sample.create(connection, users=10)
        connection.execute("UPDATE users SET plan = 'pro' WHERE id = 3")
    users = social.tables[0]
    assert isinstance(users, Table)
    unknown = replace(users, inputs=(replace(users.sources[0], fingerprint=None),))
    always_read = replace(social, tables=(unknown, *social.tables[1:]))
    lake.run(always_read, tables=("social.users",))
    assert lake.run(always_read, tables=("social.users",)).state == "nothing"


def test_a_failing_source_publishes_nothing_and_keeps_no_password(lake: Lake, postgres: Postgres) -> None:
    with postgres.connect() as connection:
        sample.create(connection, users=10)
        connection.execute("DROP TABLE follows")
    with pytest.raises(Exception, match=r"has no table public\.follows"):
        lake.run(social)
    record: RunRecord = lake.runs()[0]
    assert record.state == "failed" and postgres.password not in repr(record)
    assert "social.users" not in {str(table.name) for table in lake.tables()}


def _the_same(lake: Lake, light: SqlCatalog, postgres: Postgres) -> None:
    for table in (USERS, POSTS, FOLLOWS):
        context = LightContext(
            light, {"url": postgres.url}, validate=lambda rows: rows, notes={}, duckdb=lake._components.duckdb
        )
        refresh(context, f"social.{table.name}", table)
        lone = light.load_table(f"social.{table.name}").scan().to_arrow()
        assert (
            _sorted(lake, table, lone.column_names)
            == lone.sort_by([(key, "ascending") for key in table.key]).to_pylist()
        )
        assert lone.num_rows == postgres.rows(f"SELECT count(*) FROM {table.name}")[0][0]
    days = lake.sql("SELECT date, signups FROM gold.daily_signups ORDER BY date").to_arrow().to_pylist()
    assert [tuple(day.values()) for day in days] == postgres.rows(SIGNUPS)
    people = lake.sql("SELECT user_id, name, posts, followers FROM gold.user_activity ORDER BY user_id").to_arrow()
    assert [tuple(person.values()) for person in people.to_pylist()] == postgres.rows(ACTIVITY)


def _sorted(lake: Lake, table: SourceTable, names: list[str]) -> list[dict[str, Any]]:
    rows = lake.sql(f"SELECT {', '.join(names)} FROM social.{table.name} ORDER BY {', '.join(table.key)}").to_arrow()
    return list(rows.to_pylist())
