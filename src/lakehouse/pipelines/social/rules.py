"""Rules and checks of the social network's tables.

Rows of an application stay as they are, so rules only warn. References warn too: the tables are read one after the
other, so a new user's post can arrive before the user; the next run brings the user.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse.pipelines import functions as F
from lakehouse.quality import accepted, at_least, expect, not_null, reconciles, reference

if TYPE_CHECKING:
    from pyspark.sql import Column

PLANS = ("free", "pro", "team")
VISIBILITIES = ("public", "followers", "private")


def _follows_another() -> Column:
    return F.col("follower_id") != F.col("followed_id")


USER_RULES = (not_null("email", severity="warn"), accepted("plan", PLANS, severity="warn"))
POST_RULES = (
    not_null("user_id", severity="warn"),
    at_least("likes", 0, severity="warn"),
    accepted("visibility", VISIBILITIES, severity="warn"),
)
FOLLOW_RULES = (expect("follows_another", _follows_another, severity="warn", sql="follower_id <> followed_id"),)

POST_REFERENCES = (reference("user_id", "social.users", "id", severity="warn"),)
FOLLOW_REFERENCES = (
    reference("follower_id", "social.users", "id", severity="warn"),
    reference("followed_id", "social.users", "id", severity="warn"),
)
ONE_ROW_PER_USER = reconciles("social.users", own="count(*)", other="count(*)")
