"""Branches, tags, the log and reverts of a lake, with runs that need no Spark: what people see and what is refused."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog as PyIceberg
from tests.transactions import opened, writing

from lakehouse.assemble import assemble
from lakehouse.config.load import load_settings
from lakehouse.core.errors import (
    BadNameError,
    BadSettingError,
    BranchConflictError,
    BranchProtectedError,
    NoSuchBranchError,
    NoSuchCommitError,
    NoSuchTableError,
    PublishRefusedError,
    RunBlockedError,
    RunConflictError,
    WhenError,
)
from lakehouse.core.names import TableName
from lakehouse.core.ports import Request
from lakehouse.lake import Lake
from lakehouse.pipelines import Pipeline, Table
from lakehouse.runs import kept

ONE, TWO = "shop.one", "shop.two"


@pytest.fixture
def lake(home: Path) -> Iterator[Lake]:
    with opened(home) as found:
        run(found, "first", ONE, TWO)
        yield found


def run(lake: Lake, name: str, *tables: str, **asked: Any) -> Any:
    """A run that adds a row with its own name to some tables."""
    return lake.run(writing(name, name, list(tables)), id=name, light=True, **asked)


def names_in(lake: Lake, table: str, **options: str) -> list[str]:
    return [row[0] for row in lake.sql(f"select run from {table} order by run", **options).rows()]


def with_settings(home: Path, **flags: Any) -> Lake:
    asked = {
        "home": home,
        "spark.master": "local[1]",
        **{key.replace("__", "."): value for key, value in flags.items()},
    }
    return assemble(load_settings(asked, environ={}))


def pyiceberg(lake: Lake, branch: str = "main") -> PyIceberg:
    catalog = lake.refs.catalog.on(branch)
    return PyIceberg(catalog.name, **catalog.pyiceberg_properties())  # type: ignore[attr-defined]


def stranger_adds(lake: Lake, table: str, name: str, branch: str = "main") -> None:
    """A commit that does not pass through us."""
    import pyarrow

    theirs = pyiceberg(lake, branch)
    held = theirs.load_table(table)
    held.append(pyarrow.table({"run": [name], "n": [1]}, schema=held.schema().as_arrow()))
    theirs.close()


# ---- reading and writing on a branch --------------------------------------------------------------------------------


def test_in_a_block_everything_is_read_from_the_branch(lake: Lake) -> None:
    lake.refs.branches.create("exp")
    stranger_adds(lake, ONE, "theirs", "exp")
    with lake.branch("exp") as same:
        assert same is lake
        assert names_in(lake, ONE) == ["first", "theirs"]
        assert len(lake.history(ONE)) == 2
        assert lake.describe(ONE).current.rows_total == 2  # type: ignore[union-attr]
        assert names_in(lake, ONE, branch="main") == ["first"]
    assert names_in(lake, ONE) == ["first"]
    assert names_in(lake, ONE, branch="exp") == ["first", "theirs"]


def test_a_block_ends_also_when_it_fails_and_is_of_its_thread_alone(lake: Lake) -> None:
    lake.refs.branches.create("exp")
    stranger_adds(lake, ONE, "theirs", "exp")
    seen: list[list[str]] = []
    with pytest.raises(ZeroDivisionError), lake.branch("exp"):
        other = threading.Thread(target=lambda: seen.append(names_in(lake, ONE)))
        other.start()
        other.join()
        raise ZeroDivisionError
    assert seen == [["first"]]
    assert names_in(lake, ONE) == ["first"]


def test_a_table_is_dropped_on_its_branch_alone(lake: Lake) -> None:
    lake.refs.branches.create("exp")
    with lake.branch("exp"):
        lake.drop(ONE)
        assert [str(info.name) for info in lake.tables()] == [TWO]
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
    lake.refs.catalog.on("exp").drop(TableName.parse(ONE), "2026")  # type: ignore[attr-defined]
    lake.refs.catalog.on("exp").undrop(TableName.parse(ONE))  # type: ignore[attr-defined]
    told = {each.table: each for each in lake.refs.branches.diff("exp")}
    assert set(told) == {ONE, TWO, "shop.three"}
    assert (told[ONE].change, told[ONE].rows_added, told[ONE].rows_removed) == ("changed", 1, 0)
    assert [column.name for column in told[TWO].columns_added] == ["note"]
    assert told["shop.three"].change == "added"
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


# ---- runs -----------------------------------------------------------------------------------------------------------


def test_a_run_says_what_it_began_from_and_which_commit_it_became(lake: Lake) -> None:
    before = lake.refs.catalog.state()
    record = run(lake, "second", ONE, message="nightly", author="grace")
    assert record.started_from == before
    line = lake.refs.log.lines()[0]
    assert (line.commit, line.what, line.run, line.author) == (record.commit, "publish", "second", "grace")
    assert (line.message, line.pipeline, line.tables) == ("nightly", "second", (ONE,))


def test_a_kept_run_is_merged_later_and_known_as_published(lake: Lake) -> None:
    record = run(lake, "second", ONE, publish=False)
    assert record.state == "kept"
    assert names_in(lake, ONE) == ["first"]
    assert [each.rows_added for each in lake.refs.branches.diff(record.branch)] == [1]
    with pytest.raises(RunBlockedError, match="branch merge|kept"):
        kept.asked_again(record)
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
    """A pipeline of two tables, the second of which fails once after it has written a row; and what was made."""
    once, made = Once(), []
    good = writing("halting", "r", [first]).tables[0]
    bad = writing("halting", "r", [table]).tables[0]
    assert isinstance(good, Table) and isinstance(bad, Table) and good.light and bad.light

    def first_table(catalog: Any, settings: Any) -> int:
        made.append(first)
        return good.light(catalog, settings)  # type: ignore[misc]

    def second_table(catalog: Any, settings: Any) -> int:
        made.append(table)
        rows = bad.light(catalog, settings)  # type: ignore[misc]
        if not once.failed:
            once.failed = True
            raise RunBlockedError("this does not hold", "")
        return rows

    return Pipeline("halting", (replace(good, light=first_table), replace(bad, light=second_table))), once, made


def test_a_failed_run_keeps_its_branch_and_a_resumed_one_begins_the_failed_table_anew(lake: Lake) -> None:
    pipeline, _, made = failing(TWO, ONE)
    with pytest.raises(RunBlockedError):
        lake.run(pipeline, id="halted", light=True)
    record = lake.run_record("halted")
    assert (record.state, [each.table for each in record.tables]) == ("blocked", [ONE])
    assert names_in(lake, TWO, branch="run_halted") == ["first", "r"], "what it wrote can be looked at"
    with pytest.raises(RunBlockedError, match="blocked"):
        lake.refs.branches.merge("run_halted")
    done = lake._rooms.runner().run(pipeline, kept.asked_again(record))
    assert done.state == "published"
    assert names_in(lake, TWO) == ["first", "r"], "the row that was not checked is not there twice"
    assert made.count(TWO) == 2


def test_a_run_that_is_going_on_is_not_begun_again(lake: Lake) -> None:
    runner = lake._rooms.runner()
    record = run(lake, "second", ONE, publish=False)
    runner.log.save(replace(record, state="running"))
    with pytest.raises(RunConflictError, match="going on"):
        run(lake, "second", ONE)
    with pytest.raises(RunBlockedError, match="running"):
        lake.refs.branches.drop(record.branch)


def test_old_branches_and_tags_of_runs_expire_and_nothing_else_does(lake: Lake, home: Path) -> None:
    record = run(lake, "second", ONE, publish=False)
    lake.refs.branches.create("mine")
    lake.refs.branches.create_tag("close")
    long_ago = (datetime.now(UTC) - timedelta(days=40)).isoformat()
    with lake.refs.catalog.database.transaction() as db:  # type: ignore[attr-defined]
        for table in ("lake_branches", "lake_tags"):
            db.execute(f"UPDATE {table} SET made_at = ?", (long_ago,))
    assert kept.expire(lake.refs.catalog, lake.refs.runs, 41) == []
    assert kept.expire(lake.refs.catalog, lake.refs.runs, 0) == []
    run(lake, "third", ONE)
    assert lake.branches() == ["mine"], f"{record.branch} is old"
    assert [ref.name for ref in lake.refs.branches.tags()] == ["close", "run_third"]


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


def test_a_revert_that_would_lose_later_work_is_refused(lake: Lake) -> None:
    record = run(lake, "second", ONE, TWO)
    stranger_adds(lake, TWO, "theirs")
    with pytest.raises(BranchConflictError, match=TWO):
        lake.refs.log.revert(record.commit)
    assert names_in(lake, ONE) == ["first", "second"]
    with pytest.raises(NoSuchCommitError):
        lake.refs.log.revert("nothing")


# ---- protection and hooks -------------------------------------------------------------------------------------------


def test_a_protected_main_is_changed_by_checked_runs_alone(lake: Lake, home: Path, tmp_path: Path) -> None:
    lake.refs.branches.create("exp")
    stranger_adds(lake, ONE, "theirs", "exp")
    (tmp_path / "x.csv").write_text("id\n1\n")
    with with_settings(home, branches__protected="main") as guarded:
        for attempt in (
            lambda: guarded.refs.branches.merge("exp"),
            lambda: guarded.drop(ONE),
            lambda: guarded.undrop(ONE),
            lambda: guarded.sql(f"drop table {ONE}"),
            lambda: guarded.sql(f"delete from {ONE}"),
            lambda: guarded.sql(f"insert into {ONE} values ('x', 1)", engine="spark"),
            lambda: guarded.sql(f"call lake.system.rollback_to_snapshot('{ONE}', 1)"),
            lambda: guarded.ingest(tmp_path / "x.csv", into="shop.x"),
        ):
            with pytest.raises(BranchProtectedError, match="main is protected") as refused:
                attempt()
            assert "lake" in refused.value.hint
        assert run(guarded, "second", ONE).state == "published"
        kept_run = run(guarded, "third", ONE, publish=False)
        assert guarded.refs.branches.merge(kept_run.branch).entry
        with guarded.branch("exp"):
            guarded.drop(TWO)
        assert names_in(guarded, ONE) == ["first", "second", "third"]


HOOK = """
import json, sys
diff = json.load(sys.stdin)
open({seen!r}, "w").write(json.dumps(diff))
if any(table["table"] == "shop.two" for table in diff["tables"]):
    sys.exit("two is frozen")
