"""LakeShell with the warm Spark: files, writes, runs, drops, progress, and Ctrl-C during a Spark statement."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.support.terminal import CTRL_C, Terminal, shell

from lakehouse.config.settings import Settings
from lakehouse.lake import Lake

pytestmark = pytest.mark.spark

ENDLESS = "select sum(a.id * b.id) from range(4000000000) a cross join range(1000) b;"


def test_files_runs_drops_and_ctrl_c_on_spark(
    shared_lake: Lake, shared_settings: Settings, namespace: str, tmp_path: Path
) -> None:
    shared_lake.sql(f"create table {namespace}.warm (id int)")
    (tmp_path / "leads.csv").write_text("id,name\n1,Ann\n2,Bob\n")
    (tmp_path / "more.csv").write_text("id,name\n2,Bea\n3,Cid\n")
    (tmp_path / "watched").mkdir()
    (tmp_path / "watched" / "w.csv").write_text("id,name\n1,Ann\n")
    table = f"{namespace}.leads"
    with shell(shared_settings.home, tmp_path, 200, LAKE_SOURCES__FILES__PATH=str(tmp_path / "watched")) as terminal:
        _check_files_and_drops(terminal, table)
        _check_run(terminal)
        _check_ctrl_c(terminal)
    assert shared_lake.sql(f"select name from {table} order by id").rows() == [("Ann",), ("Bea",), ("Cid",)]


def _check_files_and_drops(terminal: Terminal, table: str) -> None:
    assert table in terminal.run(f"insert leads.csv into {table} key id", until="snapshot", seconds=60)
    terminal.run("")
    again = terminal.run(f"insert more.csv leads.csv into {table} key id", seconds=60)
    assert "leads.csv is already in" in again
    # SQL's own INSERT and USE still work.
    assert "1 row inserted · spark" in terminal.run(f"insert into {table} values (9, 'Zoe');", seconds=60)
    assert "1 row deleted · spark" in terminal.run(f"delete from {table} where id = 9;", seconds=60)
    terminal.run(f"drop table {table};", until="[y/N]")
    terminal.run("n")
    assert "3 rows" in terminal.run(f"select * from {table};")
    terminal.run(f"drop table {table};", until="[y/N]")
    terminal.run("y", seconds=60)
    assert "restored with 3 rows" in terminal.run(f"undrop {table}")


def _check_run(terminal: Terminal) -> None:
    shown = terminal.run("run files", until=": published.", seconds=90)
    assert "crm.leads" in shown
    terminal.run("")
    assert "published" in terminal.run("runs")


def _check_ctrl_c(terminal: Terminal) -> None:
    terminal.run("\\engine spark")
    terminal.run(ENDLESS, until="tasks)", seconds=60)  # the progress of the statement
    before = len(terminal.text.rstrip())
    started = time.monotonic()
    terminal.send(CTRL_C)
    terminal.wait("Stopped.", 30, before - 200)
    assert time.monotonic() - started < 30
    assert "1 row · spark" in terminal.run("select 1 as still_here;", seconds=30), "Spark is free again"
