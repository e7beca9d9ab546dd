"""The social network's tables as in its database, with whatever columns it adds or drops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lakehouse.pipelines import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

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
    """One row per current user, as in the application."""
    return raw.select(*_known_first(raw, _USERS))


def posts(raw: DataFrame) -> DataFrame:
    """One row per current post; tags and metadata as PostgreSQL's text."""
    return raw.select(*_known_first(raw, _POSTS))


def follows(raw: DataFrame) -> DataFrame:
    """One row per pair of follower and followed user."""
    return raw.select(*_known_first(raw, _FOLLOWS))


def _known_first(raw: DataFrame, known: Mapping[str, str]) -> list[Column]:
    """The known columns, which later tables need, and then those that the application added.

    A column that the application dropped is null. Types are those of the source: the table widens with them.
    """
    existing = set(raw.columns)
    promised = [F.col(name) if name in existing else F.lit(None).cast(kind).alias(name) for name, kind in known.items()]
    added = [F.col("`" + name.replace("`", "``") + "`") for name in raw.columns if name not in known]
    return [*promised, *added]
