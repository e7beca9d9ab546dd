"""Column types in DuckDB's words and in Spark's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_TO_DUCKDB = {
    "string": "VARCHAR",
    "binary": "BLOB",
    "timestamp": "TIMESTAMPTZ",
    "timestamp_ntz": "TIMESTAMP",
    "void": "INTEGER",
}
#: By DuckDB's id of a type. Spark reads unsigned numbers as the next larger signed ones.
_TO_SPARK = {
    "integer": "int",
    "hugeint": "decimal(38,0)",
    "uhugeint": "decimal(38,0)",
    "utinyint": "smallint",
    "usmallint": "int",
    "uinteger": "bigint",
    "ubigint": "decimal(20,0)",
    "varchar": "string",
    "uuid": "string",
    "enum": "string",
    "blob": "binary",
    "timestamp with time zone": "timestamp",
    "timestamp": "timestamp_ntz",
    "timestamp_s": "timestamp_ntz",
    "timestamp_ms": "timestamp_ntz",
    "timestamp_ns": "timestamp_ntz",
}


def duckdb_type(spark_type: str) -> str:
    """A type of Spark's in DuckDB's words; what is in those already stays as it is."""
    kind, _, inside = spark_type.partition("<")
    parts = list(_parts(inside.removesuffix(">")))
    match kind:
        case "array":
            return f"{duckdb_type(parts[0])}[]"
        case "map":
            return f"MAP({duckdb_type(parts[0])}, {duckdb_type(parts[1])})"
        case "struct" if parts:
            return f"STRUCT({', '.join(map(_field, parts))})"
    # Some types of files are in DuckDB's words, with names of fields that must keep their case.
    return _TO_DUCKDB.get(kind) or (kind if kind[:1].isupper() else kind.upper())


def spark_type(kind: Any) -> str:
    """A type of DuckDB's (a `DuckDBPyType`, whose stubs say too little of its children) in Spark's words."""
    match kind.id:
        case "decimal":
            (_, precision), (_, scale) = kind.children
            return f"decimal({precision},{scale})"
        case "list" | "array":
            return f"array<{spark_type(kind.children[0][1])}>"
        case "map":
            return f"map<{','.join(spark_type(part) for _, part in kind.children)}>"
        case "struct":
            return f"struct<{','.join(f'{name}:{spark_type(part)}' for name, part in kind.children)}>"
    return _TO_SPARK.get(kind.id, str(kind.id))


def _field(part: str) -> str:
    name, _, kind = part.partition(":")
    return '"' + name.strip().strip("`").replace('"', '""') + f'" {duckdb_type(kind.strip())}'


def _parts(inside: str) -> Iterator[str]:
    """What stands between the commas that are not within a part's own brackets."""
    depth, start = 0, 0
    for place, letter in enumerate(inside + ","):
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0:
            if part := inside[start:place].strip():
                yield part
            start = place + 1
