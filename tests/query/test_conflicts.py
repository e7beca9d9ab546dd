"""Statements that lose a race: how often, how long and which of them are tried again."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from lakehouse.core.cancel import CancelScope
from lakehouse.core.errors import CommitConflictError, EngineError
from lakehouse.core.names import TableName
from lakehouse.core.requests import QueryRequest
from lakehouse.core.result import Explain, ListedRows, Result
from lakehouse.process.files import locked, table_lock
from lakehouse.query.conflicts import ConflictRetries
from lakehouse.query.sql.parser import parse

UPDATE = "update shop.orders set n = n + 1"


class LosingWork:
    """Loses a race some times, then commits."""

    def __init__(self, losses: int) -> None:
        self.losses, self.runs = losses, 0

    def __call__(self) -> Result:
        self.runs += 1
        if self.runs <= self.losses:
            raise CommitConflictError("Other writers changed the table while the statement ran.")
        return Result((), ListedRows([], []), Explain("spark", "it writes"))


def attempt(folder: Path, sql: str, work: LosingWork, *, ingest_into: str = "", turn_s: float = 15.0) -> Result:
    retries = ConflictRetries(folder, attempts=4, turn_s=turn_s, first_pause_s=0.001)
    return retries.run(parse(sql), QueryRequest(sql, ingest_into=ingest_into), work)


@pytest.mark.parametrize(
    "sql",
    [
        UPDATE,
        "delete from shop.orders where id = 1",
        "insert into shop.orders select * from shop.others",
        "merge into shop.orders t using shop.others s on t.id = s.id when matched then delete",
    ],
    ids=["update", "delete", "insert", "merge"],
)
def test_a_statement_that_changes_rows_is_run_again_after_a_conflict(tmp_path: Path, sql: str) -> None:
    work = LosingWork(3)
    attempt(tmp_path, sql, work)
    assert work.runs == 4


def test_after_its_last_attempt_a_statement_says_that_nothing_was_written_and_to_run_it_again(tmp_path: Path) -> None:
    work = LosingWork(99)
    with pytest.raises(CommitConflictError, match="changed shop.orders during all 4 attempts") as raised:
        attempt(tmp_path, UPDATE, work)
    assert raised.value.hint == "Nothing was written. Run it again when fewer writers are active."
    assert work.runs == 4


@pytest.mark.parametrize(
    ("sql", "ingest_into"),
    [("alter table shop.orders add column x int", ""), (UPDATE, "shop.orders")],
    ids=["other statements", "statements of an ingest, which starts again itself"],
)
def test_what_others_repeat_is_run_once(tmp_path: Path, sql: str, ingest_into: str) -> None:
    work = LosingWork(1)
    with pytest.raises(CommitConflictError):
        attempt(tmp_path, sql, work, ingest_into=ingest_into)
    assert work.runs == 1


def test_a_loser_waits_for_its_turn_and_goes_on_without_it_in_the_end(tmp_path: Path) -> None:
    work, ended = LosingWork(1), threading.Event()

    def run() -> None:
        attempt(tmp_path, UPDATE, work, turn_s=3.0)
        ended.set()

    with locked(table_lock(tmp_path, TableName.parse("shop.orders"))):  # as an ingest does
        threading.Thread(target=run).start()
        assert not ended.wait(0.5)
        assert work.runs == 1
        assert ended.wait(10)
    assert work.runs == 2


def test_a_canceled_statement_does_not_run_again(tmp_path: Path) -> None:
    scope, work = CancelScope(), LosingWork(99)
    retries = ConflictRetries(tmp_path, first_pause_s=1e6, longest_pause_s=1e6)
    threading.Timer(0.2, scope.cancel).start()
    begun = time.monotonic()
    with scope.active(), pytest.raises(EngineError, match="nothing was committed"):
        retries.run(parse(UPDATE), QueryRequest(UPDATE), work)
    assert work.runs == 1
    assert time.monotonic() - begun < 60, "a pause takes a million seconds"
