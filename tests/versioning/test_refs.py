"""Branches, tags, the log and reverts of a lake, with runs that need no Spark: what people see and what is refused."""

from __future__ import annotations

import threading

import pytest
from pyiceberg.types import StringType
from tests.support.light_runs import ONE, TWO, names_in, pyiceberg, run, stranger_adds

from lakehouse.core.errors import (
    BadNameError,
    BranchConflictError,
    NoSuchBranchError,
    NoSuchCommitError,
    NoSuchTableError,
    WhenError,
)
from lakehouse.core.names import TableName
from lakehouse.core.requests import QueryRequest
from lakehouse.lake import Lake

# ---- reading and writing on a branch --------------------------------------------------------------------------------


def test_in_a_block_everything_is_read_from_the_branch(lake: Lake) -> None:
    lake.refs.branches.create("exp")
    stranger_adds(lake, ONE, "theirs", "exp")
    with lake.branch("exp") as exp:
        assert names_in(exp, ONE) == ["first", "theirs"]
        assert len(exp.history(ONE)) == 2
        assert exp.describe(ONE).current.rows_total == 2  # type: ignore[union-attr]
        assert names_in(exp, ONE, branch="main") == ["first"]
        assert names_in(lake, ONE) == ["first"]
    assert names_in(lake, ONE) == ["first"]
    assert names_in(lake, ONE, branch="exp") == ["first", "theirs"]


def test_a_thread_started_on_a_branch_stays_on_that_branch(lake: Lake) -> None:
    lake.refs.branches.create("exp")
    stranger_adds(lake, ONE, "theirs", "exp")
    seen: list[tuple[list[str], list[str]]] = []
    with lake.branch("exp") as exp:
        other = threading.Thread(target=lambda: seen.append((names_in(exp, ONE), names_in(lake, ONE))))
        other.start()
        other.join()
    assert seen == [(["first", "theirs"], ["first"])]


def test_a_table_is_dropped_on_its_branch_alone(lake: Lake) -> None:
    lake.refs.branches.create("exp")
    with lake.branch("exp") as exp:
        exp.drop(ONE)
        assert [str(info.name) for info in exp.tables()] == [TWO]
    assert names_in(lake, ONE) == ["first"]
    assert lake.dropped() == []


def test_a_branch_that_is_not_there_is_told(lake: Lake) -> None:
    with pytest.raises(NoSuchBranchError, match="nowhere"), lake.branch("nowhere"):
        pass
    with pytest.raises(NoSuchBranchError):
        lake.refs.branches.drop("nowhere")
    with pytest.raises(NoSuchBranchError):
        lake.refs.branches.merge("nowhere")


@pytest.mark.parametrize("name", ["run_mine", "ingest_x", "Main", "a-b"])
def test_names_that_are_taken_are_refused(lake: Lake, name: str) -> None:
    with pytest.raises(BadNameError):
        lake.refs.branches.create(name)


# ---- diff and merge -------------------------------------------------------------------------------------------------


def test_a_diff_tells_rows_and_columns_and_a_merge_does_what_it_told(lake: Lake) -> None:
    from pyiceberg.types import StringType

    lake.refs.branches.create("exp", message="try")
    stranger_adds(lake, ONE, "theirs", "exp")
    theirs = pyiceberg(lake, "exp")
    with theirs.load_table(TWO).update_schema() as change:
        change.add_column("note", StringType())
    theirs.create_table("shop.three", schema=theirs.load_table(TWO).schema())
    theirs.close()
    lake.refs.branches.catalog.on("exp").drop(TableName.parse(ONE), "2026")  # type: ignore[attr-defined]
    lake.refs.branches.catalog.on("exp").undrop(TableName.parse(ONE))  # type: ignore[attr-defined]
    changes = {entry.table: entry for entry in lake.refs.branches.diff("exp")}
    assert set(changes) == {ONE, TWO, "shop.three"}
    assert (changes[ONE].change, changes[ONE].rows_added, changes[ONE].rows_removed) == ("changed", 1, 0)
    assert [column.name for column in changes[TWO].columns_added] == ["note"]
    assert changes["shop.three"].change == "added"
    assert lake.refs.branches.diff_rows("exp", TableName.parse(ONE)).rows() == [("added", "theirs", 1)]
    with pytest.raises(NoSuchTableError, match="shop.other"):
        lake.refs.branches.diff_rows("exp", TableName.parse("shop.other"))
    lake.refs.branches.create("quiet")
    assert lake.refs.branches.diff_rows("quiet", TableName.parse(TWO)).rows() == []
    lake.refs.branches.drop("quiet")
    assert lake.refs.branches.merge("exp").entry
    assert names_in(lake, ONE) == ["first", "theirs"]
    assert lake.branches() == []


