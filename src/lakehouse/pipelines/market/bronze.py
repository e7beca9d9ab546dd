"""Minute bars of stocks as they were published."""

from __future__ import annotations

from pyspark.sql import DataFrame


def minute_aggs(raw: DataFrame) -> DataFrame:
    """Minute bars as published, one row per line of the flat files, with the file they came from.

    `unparsed` holds the text of a line that is not a bar; what of it could be read is in the other columns.
    """
    return raw.select(
        "ticker",
        "volume",
        "open",
        "close",
        "high",
        "low",
        "window_start",
        "transactions",
        "unparsed",
        "date",
        "source_file",
        "file_modified_at",
        "ingested_at",
    )
