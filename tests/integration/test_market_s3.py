"""Minute bars in a bucket with an endpoint and keys of its own, read by Spark itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from tests.conftest import Command, stop_spark
from tests.support.servers.s3 import S3Server

from lakehouse.pipelines.market.sample import write_day

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(autouse=True)
def _stopped(home: Path) -> Iterator[None]:
    yield
    stop_spark(home)


def test_a_bucket_with_its_own_keys_is_read_and_the_keys_are_printed_nowhere(
    lake_command: Command, home: Path, tmp_path: Path, s3_server: S3Server
) -> None:
    written = write_day(tmp_path, date(2026, 1, 14))
    s3_server.make_bucket("bars")
    for file in written.files:
        s3_server.put(f"s3://bars/flat/{file.name}", file.read_bytes())
    source = {
        "LAKE_SOURCES__MARKET__PATH": "s3://bars/flat",
        "LAKE_SOURCES__MARKET__ENDPOINT": s3_server.endpoint,
        "LAKE_SOURCES__MARKET__ACCESS_KEY": s3_server.access_key,
        "LAKE_SOURCES__MARKET__SECRET_KEY": s3_server.secret_key,
    }
    # The run attaches to a Spark that stands by, which must have the classes for buckets.
    assert lake_command("sql", "select 1", "--engine", "spark", env=source).returncode == 0
    only = ("--table", "bronze.minute_aggs", "--table", "silver.minute_aggs")
    done = lake_command("run", "market", *only, env=source)
    assert done.returncode == 0, done.stderr
    counted = lake_command("sql", "select count(*) as n from silver.minute_aggs", "-o", "json")
    assert json.loads(counted.stdout) == [{"n": written.bars}]
    assert "There was nothing new" in lake_command("run", "market", *only, env=source).stderr
    wrong = lake_command(
        "run", "market", "--partition", "2026-01-14", env={**source, "LAKE_SOURCES__MARKET__SECRET_KEY": "x"}
    )
    assert wrong.returncode == 2
    assert "S3 denies access to" in wrong.stderr
    told = done.stdout + done.stderr + wrong.stdout + wrong.stderr
    logs = "".join(file.read_text(errors="replace") for file in (home / "logs").glob("*"))
    assert s3_server.secret_key not in told + logs
