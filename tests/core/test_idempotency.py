"""Idempotency keys in each database that stores them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.servers.postgres import Postgres

from lakehouse.catalogs.sql import open_database
from lakehouse.core.idempotency import Database, IdempotencyStore, KeyedRequest, store_answer
from lakehouse.http.database import ServiceDatabase


@pytest.fixture(params=["service", "sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    if request.param == "service":
        with closing(ServiceDatabase(tmp_path / "service.db")) as database:
            yield database
    elif request.param == "sqlite":
        yield open_database(tmp_path / "catalog.db")
    else:
        postgres: Postgres = request.getfixturevalue("postgres")
        yield open_database(postgres.url)


def never(request: KeyedRequest) -> bool:
    return False


def outcome(store: IdempotencyStore, key: str = "k") -> tuple[int | None, str] | None:
    earlier = store.claim(key, "f", never)
    return (earlier.status, earlier.answer) if earlier else None


def test_the_first_request_is_executed_and_the_next_one_gets_its_answer(database: Database) -> None:
    store = IdempotencyStore(database)
    assert outcome(store) is None
    assert outcome(store) == (None, ""), "it still runs"
    store.finish("k", "f", 200, "done")
    assert outcome(IdempotencyStore(database)) == (200, "done"), "also after a restart"
    store.release("k")
    assert outcome(store) == (200, "done"), "a finished request is not released"


def test_a_change_and_its_answer_are_one_transaction(database: Database) -> None:
    store = IdempotencyStore(database)
    assert outcome(store) is None
    with database.transaction() as db:
        store_answer(db, "k", "f", 200, "changed")
    store.finish("k", "f", 409, "too late")
    assert outcome(store) == (200, "changed")


def test_a_key_does_not_block_after_the_transaction_of_its_change_was_rolled_back(database: Database) -> None:
    store = IdempotencyStore(database)
    assert outcome(store) is None
    with pytest.raises(KeyError), database.transaction() as db:
        store_answer(db, "k", "f", 200, "changed")
        raise KeyError
    store.finish("k", "f", 409, "refused")
    assert outcome(store) == (409, "refused")


def test_an_abandoned_request_is_replaced_if_the_caller_says_so(database: Database) -> None:
    assert outcome(IdempotencyStore(database)) is None
    store = IdempotencyStore(database)
    assert store.claim("k", "f", lambda request: request.is_own) is not None
    assert store.claim("k", "f", lambda request: not request.is_own) is None
    assert store.claim("k", "f", lambda request: not request.is_own) is not None, "now it is this store's"


def test_an_answer_is_stored_for_a_day(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    store, now = IdempotencyStore(database), time.time()
    assert outcome(store) is None
    store.finish("k", "f", 200, "done")
    monkeypatch.setattr(time, "time", lambda: now + 23 * 3600)
    assert outcome(store) == (200, "done")
    monkeypatch.setattr(time, "time", lambda: now + 25 * 3600)
    assert outcome(store) is None
