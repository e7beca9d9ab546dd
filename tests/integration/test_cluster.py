"""The pipelines on a standalone Spark cluster, unchanged.

The executors cannot read the driver's folders (tests/support/servers/cluster.py): files that are downloaded and rows that are staged must be in
the lake's storage. That the rows are those of a single process, tests/integration/test_pipelines_stack.py shows on another lake.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest
from pyarrow.parquet import read_metadata
from tests.support.servers.cluster import Cluster, cluster
from tests.support.servers.postgres import Postgres
from tests.support.servers.s3 import S3Server
from tests.support.servers.web import serving

from lakehouse.pipelines.market.sample import write_day
from lakehouse.pipelines.social import sample as social
from lakehouse.pipelines.taxi.sample import write_month

__all__ = ["cluster"]

pytestmark = [pytest.mark.spark, pytest.mark.slow]
#: Prints the number of rows by table.
RUN_ALL = """
import json, sys
from lakehouse import open_lake
with open_lake() as lake:
    for pipeline, *partitions in (["market"], ["taxi", "2026-01"], ["social"]):
        assert lake.run(pipeline, *partitions).state == "published", pipeline
    print(json.dumps({table: lake.sql(f"select count(*) from {table}", engine="duckdb").rows()[0][0] for table in sys.argv[1:]}))
"""


def test_pipelines_run_on_a_cluster(cluster: Cluster, s3_server: S3Server, postgres: Postgres, tmp_path: Path) -> None:
    source, warehouse = s3_server.make_bucket(), s3_server.make_bucket()
    day = write_day(tmp_path / "bars", date(2026, 1, 14), tickers=20)
    for file in day.files:
        s3_server.put(f"s3://{source}/{file.name}", file.read_bytes())
    month = write_month(tmp_path / "trips", "2026-01", rows=500)
    with postgres.connect() as connection:
        social.create(connection, users=30)
    expected = {"silver.minute_aggs": day.bars, "bronze.yellow_trips": read_metadata(month).num_rows}
    for table in ("social.users", "social.posts", "social.follows"):
        ((expected[table],),) = postgres.rows(f"select count(*) from {table.removeprefix('social.')}")
    # One executor is enough, and each gets its own copy of the jars.
    (tmp_path / "lake.toml").write_text(
        f'[spark]\nmaster = "{cluster.master}"\n[spark.conf]\n"spark.authenticate" = "true"\n'
        f'"spark.authenticate.secret" = "{cluster.secret}"\n"spark.cores.max" = "1"\n'
    )
    with serving() as web:
        web.files[f"/{month.name}"] = month.read_bytes()
        environment = {
            **os.environ,
            **s3_server.environment,
            "LAKE_HOME": str(tmp_path / "lake"),
            "LAKE_WAREHOUSE": f"s3://{warehouse}/lake",
            "LAKE_SOURCES__MARKET__PATH": f"s3://{source}",
            "LAKE_SOURCES__TAXI__URL": web.address,
            "LAKE_SOURCES__SOCIAL__URL": postgres.url,
        }
        done = subprocess.run(
            [sys.executable, "-c", RUN_ALL, *expected],
            capture_output=True,
            text=True,
            env=environment,
            cwd=tmp_path,
            timeout=600,
        )
    assert done.returncode == 0, done.stderr[-4000:]
    assert json.loads(done.stdout.splitlines()[-1]) == expected
    assert cluster.executors_started() > 0
    assert {name.split("/")[3] for name in s3_server.names(f"{warehouse}/lake/_raw")} == {"social", "taxi"}