def test_a_merge_that_main_overtook_names_the_table_and_leaves_everything(lake: Lake) -> None:
    lake.refs.branches.create("exp")
    stranger_adds(lake, ONE, "theirs", "exp")
    run(lake, "second", ONE)
    assert [change.conflict for change in lake.refs.branches.diff("exp")] == [True]
    with pytest.raises(BranchConflictError, match=ONE):
        lake.refs.branches.merge("exp")
    assert names_in(lake, ONE) == ["first", "second"]
    assert names_in(lake, ONE, branch="exp") == ["first", "theirs"]


# ---- time travel by tag ---------------------------------------------------------------------------------------------


def test_a_tag_is_a_when_of_every_table(lake: Lake) -> None:
    lake.refs.branches.create_tag("close", message="books")
    run(lake, "second", ONE, TWO)
    assert names_in(lake, ONE, as_of="close") == names_in(lake, TWO, as_of="close") == ["first"]
    assert lake.diff(ONE, "close").added == 1
    both = f"select count(*) from {ONE} a join {TWO} b on a.run = b.run"
    assert (lake.sql(both, as_of="close").rows(), lake.sql(both).rows()) == ([(1,)], [(2,)])
    assert names_in(lake, ONE, as_of="run_second") == ["first", "second"], "each publish is tagged with its run"
    lake.refs.branches.drop_tag("close")
    with pytest.raises(WhenError, match="close"):
        names_in(lake, ONE, as_of="close")
    with pytest.raises(NoSuchBranchError):
        lake.refs.branches.drop_tag("close")


def test_a_tag_of_a_time_before_a_table_is_no_when_of_it(lake: Lake) -> None:
    lake.refs.branches.create_tag("close")
    run(lake, "second", "shop.three")
    with pytest.raises(WhenError, match="close"):
        names_in(lake, "shop.three", as_of="close")


# ---- log and revert -------------------------------------------------------------------------------------------------


def test_the_log_tells_of_others_commits_too_and_of_none_twice(lake: Lake) -> None:
    stranger_adds(lake, ONE, "theirs")
    run(lake, "second", ONE, TWO)
    lines = lake.refs.log.lines()
    assert [(line.what, line.run, line.tables) for line in lines] == [
        ("publish", "second", (ONE, TWO)),
        ("append", "", (ONE,)),
        ("publish", "first", (ONE, TWO)),
    ]
    assert [line.run for line in lake.refs.log.lines(TableName.parse(TWO))] == ["second", "first"]
    assert [line.run for line in lake.refs.log.lines(limit=2)] == ["second", ""]


def test_a_run_is_reverted_by_its_name_in_all_its_tables(lake: Lake) -> None:
    run(lake, "second", ONE, TWO, "shop.three")
    done = lake.refs.log.revert("run_second", "the source was wrong")
    assert names_in(lake, ONE) == names_in(lake, TWO) == ["first"]
    assert [str(info.name) for info in lake.tables()] == [ONE, TWO]
    line = lake.refs.log.lines()[0]
    assert (line.what, line.message, line.commit) == ("revert", "the source was wrong", done.entry)
    lake.refs.log.revert(done.entry)
    assert names_in(lake, "shop.three") == ["second"]


def test_a_run_that_was_reverted_is_done_again_under_its_id(lake: Lake) -> None:
    run(lake, "second", ONE, TWO)
    lake.refs.log.revert("run_second")
    assert names_in(lake, ONE) == ["first"]
    again = run(lake, "second", ONE, TWO)
    assert (again.state, names_in(lake, ONE), names_in(lake, TWO)) == (
        "published",
        ["first", "second"],
        ["first", "second"],
    )
    assert run(lake, "second", ONE, TWO) == again and names_in(lake, ONE) == ["first", "second"]
    undone = lake.refs.log.revert("run_second")
    lake.refs.log.revert(undone.entry)
    assert run(lake, "second", ONE, TWO) == again and names_in(lake, ONE) == ["first", "second"]


def test_a_revert_that_would_lose_later_work_is_refused(lake: Lake) -> None:
    record = run(lake, "second", ONE, TWO)
    stranger_adds(lake, TWO, "theirs")
    with pytest.raises(BranchConflictError, match=TWO):
        lake.refs.log.revert(record.commit)
    assert names_in(lake, ONE) == ["first", "second"]
    with pytest.raises(NoSuchCommitError):
        lake.refs.log.revert("nothing")


def test_what_a_revert_would_change_is_shown_before(lake: Lake) -> None:
    record = run(lake, "second", ONE, TWO, "shop.three")
    stranger_adds(lake, TWO, "theirs")
    preview = lake.refs.log.preview_revert(record.commit)
    assert [
        (change.table, change.change, change.rows_before, change.rows_after, change.conflict) for change in preview
    ] == [
        (ONE, "changed", 2, 1, False),
        ("shop.three", "removed", 1, 0, False),
        (TWO, "changed", 2, 1, True),
    ]
    assert names_in(lake, ONE) == ["first", "second"]
    with pytest.raises(NoSuchCommitError):
        lake.refs.log.preview_revert("nothing")


