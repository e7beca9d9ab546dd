"""Backups taken while writers work, restores into other places, and what happens when either is killed."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import LAKE, command_for
from tests.support.repetitions import repetitions
from tests.support.small_lake import SmallLake, opened

from lakehouse.config.load import load_settings
from lakehouse.copies.backup_store import BackupError, BackupStore
from lakehouse.core.errors import HomeError, TableExistsError
from lakehouse.lake.copies import list_backups, restore_lake
from lakehouse.storage.local import RESTORING, restoration
from lakehouse.storage.tree import LocalTree


@pytest.fixture
def dest(tmp_path: Path) -> Path:
    return tmp_path / "backups"


def restored(dest: Path | str, home: Path, backup: str = "") -> None:
    """Restore into a folder: the newest backup, or another one."""
    restore_lake(load_settings({"home": home}, folder=home.parent, environ={}), dest, backup)


def test_a_restored_lake_is_equal_in_every_table_branch_and_snapshot(
    small: SmallLake, dest: Path, tmp_path: Path
) -> None:
    report = small.lake.backup(dest)
    assert report.copied_files == report.files > 30
    restored(dest, tmp_path / "restored")
    with opened(tmp_path / "restored") as other:
        assert other.contents() == small.contents()
        assert not other.lake.verify(deep=True, against=dest).findings
        assert other.lake.undrop("shop.gone").current is not None
        assert other.ids("shop.gone") == [5]


def test_a_restored_lake_lives_on_by_itself(small: SmallLake, dest: Path, tmp_path: Path) -> None:
    """Nothing in it refers to the lake that it was copied from, and its branches publish."""
    small.lake.backup(dest)
    restored(dest, tmp_path / "restored")
    small.home.rename(tmp_path / "away")
    with opened(tmp_path / "restored") as other:
        assert other.catalog.publish("run_r1")
        assert other.catalog.publish("exp").conflicts, "main has changed the same table since"
        other.add("shop.items", 9)
        assert other.ids("shop.items") == [1, 2, 3, 9]
    assert not _holding(tmp_path / "restored" / "warehouse", str(small.home).encode())


def _holding(folder: Path, text: bytes) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file() and text in file.read_bytes()]


def test_a_second_backup_copies_only_what_is_new(small: SmallLake, dest: Path, tmp_path: Path) -> None:
    first = small.lake.backup(dest)
    small.add("shop.items", 4)
    second = small.lake.backup(dest)
    # The metadata file, the manifest list, the manifest and the data file of one commit.
    assert second.copied_files == 4
    assert second.files == first.files + 4
    assert small.lake.backup(dest).copied_files == 0
    full = small.lake.backup(dest, full=True)
    assert full.copied_files == full.files
    before = tmp_path / "before"
    restored(dest, before, first.id)
    with opened(before) as other:
        assert other.ids("shop.items") == [1, 2]


def test_the_manifest_states_the_size_and_sha256_of_every_file(small: SmallLake, dest: Path) -> None:
    small.lake.backup(dest)
    (manifest,) = list_backups(small.backend.settings, dest)
    for file in manifest.files.values():
        content = (dest / "objects" / file.sha256[:2] / file.sha256).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (file.size, file.sha256)


def test_secrets_stay_out_of_a_backup_and_the_hashes_of_keys_are_in_it(
    small: SmallLake, dest: Path, tmp_path: Path
) -> None:
    (small.home / "secrets.json").write_text('{"secret_key": "s3cret-value"}')
    (small.home / "keys.json").write_text('{"hash": "argon2-of-a-key"}')
    small.lake.backup(dest)
    assert not _holding(dest, b"s3cret-value")
    restored(dest, tmp_path / "restored")
    assert (tmp_path / "restored" / "keys.json").read_text() == '{"hash": "argon2-of-a-key"}'
    assert not (tmp_path / "restored" / "secrets.json").exists()


# ---- writers at work --------------------------------------------------------------------------------------------


def test_a_backup_under_load_is_one_moment_of_all_tables(tmp_path: Path, dest: Path) -> None:
    """Two writers each publish a row to both tables at once: a restored lake has the same rows in both."""
    with opened(tmp_path / "lake") as small:
        for table in ("shop.left", "shop.right"):
            small.make(table)
        done = threading.Event()
        failures: list[BaseException] = []

        def write(number: int) -> None:
            with opened(tmp_path / "lake") as mine:
                try:
                    _publish_pairs(mine, number, done)
                except BaseException as exc:  # noqa: BLE001 - a thread's error is the test's
                    failures.append(exc)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(3):
            time.sleep(0.3)
            small.lake.backup(dest)
        done.set()
        for thread in threads:
            thread.join()
        assert not failures
        written = small.ids("shop.left")
    for number, backup in enumerate(_backups(dest)):
        home = tmp_path / f"restored{number}"
        restored(dest, home, backup)
        with opened(home) as other:
            assert other.ids("shop.left") == other.ids("shop.right")
            assert set(other.ids("shop.left")) <= set(written)
            assert not other.lake.verify().damage
    assert written, "the writers wrote"


def _publish_pairs(mine: SmallLake, number: int, done: threading.Event) -> None:
    count = 0
    while not done.is_set():
        branch, count = f"w{number}_{count}", count + 1
        mine.catalog.create_branch(branch)
        for table in ("shop.left", "shop.right"):
            mine.add(table, number * 1000 + count, branch=branch)
        mine.writers.pop(branch).close()
        if not mine.catalog.publish(branch):
            mine.catalog.drop_branch(branch)


def _backups(dest: Path) -> list[str]:
    return sorted(file.name.removesuffix(".json.gz") for file in (dest / "backups").glob("*.json.gz"))


def test_a_backup_of_a_damaged_lake_has_the_other_tables_and_names_the_file(
    small: SmallLake, dest: Path, tmp_path: Path
) -> None:
    files = (small.home / "warehouse" / "shop" / "orders" / "data").rglob("*.parquet")
    data = min(files, key=lambda file: file.stat().st_mtime_ns)  # the first one is in every branch
    data.unlink()
    items = small.ids("shop.items")
    report = small.lake.backup(dest)
    assert all(line.startswith("shop.orders (") and data.name in line for line in report.left_out)
    assert report.left_out
    restore_lake(load_settings({"home": tmp_path / "own"}, folder=tmp_path, environ={}), dest)
    with opened(tmp_path / "own") as own:
        assert [str(info.name) for info in own.lake.tables()] == ["shop.items"]
        assert own.ids("shop.items") == items
        assert not own.lake.verify(deep=True).damage


# ---- refusals ---------------------------------------------------------------------------------------------------


def test_a_lake_that_holds_something_is_never_overwritten(small: SmallLake, dest: Path, tmp_path: Path) -> None:
    small.lake.backup(dest)
    with opened(tmp_path / "other") as other:
        other.make("crm.leads")
        before = sorted(str(file) for file in other.home.rglob("*"))
        with pytest.raises(TableExistsError, match="crm.leads"):
            restored(dest, other.home)
        assert sorted(str(file) for file in other.home.rglob("*")) == before
        assert [str(info.name) for info in other.lake.tables()] == ["crm.leads"]


def test_a_folder_of_something_else_is_refused_as_a_target(small: SmallLake, dest: Path, tmp_path: Path) -> None:
    small.lake.backup(dest)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"x")
    with pytest.raises(HomeError, match=r"cat\.jpg"):
        restored(dest, tmp_path / "photos")
    assert [file.name for file in (tmp_path / "photos").iterdir()] == ["cat.jpg"]


def test_two_restores_at_once_do_not_meet_in_one_folder(small: SmallLake, dest: Path, tmp_path: Path) -> None:
    small.lake.backup(dest)
    (backup,) = _backups(dest)
    home = tmp_path / "restored"
    with (
        restoration(home, f"lake restore {dest} --backup {backup} --home {home}"),
        pytest.raises(HomeError, match="Another"),
    ):
        restored(dest, home)


def test_a_backup_that_was_stopped_in_its_first_moment_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / ".lakehouse-backup.json.8381b486.unfinished").write_bytes(b"{")
    store = BackupStore(LocalTree(tmp_path))
    store.prepare()
    store.check()


def test_a_folder_of_something_else_is_refused_as_a_destination(small: SmallLake, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"x")
    with pytest.raises(BackupError, match=r"cat\.jpg"):
        small.lake.backup(tmp_path / "photos")
    with pytest.raises(BackupError, match="own folder"):
        small.lake.backup(small.home / "backups")
    with pytest.raises(BackupError, match="no backups"):
        restored(tmp_path / "photos", tmp_path / "restored")


def test_a_damaged_content_is_found_before_it_is_restored(small: SmallLake, dest: Path, tmp_path: Path) -> None:
    small.lake.backup(dest)
    largest = max((file for file in dest.glob("objects/*/*")), key=lambda file: file.stat().st_size)
    content = bytearray(largest.read_bytes())
    content[len(content) // 2] ^= 1
    largest.write_bytes(content)
    with pytest.raises(BackupError, match="damaged"):
        restored(dest, tmp_path / "restored")
    with pytest.raises(HomeError, match="not complete"), opened(tmp_path / "restored"):
        pass


# ---- kill -9 ----------------------------------------------------------------------------------------------------

KILLS = repetitions(smoke=1, full=20)


def _kill_when(arguments: list[str], home: Path, ready: Callable[[], bool]) -> bool:
    """Run `lake` and kill it as soon as a condition holds."""
    process = subprocess.Popen(
        [LAKE, *arguments],
        env={**os.environ, "LAKE_HOME": str(home)},
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    while not ready() and process.poll() is None:
        time.sleep(0.001)
    process.kill()
    return process.wait() == -signal.SIGKILL


@pytest.mark.faults
@pytest.mark.parametrize("attempt", range(KILLS))
def test_a_restore_that_is_killed_leaves_no_lake_and_can_be_finished(
    small: SmallLake, dest: Path, tmp_path: Path, attempt: int
) -> None:
    small.lake.backup(dest)
    home = tmp_path / "restored"
    count = random.Random(attempt).randrange(30) if attempt else 1
    killed = _kill_when(
        ["restore", str(dest)],
        home,
        lambda: (home / RESTORING).exists() and sum(path.is_file() for path in home.rglob("warehouse/**/*")) >= count,
    )
    assert killed or attempt, "with one file written there is much left to do"
    run = command_for(home)
    if killed and (home / RESTORING).exists():
        refused = run("tables")
        assert refused.returncode == 2
        assert "not complete" in refused.stderr
        folder = next(path.parent for path in home.rglob("warehouse/**/*") if path.is_file())
        (folder / ".00000.parquet.0a1b2c3d.unfinished").write_bytes(b"half")  # as a kill within a file leaves it
        done = run("restore", str(dest))
        assert done.returncode == 0, done.stderr
    with opened(home) as other:
        assert other.contents() == small.contents()
        assert not other.lake.verify(deep=True, against=dest).findings


@pytest.mark.faults
@pytest.mark.parametrize("attempt", range(KILLS))
def test_a_backup_that_is_killed_is_none_and_the_next_one_is_whole(
    small: SmallLake, dest: Path, tmp_path: Path, attempt: int
) -> None:
    first = small.lake.backup(dest)
    small.add("shop.items", 4)
    objects = len(list(dest.glob("objects/*/*")))
    count = objects + random.Random(attempt).randrange(4)
    _kill_when(["backup", str(dest)], small.home, lambda: len(list(dest.glob("objects/*/*"))) > count)
    assert _backups(dest)[0] == first.id
    assert len(_backups(dest)) <= 2
    small.lake.backup(dest)
    restored(dest, tmp_path / "restored")
    with opened(tmp_path / "restored") as other:
        assert other.contents() == small.contents()


# ---- the command line -------------------------------------------------------------------------------------------


def test_the_command_line_lists_and_restores(small: SmallLake, dest: Path, tmp_path: Path) -> None:
    made = json.loads(command_for(small.home)("backup", str(dest), "-o", "json").stdout)
    listed = json.loads(command_for(small.home)("backup", str(dest), "--list", "-o", "json").stdout)
    assert [row["backup"] for row in listed] == [row["backup"] for row in made]
    run = command_for(tmp_path / "restored")
    done = run("restore", str(dest), "-o", "json")
    assert (done.returncode, json.loads(done.stdout)[0]["tables"]) == (0, 2)
    again = run("restore", str(dest), "-o", "json")
    assert again.returncode != 0
    assert "not empty" in json.loads(again.stderr.splitlines()[-1])["message"]
