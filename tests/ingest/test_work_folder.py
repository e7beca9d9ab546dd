"""Every ingest has a work folder, which is locked while in use and deleted after its ingest was killed."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.repetitions import repetitions

from lakehouse.ingest.work_folder import work_folder


def test_a_work_folder_is_deleted_when_it_is_closed(tmp_path: Path) -> None:
    with work_folder(tmp_path) as work:
        assert work.is_dir()
    with pytest.raises(RuntimeError), work_folder(tmp_path):
        raise RuntimeError
    assert list(tmp_path.glob("work-*")) == []


def test_the_folder_of_a_killed_ingest_is_deleted_and_one_in_use_is_not(tmp_path: Path) -> None:
    dead, alive = tmp_path / "work-dead", tmp_path / "work-alive"
    for folder in (dead, alive):
        (folder / "0" / "staged").mkdir(parents=True)
        (folder / "0" / "staged" / "00000.parquet").write_bytes(b"rows")
        (folder / "lock").touch()
    with (alive / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with work_folder(tmp_path):
            assert not dead.exists()
            assert (alive / "0" / "staged" / "00000.parquet").is_file()


OPEN_AND_CLOSE = """
import sys
from pathlib import Path
from lakehouse.ingest.work_folder import work_folder
for _ in range(int(sys.argv[2])):
    with work_folder(Path(sys.argv[1])) as work:
        (work / "rows").write_text("x")
        assert (work / "rows").read_text() == "x"
"""


@pytest.mark.faults
def test_concurrent_ingests_do_not_delete_a_new_work_folder(tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", OPEN_AND_CLOSE, str(tmp_path), str(repetitions(50, 1_000))]
    running = [subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) for _ in range(6)]
    errors = [process.communicate(timeout=60)[1] for process in running]
    assert errors == [""] * len(running)
