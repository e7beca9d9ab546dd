"""The folders that ingests work in: one each, locked while in use, cleared away when their owner was killed."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest
from tests.repetitions import repetitions

from lakehouse.core.errors import UnknownChoiceError
from lakehouse.core.names import TableName
from lakehouse.core.requests import IngestRequest
from lakehouse.ingest.run import Ingester

NOBODY = cast(Any, None)


def ingester(folder: Path) -> Ingester:
    folder.mkdir(parents=True, exist_ok=True)
    return Ingester(NOBODY, NOBODY, NOBODY, NOBODY, folder, 0)


def test_a_workplace_is_gone_when_it_is_left(tmp_path: Path) -> None:
    with ingester(tmp_path)._workplace() as work:
        assert work.is_dir()
    with pytest.raises(RuntimeError), ingester(tmp_path)._workplace():
        raise RuntimeError
    assert list(tmp_path.glob("work-*")) == []


def test_what_a_killed_ingest_left_is_cleared_away_and_what_is_in_use_is_not(tmp_path: Path) -> None:
    dead, alive = tmp_path / "work-dead", tmp_path / "work-alive"
    for folder in (dead, alive):
        (folder / "0" / "staged").mkdir(parents=True)
        (folder / "0" / "staged" / "00000.parquet").write_bytes(b"rows")
        (folder / "lock").touch()
    with (alive / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with ingester(tmp_path)._workplace():
            assert not dead.exists()
            assert (alive / "0" / "staged" / "00000.parquet").is_file()


OPEN_AND_CLOSE = """
import sys
from pathlib import Path
from lakehouse.ingest.run import Ingester
ingester = Ingester(None, None, None, None, Path(sys.argv[1]), 0)
for _ in range(int(sys.argv[2])):
    with ingester._workplace() as work:
        (work / "rows").write_text("x")
        assert (work / "rows").read_text() == "x"
"""


@pytest.mark.faults
def test_ingests_into_other_tables_do_not_clear_away_a_new_workplace(tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", OPEN_AND_CLOSE, str(tmp_path), str(repetitions(50, 1_000))]
    running = [subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) for _ in range(6)]
    said = [process.communicate(timeout=60)[1] for process in running]
    assert said == [""] * len(running)


@pytest.mark.parametrize("option", [{"mode": "merge"}, {"contract": "loose"}, {"format": "delta"}], ids=str)
def test_a_choice_that_is_not_on_the_list_is_refused(option: dict[str, str]) -> None:
    with pytest.raises(UnknownChoiceError, match=next(iter(option.values()))) as caught:
        IngestRequest(("leads.csv",), TableName("crm", "leads"), **cast(Any, option))
    assert "Choose one of: " in caught.value.hint
