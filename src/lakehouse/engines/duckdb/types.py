"""Column types of DuckDB and of Spark."""

from __future__ import annotations

from lakehouse.core.tables import split_arguments

_TO_DUCKDB = {
    "string": "VARCHAR",
    "binary": "BLOB",
    "timestamp": "TIMESTAMPTZ",
    "timestamp_ntz": "TIMESTAMP",
    "void": "INTEGER",
}
#: By DuckDB's id of a type. Spark reads an unsigned integer as the next larger signed one.
SPARK_TYPES = {
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
    """The DuckDB type of a Spark type; a DuckDB type is returned unchanged."""
    kind, _, inside = spark_type.partition("<")
    parts = split_arguments(inside.removesuffix(">"))
    match kind:
        case "array":
            return f"{duckdb_type(parts[0])}[]"
        case "map":
            return f"MAP({duckdb_type(parts[0])}, {duckdb_type(parts[1])})"
        case "struct" if parts:
            return f"STRUCT({', '.join(map(_field, parts))})"
    # Nested types of Parquet files are DuckDB types already; the names of their fields keep their case.
    return _TO_DUCKDB.get(kind) or (kind if kind[:1].isupper() else kind.upper())


def _field(part: str) -> str:
    name, _, kind = part.partition(":")
    return '"' + name.strip().strip("`").replace('"', '""') + f'" {duckdb_type(kind.strip())}'
