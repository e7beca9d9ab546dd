"""Branches, tags, the log and reverts of a lake, with runs that need no Spark: what people see and what is refused."""

from __future__ import annotations

import threading

import pytest
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
    changes = {each.table: each for each in lake.refs.branches.diff("exp")}
    assert set(changes) == {ONE, TWO, "shop.three"}
    assert (changes[ONE].change, changes[ONE].rows_added, changes[ONE].rows_removed) == ("changed", 1, 0)
    assert [column.name for column in changes[TWO].columns_added] == ["note"]
    assert changes["shop.three"].change == "added"
    assert lake.refs.branches.diff_rows("exp", TableName.parse(ONE)).rows() == [("added", "theirs", 1)]
    with pytest.raises(NoSuchTableError):
        lake.refs.branches.diff_rows("exp", TableName.parse("shop.other"))
    assert lake.refs.branches.merge("exp").entry
    assert names_in(lake, ONE) == ["first", "theirs"]
    assert lake.branches() == []


def test_a_merge_that_main_overtook_names_the_table_and_leaves_everything(lake: Lake) -> None:
    lake.refs.branches.create("exp")
    stranger_adds(lake, ONE, "theirs", "exp")
    run(lake, "second", ONE)
    assert [each.conflict for each in lake.refs.branches.diff("exp")] == [True]
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
