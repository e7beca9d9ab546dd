"""The lake's folder: made, completed, or refused untouched."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest
from tests.support.repetitions import repetitions

from lakehouse.catalogs.sql.sqlite import SqliteDatabase
from lakehouse.core.errors import DiskFullError, HomeError, LakeError
from lakehouse.storage import local
from lakehouse.storage.local import LocalHome


def everything_in(folder: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def test_a_home_is_made_with_all_its_parts(home: Path) -> None:
    made = LocalHome(home / "deep" / "down").ready()
    assert made.warehouse.is_dir()
    assert made.logs.is_dir()
    assert made.run.stat().st_mode & 0o777 == 0o700
    assert (made.folder / "lake.version").read_text() == "1\n"


def test_a_home_that_is_there_is_left_as_it_is(home: Path) -> None:
    made = LocalHome(home).ready()
    (made.warehouse / "data.parquet").write_bytes(b"x")
    made.catalog_file.write_bytes(b"y")
    before = everything_in(home)
    LocalHome(home).ready()
    assert everything_in(home) == before


def test_an_empty_folder_becomes_a_home(home: Path) -> None:
    home.mkdir()
    assert LocalHome(home).ready().warehouse.is_dir()


@pytest.mark.parametrize("missing", ["warehouse", "run", "logs", "lake.version"])
def test_a_half_made_home_is_completed(home: Path, missing: str) -> None:
    made = LocalHome(home).ready()
    made.catalog_file.write_bytes(b"kept")
    part = home / missing
    part.rmdir() if part.is_dir() else part.unlink()
    LocalHome(home).ready()
    assert part.exists()
    assert made.catalog_file.read_bytes() == b"kept"


def test_a_home_whose_marker_was_only_half_written_is_completed(home: Path) -> None:
    LocalHome(home).ready()
    (home / "lake.version").write_text("")
    LocalHome(home).ready()
    assert (home / "lake.version").read_text() == "1\n"


def test_a_home_that_lost_only_its_marker_is_completed_while_its_catalog_is_open(home: Path) -> None:
    LocalHome(home).ready()
    for name in ("catalog.db", "catalog.db-wal", "catalog.db-shm"):
        (home / name).touch()
    (home / "lake.version").unlink()
    LocalHome(home).ready()
    assert (home / "lake.version").read_text() == "1\n"


def test_a_folder_with_strange_files_is_refused_untouched(home: Path) -> None:
    home.mkdir()
    (home / "thesis.doc").write_text("years of work")
    (home / "warehouse").mkdir()
    before = everything_in(home)
    with pytest.raises(HomeError) as refused:
        LocalHome(home).ready()
    assert "thesis.doc" in refused.value.message
    assert "LAKE_HOME" in refused.value.hint
    assert everything_in(home) == before


def test_a_newer_layout_is_refused_untouched(home: Path) -> None:
    home.mkdir()
    (home / "lake.version").write_text("2\n")
    before = everything_in(home)
    with pytest.raises(HomeError, match=r"layout '2'; this lakehouse knows '1'"):
        LocalHome(home).ready()
    assert everything_in(home) == before


def test_a_file_is_not_a_home(tmp_path: Path) -> None:
    file = tmp_path / "lake"
    file.write_text("mine")
    with pytest.raises(HomeError, match=r"lake is a file\.") as refused:
        LocalHome(file).ready()
    assert "folder" in refused.value.hint
    assert file.read_text() == "mine"


def test_a_file_in_the_way_of_a_part_is_named(home: Path) -> None:
    home.mkdir()
    (home / "warehouse").write_text("in the way")
    with pytest.raises(HomeError, match=r"warehouse is a file\."):
        LocalHome(home).ready()


def test_a_home_below_a_file_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(HomeError):
        LocalHome(tmp_path / "file" / "a" / "lake").ready()


def test_a_home_below_a_file_names_that_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(HomeError, match=r"/file is a file\."):
        LocalHome(tmp_path / "file" / "lake").ready()


def test_a_place_where_nobody_may_write_says_so() -> None:
    # /proc takes no folders, not even root's.
    with pytest.raises(HomeError, match="cannot be written|cannot be a lake") as refused:
        LocalHome(Path("/proc/lake")).ready()
    assert "LAKE_HOME" in refused.value.hint


@pytest.mark.faults
def test_many_may_make_a_home_at_once(tmp_path: Path) -> None:
    failures: list[LakeError] = []
    barrier = threading.Barrier(8)

    def make() -> None:
        for number in range(repetitions(10, 100)):
            barrier.wait()
            try:
                LocalHome(tmp_path / f"lake{number}").ready()
            except LakeError as exc:
                failures.append(exc)

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_full_disk_stops_a_write_before_it_starts(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = LocalHome(home).ready()
    made.check_room()
    monkeypatch.setattr(local, "LEAST_FREE_BYTES", 2**80)  # no disk is that large: the test's way to fill one
    with pytest.raises(DiskFullError, match="MB are free") as refused:
        made.check_room()
    assert "LAKE_HOME" in refused.value.hint


@pytest.mark.parametrize("name", ["a?b", "a#b", 'a"b', "a\nb", "a\tb"])
def test_a_name_that_an_engine_would_cut_is_refused_at_once(tmp_path: Path, name: str) -> None:
    with pytest.raises(HomeError, match="cannot be a lake"):
        LocalHome(tmp_path / name / "lake").ready()
    assert not list(tmp_path.iterdir())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_home_is_its_owners_alone(home: Path) -> None:
    made = LocalHome(home).ready()
    SqliteDatabase(made.catalog_file).write(lambda db: db.execute("SELECT 1"))
    assert [mode(folder) for folder in (made.folder, made.warehouse, made.run, made.logs)] == [0o700] * 4
    assert mode(made.catalog_file) == 0o600


def test_the_group_of_a_shared_home_reads_and_writes_all_of_it(home: Path) -> None:
    before = os.umask(0o022)
    try:
        LocalHome(home, shared=True).ready()
        made = LocalHome(home).ready()  # it stays shared for those who do not set it
        SqliteDatabase(made.catalog_file).write(lambda db: db.execute("SELECT 1"))
        (made.warehouse / "new").mkdir()
        (made.warehouse / "new" / "file").touch()
    finally:
        os.umask(before)
    assert [mode(folder) for folder in (made.folder, made.warehouse, made.run, made.logs)] == [0o2770] * 4
    assert mode(made.catalog_file) == mode(made.warehouse / "new" / "file") == 0o660
    assert mode(made.warehouse / "new") == 0o2770


def test_the_mode_of_a_folder_that_exists_is_left_alone(home: Path) -> None:
    home.mkdir()
    home.chmod(0o750)
    LocalHome(home).ready()
    assert mode(home) == 0o750
