"""Merges and cherry-picks onto tables that main has changed, too: rows are combined where their keys allow it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.audit import audit
from tests.support.small_lake import opened

from lakehouse.core.errors import BranchConflictError, BranchProtectedError, NoSuchCommitError, PublishRefusedError
from lakehouse.lake import Lake

Rows = dict[int, str]
FIVE: Rows = {number: f"name {number}" for number in range(1, 6)}
TABLE = "crm.leads"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """One lake for all tests: opening it takes longer than a merge."""
    with opened(tmp_path_factory.mktemp("combine") / "lake") as small:
        yield small.lake


@pytest.fixture
def lake(shared: Lake) -> Lake:
    """The lake with crm.leads alone."""
    for branch in shared.branches():
        shared.refs.branches.drop(branch)
    for table in shared.table_names():
        shared.drop(table)
    put(shared, FIVE)
    return shared


def put(lake: Lake, rows: Rows, table: str = TABLE, mode: str = "", branch: str = "") -> None:
    """Upsert rows by id, or replace all of them."""
    listed = [{"id": number, "name": name} for number, name in rows.items()]
    lake.ingest_rows(listed, into=table, key=["id"], mode=mode, branch=branch)


def rows(lake: Lake, table: str = TABLE) -> Rows:
    return dict(sorted(lake.sql(f"select id, name from {table}", engine="duckdb").rows()))


def test_rows_of_different_keys_are_merged(lake: Lake) -> None:
    lake.refs.branches.create("exp")
    put(lake, {2: "two", 6: "six"}, branch="exp")
    put(lake, {3: "three", 7: "seven"})
    assert [change.conflict for change in lake.refs.branches.diff("exp")] == [False]
    with audit(lake, {TABLE: {"id": {2, 6}}}, refs={"exp"}, leaves=True):  # the files of the branch go with it
        done = lake.refs.branches.merge("exp", "both")
    assert rows(lake) == {**FIVE, 2: "two", 3: "three", 6: "six", 7: "seven"}
    assert lake.branches() == []
    (line, *_) = lake.refs.log.lines(limit=1)
    assert (line.commit, line.what, line.message, line.tables) == (done.entry, "merge", "both", (TABLE,))
    assert lake.history(TABLE)[-1].notes["merged"] == "exp"


def test_removed_rows_are_merged(lake: Lake) -> None:
    lake.refs.branches.create("exp")
    put(lake, {number: FIVE[number] for number in (1, 2, 4, 5)}, mode="replace", branch="exp")  # removes 3
    put(lake, {number: FIVE[number] for number in (1, 2, 3, 4)} | {6: "six"}, mode="replace")  # removes 5
    lake.refs.branches.merge("exp")
    assert rows(lake) == {1: "name 1", 2: "name 2", 4: "name 4", 6: "six"}


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        pytest.param({2: "ours"}, {2: "theirs"}, id="both-changed"),
        pytest.param({8: "ours"}, {8: "theirs"}, id="both-added"),
        pytest.param({2: "ours"}, None, id="changed-and-removed"),
    ],
)
def test_rows_of_the_same_key_are_a_conflict_that_names_them(lake: Lake, ours: Rows, theirs: Rows | None) -> None:
    lake.refs.branches.create("exp")
    put(lake, {**ours, 20: "more"}, branch="exp")
    if theirs is None:
        put(lake, {number: name for number, name in FIVE.items() if number != 2}, mode="replace")
    else:
        put(lake, {**theirs, 30: "more"})
    before = rows(lake)
    assert [change.conflict for change in lake.refs.branches.diff("exp")] == [True]
    with pytest.raises(BranchConflictError, match=rf"{TABLE}: both changed id = {next(iter(ours))}\."), audit(lake):
        lake.refs.branches.merge("exp")
    assert rows(lake) == before
    assert lake.branches() == ["exp"]


def test_rows_that_both_sides_changed_alike_are_no_conflict(lake: Lake) -> None:
    lake.refs.branches.create("exp")
    for branch in ("exp", ""):
        put(lake, {2: "two", 6: "six"}, branch=branch)
    lake.refs.branches.merge("exp")
    assert rows(lake) == {**FIVE, 2: "two", 6: "six"}


def test_a_conflict_names_five_keys(lake: Lake) -> None:
    lake.refs.branches.create("exp")
    put(lake, dict.fromkeys(range(10, 20), "ours"), branch="exp")
    put(lake, dict.fromkeys(range(10, 20), "theirs"))
    with pytest.raises(BranchConflictError, match=r"both changed id = 10, 11, 12, 13, 14, …"):
        lake.refs.branches.merge("exp")


def test_other_tables_of_the_branch_are_published_with_it(lake: Lake) -> None:
    put(lake, {1: "old"}, "crm.other")
    put(lake, {1: "old"}, "crm.gone")
    lake.refs.branches.create("exp")
    put(lake, {2: "two"}, branch="exp")
    put(lake, {1: "new"}, "crm.other", branch="exp")
    put(lake, {1: "first"}, "crm.added", branch="exp")
    lake.branch("exp").drop("crm.gone")
    put(lake, {3: "three"})
    lake.refs.branches.merge("exp")
    assert rows(lake) == {**FIVE, 2: "two", 3: "three"}
    assert rows(lake, "crm.other") == {1: "new"}
    assert rows(lake, "crm.added") == {1: "first"}
    assert "crm.gone" not in lake.table_names()
    assert sorted(lake.refs.log.lines(limit=1)[0].tables) == ["crm.added", "crm.gone", "crm.leads", "crm.other"]


def test_one_table_with_a_conflict_keeps_all_from_being_published(lake: Lake) -> None:
    put(lake, {1: "old"}, "crm.other")
    lake.refs.branches.create("exp")
    put(lake, {2: "two"}, branch="exp")
    put(lake, {1: "ours"}, "crm.other", branch="exp")
    put(lake, {3: "three"})
    put(lake, {1: "theirs"}, "crm.other")
    with pytest.raises(BranchConflictError, match=r"since\. crm\.other: both changed id = 1\."):
        lake.refs.branches.merge("exp")
    assert rows(lake) == {**FIVE, 3: "three"}


def _without_key(lake: Lake) -> None:
    for branch in ("exp", ""):
        lake.ingest_rows([{"id": 6, "name": branch}], into="crm.loose", branch=branch)


def _another_column(lake: Lake) -> None:
    put(lake, {2: "two"})
    lake.ingest_rows([{"id": 3, "name": "three", "more": 1}], into=TABLE, key=["id"], branch="exp")


def _key_twice(lake: Lake) -> None:
    lake.ingest_rows([{"id": 6, "name": "again"}] * 2, into=TABLE, mode="append", branch="exp")
    put(lake, {2: "two"})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(_without_key, "crm.loose: it has no key", id="no-key"),
        pytest.param(_another_column, "crm.leads: its columns or its key have changed", id="columns"),
        pytest.param(_key_twice, "crm.leads: its key id is null or there twice", id="key-twice"),
    ],
)
def test_what_keys_cannot_prove_is_a_conflict(lake: Lake, change: Callable[[Lake], None], reason: str) -> None:
    lake.ingest_rows([{"id": 1, "name": "loose"}], into="crm.loose")
    lake.refs.branches.create("exp")
    change(lake)
    with pytest.raises(BranchConflictError, match=reason):
        lake.refs.branches.merge("exp")


def test_files_that_came_with_the_branch_are_not_ingested_again(lake: Lake, tmp_path: Path) -> None:
    file = tmp_path / "six.csv"
    file.write_text("id,name\n6,six\n")
    lake.refs.branches.create("exp")
    lake.ingest(file, into=TABLE, key=["id"], branch="exp")
    put(lake, {3: "three"})
    lake.refs.branches.merge("exp")
    assert lake.ingest(file, into=TABLE, key=["id"]).skipped == (str(file),)


def hooked(home: Path, answer: str) -> Any:
    return opened(home, hooks__before_publish=["sh", "-c", f"cat > {home.parent}/asked.json; {answer}"])


def test_the_hook_sees_the_combined_changes_once_and_can_refuse_them(home: Path) -> None:
    with opened(home) as small:
        put(small.lake, FIVE)
        small.lake.refs.branches.create("exp")
        put(small.lake, {2: "two"}, branch="exp")
        put(small.lake, {3: "three"})
    with hooked(home, "echo not today >&2; exit 1") as small, pytest.raises(PublishRefusedError, match="not today"):
        small.lake.refs.branches.merge("exp")
    asked = json.loads((home.parent / "asked.json").read_text())
    assert (asked["branch"], [table["table"] for table in asked["tables"]]) == ("exp", [TABLE])
    with opened(home) as small:
        assert rows(small.lake) == {**FIVE, 3: "three"}
        assert small.lake.branches() == ["exp"]


# ---- cherry-pick ------------------------------------------------------------------------------------------------


def newest_commit(lake: Lake, branch: str = "main") -> str:
    return lake.refs.log.lines(limit=1, branch=branch)[0].commit


def test_one_commit_of_a_branch_is_published_without_the_others(lake: Lake) -> None:
    lake.refs.branches.create("exp")
    put(lake, {2: "two"}, branch="exp")
    put(lake, {6: "six"}, branch="exp")
    commit = newest_commit(lake, "exp")
    put(lake, {3: "three"}, branch="exp")
    with audit(lake, {TABLE: {"id": {6}}}):
        done = lake.refs.log.cherry_pick(commit)
    assert rows(lake) == {**FIVE, 6: "six"}
    line = lake.refs.log.lines(limit=1)[0]
    assert (line.commit, line.what) == (done.entry, "cherry-pick")
    assert lake.branches() == ["exp"]
    lake.refs.branches.merge("exp")  # what was picked is the same on both sides
    assert rows(lake) == {**FIVE, 2: "two", 3: "three", 6: "six"}


def test_a_commit_that_was_reverted_is_published_again(lake: Lake) -> None:
    put(lake, {2: "two"})
    commit = newest_commit(lake)
    lake.refs.log.revert(commit)
    put(lake, {3: "three"})
    lake.refs.log.cherry_pick(commit, "it was right")
    assert rows(lake) == {**FIVE, 2: "two", 3: "three"}
    assert lake.refs.log.lines(limit=1)[0].message == "it was right"


def test_a_commit_on_rows_that_main_changed_is_a_conflict(lake: Lake) -> None:
    lake.refs.branches.create("exp")
    put(lake, {2: "ours"}, branch="exp")
    commit = newest_commit(lake, "exp")
    put(lake, {2: "theirs"})
    with pytest.raises(BranchConflictError, match=rf"tables of commit {commit} since\. {TABLE}: both changed id = 2\."):
        lake.refs.log.cherry_pick(commit)


def test_a_commit_that_is_published_already_changes_nothing(lake: Lake) -> None:
    put(lake, {2: "two"})
    with audit(lake):
        assert lake.refs.log.cherry_pick(newest_commit(lake)).entry == ""


def test_a_commit_that_does_not_exist_is_named(lake: Lake) -> None:
    with pytest.raises(NoSuchCommitError, match="'999'"):
        lake.refs.log.cherry_pick("999")


def test_nothing_is_picked_onto_a_protected_main(home: Path) -> None:
    with opened(home) as small:
        put(small.lake, FIVE)
        commit = newest_commit(small.lake)
    with opened(home, branches__protected=["main"]) as small, pytest.raises(BranchProtectedError):
        small.lake.refs.log.cherry_pick(commit)


@pytest.mark.spark
def test_spark_combines_rows_that_duckdb_cannot_write(shared_lake: Lake, namespace: str) -> None:
    table, branch = f"{namespace}.places", f"b_{namespace}"[:40]
    shared_lake.sql(
        f"CREATE TABLE {table} (id INT, at STRUCT<city: STRING, zip: INT>, price DECIMAL(9,2), seen TIMESTAMP)"
        " TBLPROPERTIES ('lake.key' = 'id')"
    )
    place = "named_struct('city', 'Bonn', 'zip', 53111), 1.50, TIMESTAMP '2026-01-14 10:00:00'"
    shared_lake.sql(f"INSERT INTO {table} VALUES (1, {place}), (2, {place}), (3, {place}), (4, {place})")
    shared_lake.refs.branches.create(branch)
    with shared_lake.branch(branch) as on_branch:
        on_branch.sql(f"UPDATE {table} SET at = named_struct('city', 'Ulm', 'zip', 89073) WHERE id = 1")
        on_branch.sql(f"DELETE FROM {table} WHERE id = 2")
    shared_lake.sql(f"DELETE FROM {table} WHERE id = 3")
    shared_lake.refs.branches.merge(branch)
    rows = shared_lake.sql(f"SELECT id, at.city, price FROM {table} ORDER BY id", engine="spark").rows()
    assert [(row[0], row[1], str(row[2])) for row in rows] == [(1, "Ulm", "1.50"), (4, "Bonn", "1.50")]
