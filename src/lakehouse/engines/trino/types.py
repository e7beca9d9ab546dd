"""Trino's column types in Spark's words."""

from __future__ import annotations

import re

_WORDS = {
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
    """A type as Trino spells it, `row(a bigint, b varchar(3))`, in Spark's words."""
    kind = kind.strip()
    if (stamp := _TIMESTAMP.fullmatch(kind)) is not None:
        return "timestamp" if stamp[1] else "timestamp_ntz"
    head, bracket, inside = kind.partition("(")
    head, inside = head.lower(), inside.removesuffix(")")
    match head:
        case "array":
            return f"array<{spark_type(inside)}>"
        case "map":
            return "map<" + ",".join(spark_type(part) for part in _parts(inside)) + ">"
        case "row":
            return "struct<" + ",".join(_field(part) for part in _parts(inside)) + ">"
        case "decimal":
            return "decimal(" + inside.replace(" ", "") + ")" if bracket else "decimal(38,0)"
    return _WORDS.get(head, head)


def _field(part: str) -> str:
    name, _, kind = part.strip().partition(" ")
    name = name.strip('"')
    return f"{name}:{spark_type(kind)}"


def _parts(inside: str) -> list[str]:
    """What stands between the commas that are not within a part's own brackets."""
    found, depth, start = [], 0, 0
    for place, letter in enumerate(inside + ","):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            found.append(inside[start:place].strip())
            start = place + 1
    return found
