"""Quote strings and identifiers in SQL, and values in Java's properties files."""

from __future__ import annotations

from collections.abc import Mapping

from lakehouse.core.tables import split_arguments


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


def spark_type(kind: str) -> str:
    """A type in Spark SQL, with the names of nested fields quoted."""
    head, bracket, inside = kind.partition("<")
    if not bracket:
        return kind
    parts = split_arguments(inside.removesuffix(">"))
    if head == "struct":
        pairs = (part.partition(":") for part in parts)
        parts = [f"{spark_name(name)}:{spark_type(part)}" for name, _, part in pairs]
    else:
        parts = [spark_type(part) for part in parts]
    return f"{head}<{','.join(parts)}>"


def spark_name(value: str) -> str:
    """A quoted identifier in Spark SQL."""
    return "`" + value.strip("`").replace("`", "``") + "`"
