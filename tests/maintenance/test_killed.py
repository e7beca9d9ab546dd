"""`kill -9` at random moments of `lake maintain`: no row is lost, and the next maintenance ends what was begun."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.audit import audit
from tests.support.damaged_tables import T, append, damaged, data_files, ids
from tests.support.light_runs import with_settings
from tests.support.repetitions import repetitions

LAKE = Path(sys.executable).parent / "lake"
SETTINGS = {"LAKE_MAINTENANCE__KEEP_DAYS": "0", "LAKE_MAINTENANCE__KEEP_SNAPSHOTS": "1"}


@pytest.mark.faults
def test_a_killed_maintenance_loses_nothing(home: Path) -> None:
    with with_settings(home) as lake:
        damaged(lake, 6)
    expected = list(range(6))
    for number in range(repetitions(smoke=1, full=25)):
        with with_settings(home) as lake:
            with audit(lake, {T: {"id": ()}}, refs={"maintain_*"}, leaves=True):
                kill_maintenance(home)
            assert ids(lake) == expected
            append(lake, [100 + number])
            expected = sorted([*expected, 100 + number])
    with with_settings(home) as lake:
        assert not any(action.state == "failed" for action in lake.maintain().actions)
        assert ids(lake) == expected and len(data_files(lake)) == 1


def kill_maintenance(home: Path) -> None:
    process = subprocess.Popen(
        [LAKE, "maintain", "--all"],
        env={**os.environ, "LAKE_HOME": str(home), **SETTINGS},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(random.uniform(0.5, 3))
    process.send_signal(signal.SIGKILL)
    process.wait()
