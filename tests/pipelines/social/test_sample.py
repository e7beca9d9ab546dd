"""The sample database of a social network is the same each time, and has what a real one has."""

from __future__ import annotations

from tests.support.servers.postgres import Postgres

from lakehouse.pipelines.social import sample as social

TABLES = {"users": "id", "posts": "id", "follows": "follower_id, followed_id"}


def test_the_same_seed_gives_the_same_rows_and_another_gives_others(postgres_server: Postgres) -> None:
    databases = []
    for seed in (7, 7, 8):
        database = postgres_server.new_database()
        with database.connect() as connection:
            social.create(connection, users=30, seed=seed)
        databases.append([database.rows(f"SELECT * FROM {table} ORDER BY {key}") for table, key in TABLES.items()])
    assert databases[0] == databases[1]
    assert databases[0] != databases[2]


def test_a_day_of_changes_has_every_kind_of_change_and_touches_what_it_changes(postgres: Postgres) -> None:
    with postgres.connect() as connection:
        social.create(connection, users=60)
        before = dict(postgres.rows("SELECT id, plan FROM users"))
        social.change(connection)
    after = {row[0]: row[1:] for row in postgres.rows("SELECT id, plan, verified, updated_at > created_at FROM users")}
    assert before.keys() - after.keys() and after.keys() - before.keys()
    verified = [touched for _, seen, touched in after.values() if seen]
    assert verified and all(verified)
    assert not postgres.rows("SELECT 1 FROM posts WHERE user_id NOT IN (SELECT id FROM users)")
