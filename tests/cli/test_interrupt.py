"""Ctrl-C at several moments of real commands: "Stopped.", exit code 130, no traceback, and a lake that is as before or complete."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.conftest import LAKE, cache_only
from tests.support.processes import processor_seconds
from tests.support.repetitions import repetitions

from lakehouse.config.load import load_settings
from lakehouse.lake.assemble import assemble

ROWS = 100_000
#: Processor time after which a command that has much to do is at it: its start takes about one second of it.
AT_WORK_S = 3.0
#: A command ends within a second of the signal, but not on a busy machine.
_END_TIMEOUT_S = 120
#: Rows of shop.orders before a test.
INGESTED = 4 * (ROWS // 10)
#: Takes hours.
SLOW_JOIN = (
    "select count(*) from shop.orders a join shop.orders b on a.id * 7 + b.id % 13 <> 3"
    " join shop.orders c on b.id + c.id > 5"
)


@dataclass
class Interrupted:
    """How a command ended that got SIGINT."""

    code: int
    output: str

    @property
    def is_clean(self) -> bool:
        # Before Python handles signals, and after the command when it no longer does, the signal itself ends the process.
        stopped = self.code == 130 and self.output.endswith("\nStopped.\n")
        return (stopped or self.code == -signal.SIGINT) and "Traceback" not in self.output


@dataclass
class Project:
    """A folder with a lake that has shop.orders, and files to ingest."""

    folder: Path

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "LAKE_HOME": str(self.folder / "lake")}
        return subprocess.Popen(
            [LAKE, *arguments],
            env=environment,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def interrupt(self, after_s: float, *arguments: str) -> Interrupted | None:
        """Send SIGINT when the command has used some seconds of the processor; None if it was done before."""
        process = self.start(*arguments)
        while process.poll() is None and processor_seconds(process.pid) < after_s:
            time.sleep(0.005)
        if process.poll() is not None:
            output, _ = process.communicate()
            assert process.returncode == 0, output
            return None
        process.send_signal(signal.SIGINT)
        try:
            output, _ = process.communicate(timeout=_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
            pytest.fail(f"the signal did not end it: {output}")
        if process.returncode == 0:  # the command was done, and only Python had not ended yet
            return None
        return Interrupted(process.returncode, output)

    def work(self, *arguments: str) -> float:
        """Run a command to its end; returns the seconds of the processor that it used."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        process = self.start(*arguments)
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0, output
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def count(self) -> int:
        settings = load_settings({"home": self.folder / "lake"}, environ=cache_only())
        with assemble(settings) as lake:
            assert lake.verify().damage == []
            assert lake.branches() == []
            assert not list((lake.folder / "run" / "ingest").glob("work-*"))
            return int(lake.sql("select count(*) from shop.orders", engine="duckdb").rows()[0][0])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a project, which tests copy."""
    folder = tmp_path_factory.mktemp("interrupt")
    for name, start in (("first.csv", 0), ("more.csv", ROWS)):
        lines = (f"{number},item {number},{number % 977}.50" for number in range(start, start + ROWS))
        (folder / name).write_text("id,item,price\n" + "\n".join(lines) + "\n")
    with assemble(load_settings({"home": folder / "lake"}, environ=cache_only())) as lake:
        rows = [{"id": number, "item": f"item {number}", "price": number / 2} for number in range(ROWS // 10)]
        for part in range(4):
            lake.ingest_rows([{**row, "id": row["id"] + part * ROWS} for row in rows], into="shop.orders")
    return folder


@pytest.fixture(scope="module")
def usual(made: Path) -> float:
    """The seconds of the processor that a short command takes on this machine, by which the moments of the signals are chosen."""
    return Project(made).work("tables")


@pytest.fixture
def project(made: Path, tmp_path: Path) -> Iterator[Project]:
    shutil.copytree(made, tmp_path / "project")
    yield Project(tmp_path / "project")


@pytest.mark.faults
def test_ctrl_c_while_lake_starts_is_no_traceback(project: Project, usual: float) -> None:
    # In the first part Python itself starts, and reports the signal in its own words.
    for moment in repetitions((0.4, 0.8), tuple(number / 20 for number in range(6, 20))):
        ended = project.interrupt(usual * moment, "tables")
        assert ended is None or ended.is_clean, (moment, ended)


def test_ctrl_c_stops_a_long_statement_on_duckdb(project: Project) -> None:
    ended = project.interrupt(AT_WORK_S, "sql", SLOW_JOIN, "--engine", "duckdb")
    assert ended is not None and ended.is_clean, ended
    assert project.count() == INGESTED


COMMANDS = {
    "ingest": ("ingest", "more.csv", "--into", "shop.orders"),
    "maintain": ("maintain", "shop.orders"),
    "backup": ("backup", "copy"),
    "export": ("export", "shop.orders", "out.csv"),
}


@pytest.mark.faults
@pytest.mark.parametrize("command", COMMANDS)
def test_ctrl_c_leaves_the_lake_as_it_was_or_complete(project: Project, command: str, usual: float) -> None:
    before, arguments = INGESTED, COMMANDS[command]
    complete = before + (ROWS if command == "ingest" else 0)
    moments = repetitions((1.2, 2.5), tuple(part / 3 for part in range(3, 15)))
    ended = [project.interrupt(usual * moment, *arguments) for moment in moments]
    assert [end for end in ended if end is not None and not end.is_clean] == []
    assert ended[0] is not None and ended[0].code == 130
    assert project.count() in (before, complete)
    project.work(*arguments)
    assert project.count() == complete
