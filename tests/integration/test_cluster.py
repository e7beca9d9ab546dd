"""The pipelines on a standalone Spark cluster, unchanged: the same rows as in one process.

The executors cannot read the driver's folders (tests/servers/cluster.py): files that are downloaded and rows that are staged must be in
the lake's storage.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from tests.everything import everything
from tests.servers.cluster import Cluster, cluster
from tests.servers.postgres import Postgres
from tests.servers.s3 import S3Server
from tests.servers.web import serving

from lakehouse.pipelines.market.sample import write_day
from lakehouse.pipelines.social import sample as social
from lakehouse.pipelines.taxi.sample import write_month

__all__ = ["cluster"]

pytestmark = [pytest.mark.spark, pytest.mark.slow]
#: A web address cannot be listed, so the month is named.
PIPELINES = ("market", "taxi:2026-01", "social")


@dataclass(frozen=True)
class Sources:
    """The settings of three sources that need no folder, and what the pipelines make of them in one process."""

    settings: dict[str, str]
    made: dict[str, Any]


@pytest.fixture
def sources(s3_server: S3Server, postgres: Postgres, tmp_path: Path) -> Iterator[Sources]:
    bucket = s3_server.make_bucket()
    write_day(tmp_path / "bars", date(2026, 1, 14), tickers=20)
    for file in (tmp_path / "bars").rglob("*.gz"):
        s3_server.put(f"s3://{bucket}/{file.name}", file.read_bytes())
    month = write_month(tmp_path / "trips", "2026-01", rows=500)
    with postgres.connect() as connection:
        social.create(connection, users=30)
    with serving() as web:
        web.files[f"/{month.name}"] = month.read_bytes()
        settings = {
            **s3_server.environment,
            "LAKE_SOURCES__MARKET__PATH": f"s3://{bucket}",
            "LAKE_SOURCES__TAXI__URL": web.address,
            "LAKE_SOURCES__SOCIAL__URL": postgres.url,
        }
        yield Sources(settings, everything({**settings, "LAKE_HOME": str(tmp_path / "here")}, *PIPELINES))


def test_pipelines_run_on_a_cluster_as_they_do_in_one_process(
    sources: Sources, cluster: Cluster, s3_server: S3Server, tmp_path: Path
) -> None:
    (tmp_path / "lake.toml").write_text(
        f'[spark]\nmaster = "{cluster.master}"\n[spark.conf]\n"spark.authenticate" = "true"\n'
        f'"spark.authenticate.secret" = "{cluster.secret}"\n'
    )
    bucket = s3_server.make_bucket()
    there = everything(
        {
            **sources.settings,
            "LAKE_HOME": str(tmp_path / "there"),
            "LAKE_WAREHOUSE": f"s3://{bucket}/lake",
            "LAKE_SPARK__MASTER": cluster.master,
        },
        *PIPELINES,
        cwd=tmp_path,
    )
    assert cluster.executors_started() > 0
    assert there["states"] == sources.made["states"]
    assert there["rows"] == sources.made["rows"]
    assert all(there["rows"].values())
    raw = {name.split("/")[3] for name in s3_server.names(f"{bucket}/lake/_raw")}
    assert raw == {"social", "taxi"}
