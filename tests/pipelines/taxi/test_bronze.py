"""Bronze keeps what is published."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.support.frames import assert_same_frame
from tests.support.taxi_trips import read_month

from lakehouse.pipelines.taxi.bronze import LINEAGE, PUBLISHED, yellow_trips
from lakehouse.pipelines.taxi.sample import write_month
from lakehouse.pipelines.taxi.source import TRIPS
from lakehouse.pipelines.taxi.source.published import with_lineage


def test_bronze_has_every_published_column() -> None:
    assert list(PUBLISHED) == [column.name for column in TRIPS]


@pytest.mark.spark
def test_bronze_leaves_nothing_out_and_corrects_nothing(spark: SparkSession, tmp_path: Path) -> None:
    published, _ = read_month(spark, write_month(tmp_path, "2026-01", rows=200))
    raw = with_lineage(published, "2026-01", "f.parquet", datetime(2026, 3, 1, tzinfo=UTC))
    result = yellow_trips(raw.withColumn("more", raw["VendorID"]))
    assert result.columns == [*PUBLISHED, *LINEAGE]
    assert_same_frame(result, raw)
