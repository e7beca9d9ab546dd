"""Minute bars of stocks as published."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def minute_aggs(raw: DataFrame) -> DataFrame:
    """Minute bars as published, one row per line of the flat files, with the name of the file.

    `unparsed` holds the text of a line that is not a bar; the other columns hold the cells that could be read.
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
