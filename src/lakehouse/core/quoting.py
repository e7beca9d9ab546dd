"""Quote strings and identifiers in SQL, and values in Java's properties files."""

from __future__ import annotations

from collections.abc import Mapping


def text(value: str) -> str:
    """A string literal in standard SQL, as DuckDB parses it."""
    return "'" + value.replace("'", "''") + "'"


def name(value: str) -> str:
    """A quoted identifier in standard SQL, as DuckDB parses it."""
    return '"' + value.replace('"', '""') + '"'


def spark_text(value: str) -> str:
    """A string literal in Spark SQL, where a backslash escapes."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


_PROPERTY_ESCAPES = str.maketrans({"\\": "\\\\"})


def java_properties(values: Mapping[str, str]) -> str:
    """The text of a properties file; a backslash in a value is escaped."""
    return "".join(f"{name}={value.translate(_PROPERTY_ESCAPES)}\n" for name, value in values.items())
