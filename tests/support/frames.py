"""Whole frames compared. `pyspark.testing` would do, but importing it loads pandas-on-Spark, which warns and takes a second."""

from __future__ import annotations

from pyspark.sql import DataFrame


def assert_same_frame(made: DataFrame, expected: DataFrame) -> None:
    """The same columns with the same types, and the same rows in any order."""
    assert made.dtypes == expected.dtypes
    rows, wanted = sorted(made.collect(), key=str), sorted(expected.collect(), key=str)
    assert rows == wanted, f"{rows}\nis not\n{wanted}"