"""


def test_a_command_sees_what_will_be_published_and_may_say_no(home: Path, tmp_path: Path) -> None:
    seen, script = tmp_path / "seen.json", tmp_path / "hook.py"
    script.write_text(HOOK.format(seen=str(seen)))
    with with_settings(home, hooks__before_publish=[sys.executable, str(script)]) as lake:
        run(lake, "first", ONE, message="fine")
        told = json.loads(seen.read_text())
        assert (told["branch"], told["into"], told["run"], told["message"]) == ("run_first", "main", "first", "fine")
        assert [(each["table"], each["change"], each["rows_after"]) for each in told["tables"]] == [(ONE, "added", 1)]
        with pytest.raises(PublishRefusedError, match="two is frozen"):
            run(lake, "second", ONE, TWO)
        assert names_in(lake, ONE) == ["first"]
        assert lake.run_record("second").state == "failed"
        assert lake.branches() == ["run_second"]
        lake.refs.log.revert("first")
        assert json.loads(seen.read_text())["branch"].startswith("revert of")


def says_no(diff: dict[str, Any]) -> str:
    return "not today" if diff["run"] == "second" else ""


def breaks(diff: dict[str, Any]) -> None:
    raise ValueError("oops")


@pytest.mark.parametrize(
    ("hook", "words"),
    [
        pytest.param("tests_hooks:says_no", "not today", id="it says no"),
        pytest.param("tests_hooks:breaks", "ValueError: oops", id="it fails"),
    ],
)
def test_a_function_may_say_no(home: Path, hook: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tests_hooks", sys.modules[__name__])
    with with_settings(home, hooks__before_publish=[hook]) as lake, pytest.raises(PublishRefusedError, match=words):
        run(lake, "second", ONE)


@pytest.mark.parametrize("hook", ["nowhere:f", "json:nothing", "no-such-program"])
def test_a_hook_that_is_not_there_is_told_and_nothing_published(home: Path, hook: str) -> None:
    with with_settings(home, hooks__before_publish=[hook]) as lake:
        with pytest.raises(BadSettingError, match="hooks.before_publish"):
            run(lake, "first", ONE)
        assert lake.tables() == []


# ---- files that branches share --------------------------------------------------------------------------------------


@pytest.mark.parametrize("procedure", ["expire_snapshots", "REMOVE_ORPHAN_FILES"])
def test_no_statement_deletes_files_that_branches_may_need(lake: Lake, procedure: str) -> None:
    from lakehouse.core.errors import NotSupportedError

    with pytest.raises(NotSupportedError, match=procedure.lower()):
        lake.answer(Request(f"CALL lake.system.{procedure}(table => '{ONE}')"), "spark")
