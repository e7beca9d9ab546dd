"""Runs and their branches: kept, resumed, expired."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.support.light_runs import ONE, TWO, names_in, run
from tests.support.transaction_pipelines import writing

from lakehouse.core.errors import (
    RunBlockedError,
    RunConflictError,
)
from lakehouse.lake import Lake
from lakehouse.pipelines import LightContext, Pipeline, Table
from lakehouse.runs import recovery


def test_a_run_says_what_it_began_from_and_which_commit_it_became(lake: Lake) -> None:
    before = lake.refs.branches.catalog.state_hash()
    record = run(lake, "second", ONE, message="nightly", author="grace")
    assert record.started_from == before
    line = lake.refs.log.lines()[0]
    assert (line.commit, line.what, line.run, line.author) == (record.commit, "publish", "second", "grace")
    assert (line.message, line.pipeline, line.tables) == ("nightly", "second", (ONE,))


def test_a_kept_run_is_merged_later_and_known_as_published(lake: Lake) -> None:
    record = run(lake, "second", ONE, publish=False)
    assert record.state == "kept"
    assert names_in(lake, ONE) == ["first"]
    assert [change.rows_added for change in lake.refs.branches.diff(record.branch)] == [1]
    with pytest.raises(RunBlockedError, match="branch merge|kept"):
        recovery.resume_request(record)
    assert lake.refs.branches.merge(record.branch, "reviewed").entry
    assert lake.run_record("second").state == "published"
    assert lake.refs.log.lines()[0].message == "reviewed"
    assert run(lake, "second", ONE).state == "published", "and is not done again"
    assert names_in(lake, ONE) == ["first", "second"]


class Once:
    """Work that fails the first time."""

    def __init__(self) -> None:
        self.failed = False


def failing(table: str, first: str) -> tuple[Pipeline, Once, list[str]]:
    """A pipeline of two tables, the second of which fails once after it has written a row; and the tables that were built."""
    once, built = Once(), []
    good = writing("halting", "r", [first]).tables[0]
    bad = writing("halting", "r", [table]).tables[0]
    assert isinstance(good, Table) and isinstance(bad, Table) and good.light and bad.light

    def first_table(context: LightContext) -> int:
        built.append(first)
        return good.light(context)  # type: ignore[misc]

    def second_table(context: LightContext) -> int:
        built.append(table)
        rows = bad.light(context)  # type: ignore[misc]
        if not once.failed:
            once.failed = True
            raise RunBlockedError("this does not hold", "")
        return rows

    return Pipeline("halting", (replace(good, light=first_table), replace(bad, light=second_table))), once, built


def test_a_failed_run_keeps_its_branch_and_a_resumed_one_begins_the_failed_table_anew(lake: Lake) -> None:
    pipeline, _, built = failing(TWO, ONE)
    with pytest.raises(RunBlockedError):
        lake.run(pipeline, id="halted", light=True)
    record = lake.run_record("halted")
    assert (record.state, [entry.table for entry in record.tables]) == ("blocked", [ONE])
    assert names_in(lake, TWO, branch="run_halted") == ["first", "r"], "what it wrote can be looked at"
    with pytest.raises(RunBlockedError, match="blocked"):
        lake.refs.branches.merge("run_halted")
    done = lake._components.runner().run(pipeline, recovery.resume_request(record))
    assert done.state == "published"
    assert names_in(lake, TWO) == ["first", "r"], "the row that was not checked is not there twice"
    assert built.count(TWO) == 2


def test_a_run_in_progress_is_not_started_again(lake: Lake) -> None:
    runner = lake._components.runner()
    record = run(lake, "second", ONE, publish=False)
    runner.log.save(replace(record, state="running"))
    with pytest.raises(RunConflictError, match="already in progress"):
        run(lake, "second", ONE)
    with pytest.raises(RunBlockedError, match="running"):
        lake.refs.branches.drop(record.branch)


def test_old_branches_and_tags_of_runs_expire_and_nothing_else_does(lake: Lake, home: Path) -> None:
    record = run(lake, "second", ONE, publish=False)
    lake.refs.branches.create("mine")
    lake.refs.branches.create_tag("close")
    long_ago = (datetime.now(UTC) - timedelta(days=40)).isoformat()
    with lake.refs.branches.catalog.database.transaction() as db:  # type: ignore[attr-defined]
        for table in ("lake_branches", "lake_tags"):
            db.execute(f"UPDATE {table} SET made_at = ?", (long_ago,))
    assert recovery.expire(lake.refs.branches.catalog, lake.refs.branches.runs, 41) == []
    assert recovery.expire(lake.refs.branches.catalog, lake.refs.branches.runs, 0) == []
    run(lake, "third", ONE)
    assert lake.branches() == ["mine"], f"{record.branch} is old"
    assert [ref.name for ref in lake.refs.branches.tags()] == ["close", "run_third"]
