"""Yellow taxi trips as the city publishes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

AMOUNTS = (
    "fare_amount",
    "extra",
    "mta_tax",
    "tip_amount",
    "tolls_amount",
    "improvement_surcharge",
    "total_amount",
    "congestion_surcharge",
    "airport_fee",
    "cbd_congestion_fee",
)
PUBLISHED = (
    "VendorID",
    "tpep_pickup_datetime",
    "tpep_dropoff_datetime",
    "passenger_count",
    "trip_distance",
    "RatecodeID",
    "store_and_fwd_flag",
    "PULocationID",
    "DOLocationID",
    "payment_type",
    *AMOUNTS,
)
LINEAGE = ("month", "source_file", "ingested_at")


def yellow_trips(raw: DataFrame) -> DataFrame:
    """Every row of the city's monthly files in one schema for all years, with the name of its file.

    Nothing is removed or corrected: refunds, duplicates and impossible trips are included.
    """
    return raw.select(*PUBLISHED, *LINEAGE)
