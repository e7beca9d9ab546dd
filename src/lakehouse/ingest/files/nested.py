"""Structs, lists and maps in source files: their Spark type, with clean names, and SQL that converts their values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from lakehouse.core import quoting
from lakehouse.core.dataclass import dataclass
from lakehouse.core.tables import split_arguments
from lakehouse.engines.duckdb.types import SPARK_TYPES, duckdb_type
from lakehouse.ingest.files.names import clean_names

#: An object with more keys than this is a dictionary rather than a record, and stays JSON text.
_MAX_FIELDS = 200
#: Values below this depth stay JSON text: DuckDB's time to write a list of lists doubles with every level.
_MAX_DEPTH = 8
_SAME_IN_BOTH = ("boolean", "tinyint", "smallint", "bigint", "float", "double", "date")
#: An integer of JSON: read without a limit, so that one beyond a bigint is noticed.
_JSON_INTEGER = "HUGEINT"
#: What DuckDB calls the JSON values of a column, where Spark's type is not the same.
_JSON_TYPES = {"UBIGINT": _JSON_INTEGER, "BIGINT": _JSON_INTEGER, "NULL": "VARCHAR", "JSON": "VARCHAR"}


@dataclass(frozen=True)
class TypeTree:
    """The type of a column as its file has it; `children` are its fields, its element, or its key and value."""

    kind: str
    """struct, array, map, or DuckDB's name of a plain type."""
    children: tuple[tuple[str, TypeTree], ...] = ()
    json: bool = False
    """A plain type that was inferred from JSON values."""

    @property
    def nested(self) -> bool:
        return bool(self.children)

    @property
    def spark(self) -> str:
        """The Spark type, in which the fields of structs have clean names; string if Spark has no such type."""
        parts = [part.spark for _, part in self.children]
        if self.kind == "struct":
            return f"struct<{','.join(map(':'.join, zip(self.names, parts, strict=True)))}>"
        if self.children:
            return f"{self.kind}<{','.join(parts)}>"
        return "bigint" if self.json and self.kind == _JSON_INTEGER else _plain_spark_type(self.kind)

    @property
    def names(self) -> list[str]:
        """The clean names of the fields of a struct."""
        return clean_names(name for name, _ in self.children)

    @property
    def duckdb(self) -> str:
        """DuckDB's type, with the names of the file."""
        parts = [part.duckdb for _, part in self.children]
        match self.kind:
            case "struct":
                names = (quoting.name(name) for name, _ in self.children)
                return f"STRUCT({', '.join(map(' '.join, zip(names, parts, strict=True)))})"
            case "array":
                return f"{parts[0]}[]"
            case "map":
                return f"MAP({', '.join(parts)})"
        return self.kind

    def leaves(self, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], TypeTree]]:
        """The path and type of every value that is not a struct itself; lists and maps are not entered."""
        if self.kind != "struct":
            yield path, self
        for name, part in self.children if self.kind == "struct" else ():
            yield from part.leaves((*path, name))


def tree_of(kind: Any) -> TypeTree:
    """The tree of a `DuckDBPyType`, whose stubs do not describe its children."""
    match kind.id:
        case "list" | "array":
            return TypeTree("array", (("element", tree_of(kind.children[0][1])),))
        case "map":
            pair = zip(("key", "value"), kind.children, strict=True)
            return TypeTree("map", tuple((name, tree_of(part)) for name, (_, part) in pair))
        case "struct":
            return TypeTree("struct", tuple((name, tree_of(part)) for name, part in kind.children))
    return TypeTree(str(kind))


def tree_of_json(structure: Any, depth: int = 0) -> TypeTree:
    """The tree of what DuckDB's `json_structure` returns."""
    if isinstance(structure, dict | list) and depth == _MAX_DEPTH:
        return TypeTree("VARCHAR", json=True)
    if isinstance(structure, dict) and 0 < len(structure) <= _MAX_FIELDS:
        return TypeTree("struct", tuple((name, tree_of_json(part, depth + 1)) for name, part in structure.items()))
    if isinstance(structure, list):
        return TypeTree("array", (("element", tree_of_json(structure[0], depth + 1)),))
    return TypeTree(_JSON_TYPES.get(structure, structure) if isinstance(structure, str) else "VARCHAR", json=True)


