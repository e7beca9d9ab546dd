"""Quote strings and identifiers in SQL."""

from __future__ import annotations


def text(value: str) -> str:
    """A string literal in standard SQL, as DuckDB parses it."""
    return "'" + value.replace("'", "''") + "'"


def name(value: str) -> str:
    """A quoted identifier in standard SQL, as DuckDB parses it."""
    return '"' + value.replace('"', '""') + '"'


def spark_text(value: str) -> str:
    """A string literal in Spark SQL, where a backslash escapes."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
