"""What stands before a publish: protected branches, and hooks that may say no."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.light_runs import ONE, TWO, names_in, run, stranger_adds, with_settings

from lakehouse.core.errors import (
    BadSettingError,
    BranchProtectedError,
    PublishRefusedError,
)
from lakehouse.lake import Lake


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
        with guarded.branch("exp") as exp:
            exp.drop(TWO)
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
        payload = json.loads(seen.read_text())
        assert (payload["branch"], payload["into"], payload["run"], payload["message"]) == (
            "run_first",
            "main",
            "first",
            "fine",
        )
        assert [(table["table"], table["change"], table["rows_after"]) for table in payload["tables"]] == [
            (ONE, "added", 1)
        ]
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
