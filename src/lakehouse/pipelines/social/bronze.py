"""The social network's tables as its database has them, whatever columns it adds or drops."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

_USERS = {
    "id": "bigint",
    "name": "string",
    "email": "string",
    "country": "string",
    "plan": "string",
    "created_at": "timestamp",
    "updated_at": "timestamp",
}
_POSTS = {
    "id": "bigint",
    "user_id": "bigint",
    "body": "string",
    "tags": "string",
    "visibility": "string",
    "likes": "int",
    "metadata": "string",
    "created_at": "timestamp",
    "updated_at": "timestamp",
}
_FOLLOWS = {"follower_id": "bigint", "followed_id": "bigint", "created_at": "timestamp", "updated_at": "timestamp"}


def users(raw: DataFrame) -> DataFrame:
    """One row per user who has an account now, as the application keeps it."""
    return raw.select(*_known_first(raw, _USERS))


def posts(raw: DataFrame) -> DataFrame:
    """One row per post that is there now; tags and metadata as the database writes them."""
    return raw.select(*_known_first(raw, _POSTS))


def follows(raw: DataFrame) -> DataFrame:
    """One row per pair of users of whom one follows the other."""
    return raw.select(*_known_first(raw, _FOLLOWS))


def _known_first(raw: DataFrame, known: Mapping[str, str]) -> list[Column]:
    """The columns we know, which later tables count on, and then those that the application added.

    One that the application dropped is null. A type is kept as published: the table widens with it.
    """
    there = set(raw.columns)
    promised = [F.col(name) if name in there else F.lit(None).cast(kind).alias(name) for name, kind in known.items()]
    added = [F.col("`" + name.replace("`", "``") + "`") for name in raw.columns if name not in known]
    return [*promised, *added]
