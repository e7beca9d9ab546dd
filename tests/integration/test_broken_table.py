"""One table whose metadata file is gone, in a lake of three: no command about all tables ends with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import command_for
from tests.support.small_lake import SmallLake, opened

from lakehouse.core.files import local_path
from lakehouse.core.names import TableName

BROKEN, SOUND = "shop.broken", ("shop.first", "shop.last")


@pytest.fixture
def small(tmp_path: Path) -> Iterator[SmallLake]:
    with opened(tmp_path / "lake") as lake:
        for table in (SOUND[0], BROKEN, SOUND[1]):
            lake.make(table)
            for number in range(6):
                lake.add(table, number)
        name = TableName.parse(BROKEN)
        local_path(str(lake.catalog.pointers([name])[name])).unlink()
        yield lake


def test_health_verify_and_maintain_do_their_work_for_the_other_tables(small: SmallLake) -> None:
    health = {table.table: bool(table.problem) for table in small.lake.health(deep=True)}
    assert health == {BROKEN: True, SOUND[0]: False, SOUND[1]: False}
    report = small.lake.verify(deep=True)
    assert {finding.table for finding in report.damage} == {BROKEN}
    assert report.tables == 3
    actions = small.lake.maintain(only=("compact",)).actions
    states = {(action.table, action.state) for action in actions if action.action == "compact"}
    assert states == {(BROKEN, "failed"), (SOUND[0], "done"), (SOUND[1], "done")}


def test_the_commands_name_the_broken_table_and_exit_with_1(small: SmallLake, tmp_path: Path) -> None:
    lake = command_for(small.home)
    for arguments in (["verify"], ["health"], ["maintain", "--dry-run"], ["backup", str(tmp_path / "backups")]):
        done = lake(*arguments, "-o", "json")
        json.loads(done.stdout)
        assert BROKEN in done.stdout + done.stderr, arguments
        assert "Traceback" not in done.stderr
        assert done.returncode == (0 if arguments == ["health"] else 1), (arguments, done.stderr)
    listed = json.loads(lake("backup", str(tmp_path / "backups"), "--list", "-o", "json").stdout)
    assert [backup["tables"] for backup in listed] == [2]