def test_a_snapshot_names_the_commit_that_published_it(lake: Lake) -> None:
    record = run(lake, "second", ONE)
    stranger_adds(lake, ONE, "theirs")
    first, second, theirs = [snapshot.id for snapshot in lake.history(ONE)]
    log, name = lake.refs.log, TableName.parse(ONE)
    assert [line.run if (line := log.commit_of(name, snapshot)) else None for snapshot in (first, second, theirs)] == [
        "first", "second", None,
    ]  # fmt: skip
    entry = log.commit_of(name, second)
    assert entry is not None and entry.commit == record.commit
    assert log.commit_of(name, "12345") is None


# ---- a branch or a tag from a snapshot ------------------------------------------------------------------------------


def test_a_branch_starts_with_a_table_as_it_was(lake: Lake) -> None:
    then = lake.history(ONE)[0].id
    run(lake, "second", ONE, TWO)
    stranger_adds(lake, ONE, "theirs")
    catalog = pyiceberg(lake)
    with catalog.load_table(ONE).update_schema() as update:
        update.add_column("extra", StringType())
    catalog.close()
    assert "extra" in [column.name for column in lake.describe(ONE).columns]
    lake.refs.branches.create("back", table=ONE, at=then)
    assert names_in(lake, ONE, branch="back") == ["first"]
    assert names_in(lake, TWO, branch="back") == ["first", "second"]
    with lake.branch("back") as back:
        assert "extra" not in [column.name for column in back.describe(ONE).columns]
        assert [snapshot.is_current for snapshot in back.history(ONE)] == [True, False, False]
    assert [change.table for change in lake.refs.branches.diff("back")] == [ONE]
    assert names_in(lake, ONE) == ["first", "second", "theirs"]
    lake.refs.branches.merge("back")
    assert names_in(lake, ONE) == ["first"] and len(lake.history(ONE)) == 3


def test_a_tag_holds_a_table_as_it_was(lake: Lake) -> None:
    then = lake.history(ONE)[0].id
    run(lake, "second", ONE, TWO)
    lake.refs.branches.create_tag("before", table=ONE, at=then)
    assert (names_in(lake, ONE, as_of="before"), names_in(lake, TWO, as_of="before")) == (
        ["first"],
        ["first", "second"],
    )
    assert lake.branches() == [] and names_in(lake, ONE) == ["first", "second"]
    lake.refs.branches.create("again", "before")
    assert names_in(lake, ONE, branch="again") == ["first"]


@pytest.mark.parametrize(
    ("table", "at", "error"),
    [(ONE, "12345", WhenError), (ONE, "", WhenError), ("shop.none", "now", NoSuchTableError)],
    ids=["no-snapshot", "no-moment", "no-table"],
)
def test_a_branch_that_cannot_start_there_is_not_left_behind(
    lake: Lake, table: str, at: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        lake.refs.branches.create("back", table=table, at=at)
    with pytest.raises(error):
        lake.refs.branches.create_tag("before", table=table, at=at)
    assert lake.branches() == [] and not [tag for tag in lake.refs.branches.tags() if tag.name == "before"]


# ---- files that branches share --------------------------------------------------------------------------------------


@pytest.mark.parametrize("procedure", ["run_clean", "REMOVE_ORPHAN_FILES"])
def test_no_statement_deletes_files_that_branches_may_need(lake: Lake, procedure: str) -> None:
    from lakehouse.core.errors import NotSupportedError

    with pytest.raises(NotSupportedError, match=procedure.lower()):
        lake.query(QueryRequest(f"CALL lake.system.{procedure}(table => '{ONE}')"), "spark")


def test_an_expiry_in_sql_is_the_lakes_own_and_deletes_no_file(lake: Lake) -> None:
    before = sorted(path for path in (lake.folder / "warehouse").rglob("*") if path.is_file())
    done = lake.query(QueryRequest(f"CALL lake.system.expire_snapshots(table => '{ONE}')"), "spark")
    assert done.rows() == [] and before == sorted(p for p in (lake.folder / "warehouse").rglob("*") if p.is_file())


@pytest.mark.parametrize("name", ["lake", "main"])
def test_main_cannot_be_dropped_and_nothing_of_it_is_lost(lake: Lake, name: str) -> None:
    lines = lake.refs.log.lines()
    with pytest.raises(NoSuchBranchError):
        lake.refs.branches.drop(name)
    assert names_in(lake, ONE) == ["first"]
    assert lake.refs.log.lines() == lines
