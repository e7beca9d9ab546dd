"""Maintenance in Dagster: the job maintains all tables; a schedule only if one is set."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.damaged_tables import T, damaged, data_files, ids
from tests.support.light_runs import with_settings

from lakehouse.maintenance.policy import MaintenanceSettings
from lakehouse.orchestrate.assets import RESOURCE, LakeResource
from lakehouse.orchestrate.maintenance import maintenance_job, maintenance_schedules


@pytest.mark.slow
def test_the_job_maintains_all_tables(home: Path) -> None:
    with with_settings(home) as lake:
        damaged(lake, 6)
        assert maintenance_job.execute_in_process(resources={RESOURCE: LakeResource(lake)}).success
        assert len(data_files(lake)) == 1 and ids(lake, T) == list(range(6))


def test_a_schedule_is_there_if_it_is_set() -> None:
    assert maintenance_schedules(MaintenanceSettings()) == []
    (schedule,) = maintenance_schedules(MaintenanceSettings(schedule="0 3 * * *"))
    assert schedule.cron_schedule == "0 3 * * *"
