"""SQL that casts strings to the type of a column and detects values that do not match it."""

from __future__ import annotations

import re
from dataclasses import replace

from lakehouse.core import quoting
from lakehouse.core.dataclass import dataclass
from lakehouse.engines.duckdb.types import duckdb_type
from lakehouse.ingest.files import column_stats
from lakehouse.ingest.files.model import PlannedColumn
from lakehouse.ingest.files.nested import TypeTree, converted, fields_of, is_nested, merged_type, preserved

#: The error message of a query in which a value does not match its type.
MISMATCH = "lake type mismatch"

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)")


@dataclass(frozen=True)
class Cast:
    """SQL for whether a string matches the type (never NULL for a string), and for the typed value."""

    matches_type: str
    value: str

    def mismatch(self, text: str) -> str:
        return f"({text} IS NOT NULL AND NOT coalesce({self.matches_type}, false))"


def cast_of(column: PlannedColumn, raw: str, text: str) -> Cast | None:
    """The cast of a column, or None for strings, which all match. `raw` and `text` are SQL (see `column_stats.stats_sql`)."""
    if column.type == "string":
        return None
    if is_nested(column.type):
        parsed = f"TRY_CAST({raw} AS JSON)"
        value = f"TRY_CAST({parsed} AS {duckdb_type(column.type)})"
        return Cast(f"({value} IS NOT NULL AND {_holds_all(column, parsed)})", value)
    if column.format:
        return _local_datetime(column, text)
    if column.type in ("date", "timestamp", "timestamp_ntz"):
        return _iso_datetime(column, text)
    return _plain(column, raw)


def _holds_all(column: PlannedColumn, value: str, depth: int = 0) -> str:
    """SQL for whether a nested column takes everything in a JSON value: DuckDB's cast leaves out keys and rounds numbers."""
    if not is_nested(column.type):
        text = f"({value} ->> '$')"
        cast = cast_of(replace(column, format=""), text, text)
        return f"({text} IS NULL OR coalesce({cast.matches_type}, false))" if cast else "true"
    entry, fields, is_list = f"j{depth}", fields_of(column.type), column.type.startswith("array<")
    is_kind = f"json_type({value}) = '{'ARRAY' if is_list else 'OBJECT'}'"
    keys = f"json_keys({value})"
    if column.type.startswith("struct<"):
        known = f"list_has_all([{', '.join(map(quoting.text, fields))}], {keys}) AND len({keys}) = list_unique({keys})"
        parts = (
            _holds_all(replace(column, type=kind), f"({value} -> {quoting.text(_json_path(name))})", depth)
            for name, kind in fields.items()
        )
        inside = " AND ".join((known, *parts))
    else:
        entries = f"CAST({value} AS JSON[])" if is_list else f"map_values(CAST({value} AS MAP(VARCHAR, JSON)))"
        element = replace(column, type=fields["element" if is_list else "value"])
        inside = f"coalesce(list_bool_and(list_transform({entries}, lambda {entry}: {_holds_all(element, entry, depth + 1)})), true)"
    return (
        f"CASE WHEN coalesce(json_type({value}), 'NULL') = 'NULL' THEN true WHEN {is_kind} THEN {inside} ELSE false END"
    )


def _json_path(key: str) -> str:
    return '$."' + key.replace('"', '\\"') + '"'


def cast_from(tree: TypeTree, column: PlannedColumn, value: str) -> Cast:
    """The cast of a column from the type that its file has. `value` is SQL of that type."""
    target, own = duckdb_type(column.type), converted(tree, value)
    if tree.spark == column.type:
        return Cast("true", own)
    if tree.nested and column.type == "string":
        return Cast("true", f"CAST(to_json({value}) AS VARCHAR)")
    return Cast(preserved(tree.spark, column.type, f"({own})"), f"TRY_CAST({own} AS {target})")


def common_type(one: str, other: str) -> str:
    """The narrowest type for the values of both types; string in doubt."""
    if one == other:
        return one
    if is_nested(one) and is_nested(other):
        return merged_type(one, other, common_type)
    pair = {one, other}
    if pair == {"date", "timestamp_ntz"}:
        return "timestamp_ntz"
    if pair <= set(_INTEGERS):
        return max(one, other, key=_INTEGERS.index)
    if pair <= {*_INTEGERS, "float", "double"}:
        return "double"
    sized = [_size(type) for type in (one, other)]
    if None in sized:
        return "string"
    digits, scale = (max(size[index] for size in sized if size) for index in (0, 1))
    return f"decimal(38,{scale})" if digits + scale <= 38 else "string"


