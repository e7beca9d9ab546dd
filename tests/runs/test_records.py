"""The records of runs: which process is the run's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lakehouse.process.pids import start_time
from lakehouse.runs.model import RunRecord
from lakehouse.runs.records import RunLog


@pytest.mark.parametrize(
    ("started", "state"),
    [
        pytest.param(start_time(os.getpid()), "running", id="its own process"),
        pytest.param("1", "killed", id="another process that has its pid now"),
        pytest.param("", "running", id="a record of an older release"),
    ],
)
def test_a_run_is_running_while_its_own_process_is(tmp_path: Path, started: str, state: str) -> None:
    log = RunLog(tmp_path)
    log.save(RunRecord("r1", "shop", "running", "run_r1", "2026-01-01", os.getpid(), started))
    assert log.get("r1").state == state
    assert [record.state for record in log.all()] == [state]
