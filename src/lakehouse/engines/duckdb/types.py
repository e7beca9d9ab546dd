"""Column types of DuckDB and of Spark."""

from __future__ import annotations

from lakehouse.core import quoting
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

#: What the names of types have in them that hold dates or times.
TIMES = ("DATE", "TIMESTAMP")


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


def with_sorted_maps(value: str, spark_type: str, depth: int = 0) -> str:
    """SQL for a value whose maps have their entries in the order of their keys.

    A map has no order, but DuckDB compares maps entry by entry, and Hudi does not keep the order of a file.

    Args:
        depth: of the lambdas around it, each of which has a variable of its own.
    """
    if "map<" not in spark_type:
        return value
    kind, _, inside = spark_type.partition("<")
    parts, entry = split_arguments(inside.removesuffix(">")), f"m{depth}"
    match kind:
        case "map":
            key, item = (
                with_sorted_maps(f"{entry}.{name}", part, depth + 1)
                for name, part in zip(("key", "value"), parts, strict=True)
            )
            pairs = f"list_transform(map_entries({value}), lambda {entry}: struct_pack(key := {key}, value := {item}))"
            return f"map_from_entries(list_sort({pairs}))"
        case "array":
            return f"list_transform({value}, lambda {entry}: {with_sorted_maps(entry, parts[0], depth + 1)})"
    fields = [
        f"{name} := {with_sorted_maps(f'({value}).{name}', part, depth)}" for name, part in map(_split_field, parts)
    ]
    return f"CASE WHEN {value} IS NOT NULL THEN struct_pack({', '.join(fields)}) END"


def _field(part: str) -> str:
    name, kind = _split_field(part)
    return f"{name} {duckdb_type(kind)}"


def _split_field(part: str) -> tuple[str, str]:
    """The quoted name and the type of a field of a struct."""
    name, _, kind = part.partition(":")
    return quoting.name(name.strip().strip("`")), kind.strip()
