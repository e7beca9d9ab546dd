"""Column types of Trino as Spark types."""

from __future__ import annotations

import re

from lakehouse.core.tables import split_arguments

_SPARK_TYPES = {
    "integer": "int",
    "real": "float",
    "varchar": "string",
    "char": "string",
    "uuid": "string",
    "json": "string",
    "varbinary": "binary",
    "unknown": "void",
}
_TIMESTAMP = re.compile(r"timestamp(?:\(\d+\))?( with time zone)?")


def spark_type(kind: str) -> str:
    """The Spark type of a Trino type such as `row(a bigint, b varchar(3))`."""
    kind = kind.strip()
    if (stamp := _TIMESTAMP.fullmatch(kind)) is not None:
        return "timestamp" if stamp[1] else "timestamp_ntz"
    head, bracket, inside = kind.partition("(")
    head, inside = head.lower(), inside.removesuffix(")")
    match head:
        case "array":
            return f"array<{spark_type(inside)}>"
        case "map":
            return "map<" + ",".join(spark_type(part) for part in split_arguments(inside)) + ">"
        case "row":
            return "struct<" + ",".join(_field(part) for part in split_arguments(inside)) + ">"
        case "decimal":
            return "decimal(" + inside.replace(" ", "") + ")" if bracket else "decimal(38,0)"
    return _SPARK_TYPES.get(head, head)


def _field(part: str) -> str:
    name, _, kind = part.strip().partition(" ")
    name = name.strip('"')
    return f"{name}:{spark_type(kind)}"
