"""Answers about the social network: how it grows, and who is active."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F


def daily_signups(users: DataFrame) -> DataFrame:
    """One row per day (UTC) on which users of today signed up: how many, and how many there were by then."""
    per_day = (
        users.where(F.col("created_at").isNotNull())
        .groupBy(F.to_date("created_at").alias("date"))
        .agg(F.count(F.lit(1)).alias("signups"))
    )
    # A row per day is little enough for one task, which a total over all days needs.
    until_that_day = Window.partitionBy(F.lit("all")).orderBy("date").rowsBetween(Window.unboundedPreceding, 0)
    return per_day.select("date", "signups", F.sum("signups").over(until_that_day).alias("users"))


def user_activity(users: DataFrame, posts: DataFrame, follows: DataFrame) -> DataFrame:
    """One row per user: posts, the first and the last of them, followers and how many the user follows."""
    return (
        users.select(F.col("id").alias("user_id"), "name")
        .join(_posting(posts), on="user_id", how="left")
        .join(_counted(follows, of="followed_id", called="followers"), on="user_id", how="left")
        .join(_counted(follows, of="follower_id", called="following"), on="user_id", how="left")
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


def _posting(posts: DataFrame) -> DataFrame:
    """One row per user who has posted, so that joining it adds no rows."""
    return posts.groupBy("user_id").agg(
        F.count(F.lit(1)).alias("posts"),
        F.min("created_at").alias("first_post_at"),
        F.max("created_at").alias("last_post_at"),
    )


def _counted(follows: DataFrame, of: str, called: str) -> DataFrame:
    """One row per user on one side of a follow, so that joining it adds no rows."""
    return follows.groupBy(F.col(of).alias("user_id")).agg(F.count(F.lit(1)).alias(called))
