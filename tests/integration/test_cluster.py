"""A pipeline on a standalone Spark cluster, unchanged: the same rows as in one process."""

from __future__ import annotations

from datetime import date
from functools import partial
from pathlib import Path

import pytest
from tests.conftest import command_for
from tests.servers.cluster import Cluster, cluster
from tests.servers.s3 import S3Server

from lakehouse.pipelines.market.sample import write_day

__all__ = ["cluster"]

pytestmark = [pytest.mark.spark, pytest.mark.slow]
ANSWER = "select ticker, date, open, high, low, close, volume, trades from gold.daily_bars order by 1, 2"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    write_day(folder, date(2026, 1, 14), tickers=20)
    return folder


@pytest.fixture(scope="module")
def in_one_process(files: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the pipeline makes without a cluster. Its Spark has ended before the cluster's begins."""
    lake = partial(
        command_for(tmp_path_factory.mktemp("here") / "lake"), env={"LAKE_SOURCES__MARKET__PATH": str(files)}
    )
    done = lake("run", "market")
    assert done.returncode == 0, done.stderr
    return lake("sql", ANSWER, "-o", "csv").stdout


@pytest.mark.parametrize("warehouse", ["folder", "s3"])
def test_a_pipeline_runs_on_a_cluster_as_it_does_in_one_process(
    warehouse: str,
    files: Path,
    in_one_process: str,
    cluster: Cluster,
    s3_server: S3Server,
    tmp_path: Path,
) -> None:
    (tmp_path / "lake.toml").write_text(
        f'[spark]\nmaster = "{cluster.master}"\n[spark.conf]\n"spark.authenticate" = "true"\n'
        f'"spark.authenticate.secret" = "{cluster.secret}"\n[sources.market]\npath = "{files}"\n'
    )
    # As real clusters have it: executors write to the object store by themselves.
    in_s3 = {**s3_server.environment, "LAKE_WAREHOUSE": f"s3://{s3_server.make_bucket()}/lake"}
    lake = partial(command_for(tmp_path / "lake"), env=in_s3 if warehouse == "s3" else {}, cwd=tmp_path)
    done = lake("run", "market")
    assert done.returncode == 0, done.stderr
    assert cluster.executors_started() > 0
    there = lake("sql", ANSWER, "-o", "csv").stdout
    assert there.count("\n") == 21
    assert there == in_one_process
