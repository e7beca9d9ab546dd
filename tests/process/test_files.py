"""Locks between processes, and files that only their owner can read."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lakehouse.core.names import TableName
from lakehouse.process.files import locked, statement_lock, try_locked, write_private, write_whole

_HOLD = """
import sys
from pathlib import Path
from lakehouse.process.files import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(lock: Path) -> subprocess.Popen[str]:
    """Another process that holds the lock until its standard input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_lock_that_another_process_holds_is_not_taken(tmp_path: Path) -> None:
    lock = tmp_path / "a.lock"
    with holder(lock) as other:
        with try_locked(lock) as is_held:
            assert not is_held
        other.communicate()
    with try_locked(lock) as is_held:
        assert is_held


def test_a_killed_process_releases_its_lock(tmp_path: Path) -> None:
    lock = tmp_path / "a.lock"
    with holder(lock) as other:
        other.kill()
        other.wait()
        with locked(lock):  # waits for the lock, so it would not return if the dead process still held it
            pass


def test_a_private_file_is_its_owners_alone_and_replaced_as_a_whole(tmp_path: Path) -> None:
    file = tmp_path / "new folder" / "keys.json"
    write_private(file, "first")
    write_private(file, "second")
    assert file.read_text() == "second"
    assert file.stat().st_mode & 0o777 == 0o600
    assert os.listdir(file.parent) == ["keys.json"]


def test_a_private_file_does_not_follow_a_link_that_waits_for_it(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("as it was")
    (tmp_path / f".keys.json.{os.getpid()}.{threading.get_ident()}").symlink_to(victim)
    write_private(tmp_path / "keys.json", "secret")
    assert victim.read_text() == "as it was"
    assert not (tmp_path / "keys.json").is_symlink()


def test_many_writers_of_one_file_leave_the_whole_text_of_one_of_them(tmp_path: Path) -> None:
    file, texts = tmp_path / "state.json", {str(number) * 100_000 for number in range(8)}
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda text: [write_private(file, text) for _ in range(20)], texts))
    assert file.read_text() in texts
    assert os.listdir(tmp_path) == ["state.json"]


def test_a_write_that_fails_leaves_the_old_file_alone(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    write_whole(file, "before")
    with pytest.raises(UnicodeEncodeError):
        write_whole(file, "after\ud800")
    assert file.read_text() == "before"
    assert os.listdir(tmp_path) == ["state.json"]


@pytest.mark.parametrize("table", ["crm.leads", "crm.leads_2"])
def test_each_table_has_its_own_statement_lock(tmp_path: Path, table: str) -> None:
    assert statement_lock(tmp_path, TableName.parse(table)) == tmp_path / f"{table}.writing.lock"
