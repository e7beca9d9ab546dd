"""Taxi trips as the city publishes them, and how one Parquet file of them is read from a folder of the test."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakehouse.pipelines.taxi.source.months import RawMonth
from lakehouse.pipelines.taxi.source.published import read_published
from lakehouse.storage.raw import local_raw_area

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


PUBLISHED = """VendorID bigint, tpep_pickup_datetime timestamp_ntz, tpep_dropoff_datetime timestamp_ntz,
    passenger_count bigint, trip_distance double, RatecodeID bigint, store_and_fwd_flag string, PULocationID bigint,
    DOLocationID bigint, payment_type bigint, fare_amount double, extra double, mta_tax double, tip_amount double,
    tolls_amount double, improvement_surcharge double, total_amount double, congestion_surcharge double,
    airport_fee double, cbd_congestion_fee double, month string, source_file string, ingested_at timestamp"""
NOW = datetime(2026, 3, 1)


def published(**other: Any) -> dict[str, Any]:
    return {
        "VendorID": 2,
        "tpep_pickup_datetime": datetime(2026, 1, 14, 23, 50),
        "tpep_dropoff_datetime": datetime(2026, 1, 15, 0, 3, 20),
        "passenger_count": 1,
        "trip_distance": 3.25,
        "RatecodeID": 1,
        "store_and_fwd_flag": "N",
        "PULocationID": 138,
        "DOLocationID": 265,
        "payment_type": 1,
        "fare_amount": 15.0,
        "extra": 1.0,
        "mta_tax": 0.5,
        "tip_amount": 3.1,
        "tolls_amount": 0.0,
        "improvement_surcharge": 1.0,
        "total_amount": 20.6,
        "congestion_surcharge": 2.5,
        "airport_fee": None,
        "cbd_congestion_fee": 0.75,
        "month": "2026-01",
        "source_file": "yellow_tripdata_2026-01.parquet",
        "ingested_at": NOW,
    } | other


def read_month(spark: SparkSession, file: Path) -> tuple[DataFrame, list[str]]:
    return read_published(spark, RawMonth(local_raw_area(file.parent), file.name))
