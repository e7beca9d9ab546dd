"""A pipeline on a standalone Spark cluster, unchanged: the same rows as in one process."""

from __future__ import annotations

from datetime import date
from functools import partial
from pathlib import Path

import pytest
from tests.conftest import command_for
from tests.runs.conftest import lake_with
from tests.servers.cluster import Cluster, cluster
from tests.servers.s3 import S3Server

from lakehouse.lake import Lake
from lakehouse.pipelines.market.pipeline import market
from lakehouse.pipelines.market.sample import write_day

__all__ = ["cluster"]

pytestmark = [pytest.mark.spark, pytest.mark.slow]
ANSWER = "select ticker, date, open, high, low, close, volume, trades from gold.daily_bars order by 1, 2"


@pytest.mark.parametrize("warehouse", ["folder", "s3"])
def test_a_pipeline_runs_on_a_cluster_as_it_does_in_one_process(
    warehouse: str,
    cluster: Cluster,
    local_lake: Lake,
    s3_server: S3Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = tmp_path / "files"
    files.mkdir()
    write_day(files, date(2026, 1, 14), tickers=20)
    (tmp_path / "lake.toml").write_text(
        f'[spark]\nmaster = "{cluster.master}"\n[spark.conf]\n"spark.authenticate" = "true"\n'
        f'"spark.authenticate.secret" = "{cluster.secret}"\n[sources.market]\npath = "{files}"\n'
    )
    monkeypatch.chdir(tmp_path)
    # As real clusters have it: executors write to the object store by themselves.
    in_s3 = {**s3_server.environment, "LAKE_WAREHOUSE": f"s3://{s3_server.make_bucket()}/lake"}
    lake = partial(command_for(tmp_path / "lake"), env=in_s3 if warehouse == "s3" else {})
    done = lake("run", "market")
    assert done.returncode == 0, done.stderr
    assert cluster.executors_started() > 0
    there = lake("sql", ANSWER, "-o", "csv")
    here = lake_with(local_lake, {"market": {"path": str(files)}})
    here.run(market)
    rows = here.sql(ANSWER).rows()
    assert len(there.stdout.splitlines()) == len(rows) + 1 == 21
    assert [line.split(",")[0] for line in there.stdout.splitlines()[1:]] == [row[0] for row in rows]
    assert [line.split(",")[6] for line in there.stdout.splitlines()[1:]] == [str(row[6]) for row in rows]