def json_trees(structure: str) -> dict[str, TypeTree]:
    """The trees of the top-level keys of objects."""
    return {key: tree_of_json(part) for key, part in json.loads(structure).items()}


def is_nested(kind: str) -> bool:
    """Whether a Spark type is a list, struct or map."""
    return kind.startswith(("array<", "struct<", "map<"))


def fields_of(kind: str) -> dict[str, str]:
    """The types of the parts of a nested Spark type by name: `element` of a list, `key` and `value` of a map."""
    head, _, inside = kind.partition("<")
    parts = split_arguments(inside.removesuffix(">"))
    if head == "struct":
        return {name.strip("`"): part for name, _, part in (part.partition(":") for part in parts)}
    return dict(zip(("element",) if head == "array" else ("key", "value"), parts, strict=True))


def converted(tree: TypeTree, value: str, depth: int = 0) -> str:
    """SQL for a value of the tree's type with clean names and types that Spark has.

    Args:
        depth: of the lambdas around it, each of which has a variable of its own.
    """
    entry = f"e{depth}"
    match tree.kind:
        case "struct":
            parts = (
                f"{quoting.name(clean)} := {converted(part, _field(value, name), depth)}"
                for clean, (name, part) in zip(tree.names, tree.children, strict=True)
            )
            return f"CASE WHEN {value} IS NOT NULL THEN struct_pack({', '.join(parts)}) END"
        case "array":
            return f"list_transform({value}, lambda {entry}: {converted(tree.children[0][1], entry, depth + 1)})"
        case "map":
            pair = (f"{name} := {converted(part, _field(entry, name), depth + 1)}" for name, part in tree.children)
            return f"map_from_entries(list_transform(map_entries({value}), lambda {entry}: struct_pack({', '.join(pair)})))"
    return f"CAST({value} AS {duckdb_type(tree.spark)})"


def preserved(source: str, target: str, value: str, depth: int = 0) -> str:
    """SQL for whether a value of one Spark type keeps everything it holds as a value of another; see `converted`."""
    if source == target:
        return "true"
    if not is_nested(source):
        kept = f"TRY_CAST({value} AS {duckdb_type(target)})"
        # A cast rounds; the way back shows it. Text has no such way: 2024-1-1 is a date that is written otherwise.
        back = f"{kept} IS NOT NULL" if source == "string" else f"TRY_CAST({kept} AS {duckdb_type(source)}) = {value}"
        return f"({value} IS NULL OR coalesce({back}, false))"
    if source.partition("<")[0] != target.partition("<")[0]:
        return f"({value} IS NULL)"
    given, wanted = fields_of(source), fields_of(target)
    if source.startswith("struct<"):
        parts = [
            preserved(kind, wanted[name], _field(value, name), depth)
            if name in wanted
            else f"({_field(value, name)} IS NULL)"
            for name, kind in given.items()
        ]
        return f"({' AND '.join(parts)})"
    entry = f"e{depth}"
    inner = [(name, entry if name == "element" else _field(entry, name)) for name in given]
    parts = [preserved(given[name], wanted[name], sql, depth + 1) for name, sql in inner]
    entries = value if "element" in given else f"map_entries({value})"
    return f"coalesce(list_bool_and(list_transform({entries}, lambda {entry}: {' AND '.join(parts)})), true)"


def merged_type(one: str, other: str, common: Any) -> str:
    """The nested type that holds the values of both: all fields, each of the `common` type; string if they differ in kind."""
    head = one.partition("<")[0]
    if head != other.partition("<")[0]:
        return "string"
    first, second = fields_of(one), fields_of(other)
    parts = {name: common(kind, second[name]) if name in second else kind for name, kind in first.items()}
    parts |= {name: kind for name, kind in second.items() if name not in first}
    listed = (f"{name}:{kind}" for name, kind in parts.items()) if head == "struct" else parts.values()
    return f"{head}<{','.join(listed)}>"


def _plain_spark_type(kind: str) -> str:
    lower = kind.lower()
    known = SPARK_TYPES.get(lower) or (lower if lower in _SAME_IN_BOTH else "")
    return known or (lower.replace(" ", "") if lower.startswith("decimal") else "string")


def _field(value: str, name: str) -> str:
    return f"struct_extract({value}, {quoting.text(name)})"
