"""NYC yellow taxi trips: a Parquet file a month, from the web or a folder, into the lake's raw area and then into rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse.pipelines.taxi.source.months import bring, months_there
from lakehouse.pipelines.taxi.source.published import TRIPS, read_published, with_lineage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakehouse.pipelines.model import Reading

__all__ = ["SETTINGS", "TRIPS", "Month", "available", "read"]

SETTINGS = {
    "url": "address of the web folder that holds yellow_tripdata_2026-01.parquet; user:password@ may stand in it",
    "path": "a folder with such files instead; they are read where they are",
    "tries": "failures in a row after which a download is given up (5)",
    "timeout_s": "seconds of silence after which a connection has stalled (30)",
    "wait_s": "seconds before the second try, doubled before each further one (1)",
}


@dataclass(frozen=True)
class Month:
    """The trips of one file, and what to keep about it with the snapshot that they make."""

    rows: DataFrame
    notes: Mapping[str, str]


def read(reading: Reading) -> Month:
    """The trips of the month that is wanted, fetched first if they are not here or have changed."""
    found = bring(reading)
    published, unknown = read_published(reading.spark, found.file)
    for name in unknown:
        reading.say(f"{found.file.name} has a column {name} that is not known here: it is left out")
    rows = with_lineage(published, reading.partition, found.file.name, reading.now)
    return Month(rows, found.notes | ({"left_out": ", ".join(unknown)} if unknown else {}))


def available(reading: Reading) -> Mapping[str, str]:
    """The months that are in the folder, or in the lake's raw area, each with a fingerprint of its file."""
    return months_there(reading)
