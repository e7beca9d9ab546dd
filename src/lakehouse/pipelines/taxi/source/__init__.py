"""Read NYC yellow taxi trips: one Parquet file per month, from the web or a folder."""

from __future__ import annotations

from collections.abc import Mapping

from lakehouse.pipelines.model import Batch, SourceContext
from lakehouse.pipelines.taxi.source.months import find_month, list_months
from lakehouse.pipelines.taxi.source.published import TRIPS, read_published, with_lineage

__all__ = ["SETTINGS", "TRIPS", "available", "read"]

SETTINGS = {
    "url": "address of the web folder with yellow_tripdata_2026-01.parquet; it may hold user:password@",
    "path": "a folder with such files instead, which are read in place",
    "tries": "failed attempts in a row after which a download fails (default: 5)",
    "timeout_s": "seconds of silence after which a connection has stalled (default: 30)",
    "wait_s": "seconds before the second attempt, doubled before each further one (default: 1)",
}


def read(context: SourceContext) -> Batch:
    """The trips of the requested month; its file is downloaded first if it is missing or has changed."""
    month = find_month(context)
    published, unknown = read_published(context.spark, month.raw)
    for name in unknown:
        context.progress(f"{month.raw.name} has an unknown column {name}, which is left out")
    rows = with_lineage(published, context.partition, month.raw.name, context.now)
    return Batch(rows, notes=month.notes | ({"left_out": ", ".join(unknown)} if unknown else {}))


def available(context: SourceContext) -> Mapping[str, str]:
    """The months in the folder, or in the lake's raw area, each with a fingerprint of its file."""
    return list_months(context)
