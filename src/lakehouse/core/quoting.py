"""Texts and names inside SQL, so that whatever they hold stays what it is."""

from __future__ import annotations


def text(value: str) -> str:
    """A text in standard SQL, as DuckDB reads it."""
    return "'" + value.replace("'", "''") + "'"


def name(value: str) -> str:
    """A name in standard SQL, as DuckDB reads it."""
    return '"' + value.replace('"', '""') + '"'


def spark_text(value: str) -> str:
    """A text in Spark's SQL, where a backslash escapes."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
