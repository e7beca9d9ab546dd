"""social: users, posts and follows of an application's PostgreSQL, kept up to date row by row, and answers about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lakehouse.pipelines.model import Batch, Pipeline, Reading, Source, Table
from lakehouse.pipelines.social import bronze, gold, source
from lakehouse.quality import (
    Rule,
    accepted,
    at_least,
    expect,
    not_null,
    reconciles,
    reference,
    steady_row_count,
    unique,
)

if TYPE_CHECKING:
    from pyspark.sql import Column

PLANS = ("free", "pro", "team")
VISIBILITIES = ("public", "followers", "private")


def _source(table: source.SourceTable) -> Source:
    def read(reading: Reading) -> Batch:
        found = source.read(reading, table)
        return Batch(found.rows, found.cursor, found.present, found.notes)

    return Source(f"postgres.{table.name}", read, settings=source.SETTINGS)


def _light(table: source.SourceTable) -> Callable[[Any, Mapping[str, str]], int]:
    def refresh(catalog: Any, settings: Mapping[str, str]) -> int:
        from lakehouse.pipelines.social import light as social_light

        done = social_light.refresh(catalog, f"social.{table.name}", table, settings)
        return done.inserted + done.updated + done.deleted

    return refresh


def _follows_another() -> Rule:
    def holds() -> Column:
        from pyspark.sql import functions as F

        return F.col("follower_id") != F.col("followed_id")

    return expect("follows_another", holds, severity="warn")


# A row of an application is kept as it is, so rules only warn. References too: the tables are read one after the other,
# and somebody who signs up and posts in between has a post here before the account; the next run brings it.
social = Pipeline(
    name="social",
    description="Users, posts and follows from an application's PostgreSQL: changes, deletes and new columns included.",
    tables=(
        Table(
            "social.users",
            make=bronze.users,
            inputs=(_source(source.USERS),),
            key=source.USERS.key,
            light=_light(source.USERS),
            newest=("updated_at",),
            rules=(not_null("email", severity="warn"), accepted("plan", PLANS, severity="warn")),
            checks=(unique("id"), steady_row_count(0.5)),
        ),
        Table(
            "social.posts",
            make=bronze.posts,
            inputs=(_source(source.POSTS),),
            key=source.POSTS.key,
            light=_light(source.POSTS),
            newest=("updated_at",),
            rules=(
                not_null("user_id", severity="warn"),
                at_least("likes", 0, severity="warn"),
                accepted("visibility", VISIBILITIES, severity="warn"),
            ),
            checks=(unique("id"), reference("user_id", "social.users", "id", severity="warn")),
        ),
        Table(
            "social.follows",
            make=bronze.follows,
            inputs=(_source(source.FOLLOWS),),
            key=source.FOLLOWS.key,
            light=_light(source.FOLLOWS),
            newest=("updated_at",),
            rules=(_follows_another(),),
            checks=(
                unique(*source.FOLLOWS.key),
                reference("follower_id", "social.users", "id", severity="warn"),
                reference("followed_id", "social.users", "id", severity="warn"),
            ),
        ),
        Table(
            "gold.daily_signups",
            make=gold.daily_signups,
            inputs=("social.users",),
            key=("date",),
            rules=(at_least("signups", 1, severity="block"),),
            checks=(unique("date"),),
        ),
        Table(
            "gold.user_activity",
            make=gold.user_activity,
            inputs=("social.users", "social.posts", "social.follows"),
            key=("user_id",),
            checks=(
                unique("user_id"),
                reconciles("social.users", lambda rows: rows.groupBy().count(), lambda rows: rows.groupBy().count()),
            ),
        ),
    ),
)
