"""Answers about the social network, compared with the same questions asked of DuckDB in SQL."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest

from lakehouse.pipelines.social import bronze
from lakehouse.pipelines.social.gold import daily_signups, user_activity

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

USERS = "id bigint, name string, created_at timestamp"
POSTS = "id bigint, user_id bigint, created_at timestamp"
FOLLOWS = "follower_id bigint, followed_id bigint"
ACTIVITY = [
    ("user_id", "bigint"),
    ("name", "string"),
    ("posts", "bigint"),
    ("first_post_at", "timestamp"),
    ("last_post_at", "timestamp"),
    ("followers", "bigint"),
    ("following", "bigint"),
]
OPENED = datetime(2026, 1, 1, tzinfo=UTC)


def at(hour: int) -> datetime:
    return OPENED + timedelta(hours=hour)


def test_signups_are_counted_per_day_and_summed_up_over_days_without_any(spark: SparkSession) -> None:
    users = spark.createDataFrame(
        [(1, "a", at(0)), (2, "b", at(23)), (3, "c", at(72)), (4, "nobody knows when", None)], USERS
    )
    result = daily_signups(users)
    assert _rows(result) == [(date(2026, 1, 1), 2, 2), (date(2026, 1, 4), 1, 3)]
    assert result.dtypes == [("date", "date"), ("signups", "bigint"), ("users", "bigint")]


def test_activity_has_a_row_for_those_who_do_nothing_and_none_for_those_who_are_gone(spark: SparkSession) -> None:
    users = spark.createDataFrame([(1, "a", at(0)), (2, "b", at(1)), (3, "c", at(2))], USERS)
    posts = spark.createDataFrame([(1, 1, at(5)), (2, 1, at(4)), (3, 1, at(9)), (4, 99, at(5))], POSTS)
    follows = spark.createDataFrame([(1, 2), (2, 1), (99, 1)], FOLLOWS)
    result = user_activity(users, posts, follows)
    assert _rows(result) == [
        (1, "a", 3, _told(at(4)), _told(at(9)), 2, 1),
        (2, "b", 0, None, None, 1, 1),
        (3, "c", 0, None, None, 0, 0),
    ]
    assert result.dtypes == ACTIVITY


def test_both_agree_with_sql_on_a_thousand_random_rows(spark: SparkSession) -> None:
    dice = random.Random(11)
    users = [(n, f"u{n}", at(dice.randrange(24 * 60))) for n in range(150)]
    posts = [(n, dice.randrange(170), at(dice.randrange(24 * 90))) for n in range(600)]
    follows = sorted({(dice.randrange(150), dice.randrange(150)) for _ in range(400)})
    frames = [spark.createDataFrame(rows, kind) for rows, kind in ((users, USERS), (posts, POSTS), (follows, FOLLOWS))]
    signups = _asked(
        """WITH days AS (SELECT created_at::date AS d, count(*) AS n FROM users GROUP BY ALL)
           SELECT d, n, (SELECT sum(n)::bigint FROM days earlier WHERE earlier.d <= days.d) FROM days""",
        users=(users, USERS),
    )
    assert _rows(daily_signups(frames[0])) == signups
    activity = _asked(
        """SELECT id, name,
             (SELECT count(*) FROM posts WHERE user_id = users.id),
             (SELECT min(created_at) FROM posts WHERE user_id = users.id),
             (SELECT max(created_at) FROM posts WHERE user_id = users.id),
             (SELECT count(*) FROM follows WHERE followed_id = users.id),
             (SELECT count(*) FROM follows WHERE follower_id = users.id)
           FROM users""",
        users=(users, USERS),
        posts=(posts, POSTS),
        follows=(follows, FOLLOWS),
    )
    assert _rows(user_activity(*frames)) == activity


def test_bronze_keeps_the_columns_it_knows_first_and_those_that_were_added(spark: SparkSession) -> None:
    raw = spark.createDataFrame([(True, "x", 1)], "verified boolean, name string, id bigint")
    result = bronze.users(raw)
    assert result.columns == ["id", "name", "email", "country", "plan", "created_at", "updated_at", "verified"]
    assert result.first() == (1, "x", None, None, None, None, None, True)


def _rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(_told(value) for value in row) for row in frame.collect())


def _asked(query: str, **tables: tuple[list[tuple[Any, ...]], str]) -> list[tuple[Any, ...]]:
    with duckdb.connect() as engine:
        engine.execute("SET TimeZone = 'UTC'")
        for name, (rows, kind) in tables.items():
            names = [column.split()[0] for column in kind.split(", ")]
            engine.register(name, pa.table([list(values) for values in zip(*rows, strict=True)], names=names))
        return sorted(tuple(_told(value) for value in row) for row in engine.sql(query).fetchall())


def _told(value: Any) -> Any:
    """Moments as UTC's: Spark gives them without a zone, in the zone of this process."""
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value
