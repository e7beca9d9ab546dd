"""Dagster retries a run after an error that may pass; the assets are materialized once."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from tests.support.transaction_pipelines import failing_first, opened

from lakehouse.orchestrate.assets import RESOURCE, LakeResource, pipeline_assets

CONFIG = {
    "ops": {"shop": {"config": {"light": True}}},
    "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
}


@pytest.mark.parametrize(("failures", "materialized"), [(1, 1), (9, 0)], ids=["passes", "stays"])
def test_dagster_retries_an_error_that_may_pass(
    home: Path, monkeypatch: pytest.MonkeyPatch, failures: int, materialized: int
) -> None:
    monkeypatch.setattr("lakehouse.orchestrate.assets._RETRY_AFTER_S", 0)
    with opened(home) as lake, dg.DagsterInstance.ephemeral() as instance:
        done = dg.materialize(
            [pipeline_assets(failing_first(failures))],
            resources={RESOURCE: LakeResource(lake)},
            run_config=CONFIG,
            instance=instance,
            raise_on_error=False,
        )
        assert done.success is bool(materialized)
        assert len(done.get_asset_materialization_events()) == materialized
        assert [record.state for record in lake.runs()] == ["published" if materialized else "failed"]