def _size(type: str) -> tuple[int, int] | None:
    """Digits before and after the decimal point."""
    if type in _INTEGERS:
        return (3, 5, 10, 19)[_INTEGERS.index(type)], 0
    decimal = _DECIMAL.fullmatch(type)
    return (int(decimal[1]) - int(decimal[2]), int(decimal[2])) if decimal else None


def _plain(column: PlannedColumn, raw: str) -> Cast:
    kind, target = column.type, duckdb_type(column.type)
    value = f"TRY_CAST({raw} AS {target})"
    if kind == "boolean":
        return Cast(column_stats.matches(raw, column_stats.BOOLEAN), f"CAST(trim({raw}) AS BOOLEAN)")
    if kind in _INTEGERS:
        # The pattern comes first: a cast alone would accept 007, 1_000, 1e3 and 1.5 as integers.
        return Cast(f"({column_stats.matches(raw, column_stats.INTEGER)} AND {value} IS NOT NULL)", value)
    if kind in ("double", "float"):
        return _double(column, raw, value)
    if decimal := _DECIMAL.fullmatch(kind):
        return Cast(f"({_matches_decimal(raw, int(decimal[1]), int(decimal[2]))} AND {value} IS NOT NULL)", value)
    return Cast(f"({value} IS NOT NULL)", value)


def _double(column: PlannedColumn, raw: str, value: str) -> Cast:
    number = "|".join((column_stats.INTEGER, column_stats.FRACTION, column_stats.EXPONENT, column_stats.NOT_FINITE))
    # A column that is already a double takes any number; for a new column, no digit may be lost.
    finite = f"NOT isinf({value})" if column.recorded else column_stats.double_preserves(raw)
    not_finite = column_stats.matches(raw, column_stats.NOT_FINITE)
    short = f"(length({raw}) <= 16 AND {column_stats.matches(raw, column_stats.FRACTION)})"
    exact = f"({column_stats.matches(raw, number)} AND ({not_finite} OR {finite}))"
    return Cast(f"CASE WHEN {short} THEN true ELSE {exact} END", value)


def _matches_decimal(raw: str, precision: int, scale: int) -> str:
    whole = f"(?:0|[1-9][0-9]{{0,{precision - scale - 1}}})" if precision > scale else "0"
    # RE2 limits repetition to 1000; the maximum precision is 38.
    fraction = rf"(?:\.[0-9]{{1,{scale}}}0*)?" if scale else ""
    return column_stats.matches(raw, rf" *-?{whole}?{fraction} *")


def _iso_datetime(column: PlannedColumn, text: str) -> Cast:
    value = f"TRY_CAST({text} AS {duckdb_type(column.type)})"
    shape = {
        "date": column_stats.DATE,
        "timestamp": column_stats.TIMESTAMP,
        "timestamp_ntz": f"{column_stats.TIMESTAMP_NTZ}|{column_stats.DATE}",
    }[column.type]
    if not (column.truncated or column.recorded):
        # Nanoseconds match only once the plan truncates them.
        shape = shape.replace(column_stats.NINE_DIGITS, column_stats.SIX_DIGITS)
    return Cast(f"({column_stats.matches(text, shape)} AND {value} IS NOT NULL)", value)


def _local_datetime(column: PlannedColumn, text: str) -> Cast:
    parsed = f"try_strptime(trim({text}), '{column.format}')"
    value = f"CAST({parsed} AS {duckdb_type(column.type)})"
    shaped = column_stats.matches(text, column_stats.LOCAL)
    if not column.recorded:
        return Cast(f"({shaped} AND {parsed} IS NOT NULL)", value)
    iso = _iso_datetime(column, text)  # a later file may write the same column in ISO format
    return Cast(
        f"(({shaped} AND {parsed} IS NOT NULL) OR {iso.matches_type})",
        f"CASE WHEN {shaped} THEN {value} ELSE {iso.value} END",
    )
