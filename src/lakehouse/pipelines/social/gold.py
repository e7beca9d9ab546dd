"""Growth and activity of the social network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse.pipelines import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def daily_signups(users: DataFrame) -> DataFrame:
    """One row per day (UTC) with signups: the current users who signed up that day, and up to it."""
    from pyspark.sql import Window

    per_day = (
        users.where(F.col("created_at").isNotNull())
        .groupBy(F.to_date("created_at").alias("date"))
        .agg(F.count(F.lit(1)).alias("signups"))
    )
    # The running total needs a single task, which is enough for one row per day.
    until_that_day = Window.partitionBy(F.lit("all")).orderBy("date").rowsBetween(Window.unboundedPreceding, 0)
    return per_day.select("date", "signups", F.sum("signups").over(until_that_day).alias("users"))


def user_activity(users: DataFrame, posts: DataFrame, follows: DataFrame) -> DataFrame:
    """One row per user: posts, the times of the first and last post, followers and followed users."""
    return (
        users.select(F.col("id").alias("user_id"), "name")
        .join(_post_stats(posts), on="user_id", how="left")
        .join(_count_by(follows, "followed_id", "followers"), on="user_id", how="left")
        .join(_count_by(follows, "follower_id", "following"), on="user_id", how="left")
        .select(
            "user_id",
            "name",
            F.coalesce("posts", F.lit(0)).alias("posts"),
            "first_post_at",
            "last_post_at",
            F.coalesce("followers", F.lit(0)).alias("followers"),
            F.coalesce("following", F.lit(0)).alias("following"),
        )
    )


def _post_stats(posts: DataFrame) -> DataFrame:
    """One row per user with posts, so that the join adds no rows."""
    return posts.groupBy("user_id").agg(
        F.count(F.lit(1)).alias("posts"),
        F.min("created_at").alias("first_post_at"),
        F.max("created_at").alias("last_post_at"),
    )


def _count_by(follows: DataFrame, user: str, name: str) -> DataFrame:
    """One row per user on one side of a follow, so that the join adds no rows."""
    return follows.groupBy(F.col(user).alias("user_id")).agg(F.count(F.lit(1)).alias(name))
