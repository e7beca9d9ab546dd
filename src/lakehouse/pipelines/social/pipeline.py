"""social: users, posts and follows of an application's PostgreSQL, updated row by row, and statistics of them."""

from __future__ import annotations

from functools import partial

from lakehouse.pipelines.model import LightContext, Pipeline, Source, Table
from lakehouse.pipelines.social import bronze, gold, rules, source
from lakehouse.quality import at_least, steady_row_count, unique


def _source(table: source.SourceTable) -> Source:
    return Source(
        f"postgres.{table.name}",
        partial(source.read, table=table),
        fingerprint=partial(source.source_fingerprint, table=table),
        settings=source.SETTINGS,
    )


def _refresh(context: LightContext, table: source.SourceTable) -> int:
    from lakehouse.pipelines.social.light import refresh

    done = refresh(context, f"social.{table.name}", table)
    return done.inserted + done.updated + done.deleted


social = Pipeline(
    name="social",
    description="Users, posts and follows from an application's PostgreSQL: changes, deletes and new columns included.",
    tables=(
        Table(
            "social.users",
            bronze.users,
            inputs=(_source(source.USERS),),
            key=source.USERS.key,
            newest=("updated_at",),
            rules=rules.USER_RULES,
            checks=(unique("id"), steady_row_count(0.5)),
            light=partial(_refresh, table=source.USERS),
        ),
        Table(
            "social.posts",
            bronze.posts,
            inputs=(_source(source.POSTS),),
            key=source.POSTS.key,
            newest=("updated_at",),
            rules=rules.POST_RULES,
            checks=(unique("id"), *rules.POST_REFERENCES),
            light=partial(_refresh, table=source.POSTS),
        ),
        Table(
            "social.follows",
            bronze.follows,
            inputs=(_source(source.FOLLOWS),),
            key=source.FOLLOWS.key,
            newest=("updated_at",),
            rules=rules.FOLLOW_RULES,
            checks=(unique(*source.FOLLOWS.key), *rules.FOLLOW_REFERENCES),
            light=partial(_refresh, table=source.FOLLOWS),
        ),
        Table(
            "gold.daily_signups",
            gold.daily_signups,
            inputs=("social.users",),
            key=("date",),
            rules=(at_least("signups", 1, severity="block"),),
            checks=(unique("date"),),
        ),
        Table(
            "gold.user_activity",
            gold.user_activity,
            inputs=("social.users", "social.posts", "social.follows"),
            key=("user_id",),
            checks=(unique("user_id"), rules.ONE_ROW_PER_USER),
        ),
    ),
)
