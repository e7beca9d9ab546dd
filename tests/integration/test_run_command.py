"""`lake run` and `lake runs` as a person uses them, on a pipeline of their own: a range, no publish, a blocked run that goes on."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Command
from tests.support.tills_pipeline import PIPELINE

from lakehouse.cli.app import run
from lakehouse.config.settings import Settings

pytestmark = pytest.mark.spark

MONDAY, TUESDAY, WEDNESDAY, THURSDAY = (f"2026-01-0{day}" for day in (5, 6, 7, 8))


@dataclass(frozen=True)
class Done:
    """A command that has run."""

    code: int
    out: str
    err: str

    @property
    def record(self) -> dict[str, Any]:
        """What `-o json` printed of a run."""
        (record,) = json.loads(self.out)
        return dict(record)


@dataclass(frozen=True)
class Tills:
    """A folder with a lake.toml, a pipeline's module and its files, and `lake` as somebody calls it there."""

    name: str
    folder: Path
    command: Command
    capsys: pytest.CaptureFixture[str]

    def write(self, day: str, *items: str) -> None:
        lines = [f"{number},{item},{100 * number}" for number, item in enumerate(items, start=1)]
        (self.folder / "files" / f"{day}.csv").write_text("\n".join(lines) + "\n")

    def lake(self, *arguments: str) -> Done:
        """A run as a process; what only reads, in this one."""
        if arguments[0] == "run":
            done = self.command(*arguments, cwd=self.folder)
            return Done(done.returncode, done.stdout, done.stderr)
        self.capsys.readouterr()
        return Done(run(list(arguments)), *self.capsys.readouterr())

    def fails(self, *arguments: str) -> str:
        """The message of a command that is a user error: it ends before anything runs."""
        self.capsys.readouterr()
        assert run(list(arguments)) == 2
        return self.capsys.readouterr().err

    def type(self, command: str) -> Done:
        """What a message suggested, word for word."""
        words = command.split()
        assert words[0] == "lake"
        return self.lake(*words[1:])

    def days(self, *options: str) -> list[tuple[str, int]]:
        query = f"select cast(date as string) as day, cents from {self.name}.by_day order by 1"
        done = self.lake("sql", query, "-o", "json", *options)
        assert done.code == 0, done.err
        return [(row["day"], int(row["cents"])) for row in json.loads(done.out)]

    def tables(self) -> list[str]:
        rows = json.loads(self.lake("tables", "-o", "json").out)
        return [row["table"] for row in rows if row["table"].startswith(f"{self.name}.")]


@pytest.fixture
def tills(
    command: Command,
    shared_settings: Settings,
    namespace: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Tills:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAKE_HOME", str(shared_settings.home))
    monkeypatch.syspath_prepend(str(tmp_path))
    name = namespace[:40]
    (tmp_path / f"{name}.py").write_text(PIPELINE.format(name=name))
    (tmp_path / "lake.toml").write_text(f'pipelines = ["{name}"]\n[sources.{name}]\npath = "files"\n')
    (tmp_path / "files").mkdir()
    return Tills(name, tmp_path, command, capsys)


def test_a_range_makes_its_days_and_no_others(tills: Tills) -> None:
    for day in (MONDAY, TUESDAY, WEDNESDAY, THURSDAY):
        tills.write(day, "tea")
    done = tills.lake("run", tills.name, "--from", TUESDAY, "--to", WEDNESDAY, "-m", "two days", "-o", "json")
    assert done.code == 0, done.err
    record = done.record
    assert (record["state"], record["partitions"], record["message"]) == (
        "published",
        [TUESDAY, WEDNESDAY],
        "two days",
    )
    assert {tuple(table["partitions"]) for table in record["tables"]} == {(TUESDAY, WEDNESDAY)}
    assert tills.days() == [(TUESDAY, 100), (WEDNESDAY, 100)]


def test_a_range_that_is_none_is_refused(tills: Tills) -> None:
    backwards = tills.fails("run", tills.name, "--from", WEDNESDAY, "--to", TUESDAY)
    assert "runs backwards" in backwards
    assert "2026-01-14" in tills.fails("run", tills.name, "--from", "2026-01", "--to", TUESDAY)
    assert "no partitions" in tills.fails("run", "files", "--from", TUESDAY)
    for words in (("runs", "show"), ("run", "--resume")):
        assert "19700101_nothing" in tills.fails(*words, "19700101_nothing")


def test_what_is_not_published_waits_on_its_branch_for_the_command_that_is_suggested(tills: Tills) -> None:
    tills.write(MONDAY, "tea", "mate")
    done = tills.lake("run", tills.name, "--no-publish")
    assert done.code == 0, done.err
    last = done.err.splitlines()[-1]
    branch = last.partition("is on the branch ")[2].partition(";")[0]
    assert branch.startswith("run_")
    assert tills.tables() == []
    assert tills.days("--branch", branch) == [(MONDAY, 300)]
    run_id = branch.removeprefix("run_")
    assert tills.lake("runs", "show", run_id, "-o", "json").record["state"] == "kept"
    again = tills.lake("run", "--resume", run_id)
    assert (again.code, f"lake branch merge {branch}" in again.err) == (1, True), again.err
    assert tills.type(last.partition("Publish it: ")[2]).code == 0
    assert tills.days() == [(MONDAY, 300)]
    assert tills.lake("runs", "show", run_id, "-o", "json").record["state"] == "published"
    assert branch not in tills.lake("branch", "list", "--all", "-o", "json").out


def test_a_blocked_run_is_shown_with_its_rows_and_goes_on_when_the_file_is_mended(tills: Tills) -> None:
    tills.write(MONDAY, "tea", "forbidden")
    blocked = tills.lake("run", tills.name)
    assert (blocked.code, "not_forbidden" in blocked.err) == (1, True), blocked.err
    newest = json.loads(tills.lake("runs", "--limit", "1", "-o", "json").out)[0]
    assert (newest["pipeline"], newest["state"], newest["broken_rules"]) == (tills.name, "blocked", 1)
    assert f"Details: lake runs show {newest['run']}" in blocked.err
    shown = tills.lake("runs", "show", newest["run"])
    assert shown.code == 0, shown.err
    lines = shown.out.splitlines()
    assert any(line.startswith(f"{tills.name}.raw ") and MONDAY in line for line in lines), "what it had done"
    (rule,) = [line.split() for line in lines if line.startswith(f"{tills.name}.sales  not_forbidden  block")]
    assert rule[2:5] == ["block", "False", "1"]
    assert '"item":"forbidden"' in shown.out
    suggested = shown.err.splitlines()[-1].partition("Continue it: ")[2]
    assert suggested == f"lake run --resume {newest['run']}"
    still = tills.type(suggested)
    assert (still.code, "not_forbidden" in still.err) == (1, True), still.err
    assert tills.tables() == []
    tills.write(MONDAY, "tea", "allowed")
    done = tills.type(suggested + " -o json")
    assert done.code == 0, done.err
    assert (done.record["id"], done.record["state"]) == (newest["run"], "published")
    assert tills.days() == [(MONDAY, 300)]
    shown_by_prefix = tills.lake("runs", "show", newest["run"][:-1], "-o", "json")
    assert shown_by_prefix.record == done.record
