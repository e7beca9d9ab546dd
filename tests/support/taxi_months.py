"""Read one Parquet file of trips from a folder of the test."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse.core.raw import LocalRawArea
from lakehouse.pipelines.taxi.source.months import RawMonth
from lakehouse.pipelines.taxi.source.published import read_published

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_month(spark: SparkSession, file: Path) -> tuple[DataFrame, list[str]]:
    return read_published(spark, RawMonth(LocalRawArea(file.parent), file.name))
