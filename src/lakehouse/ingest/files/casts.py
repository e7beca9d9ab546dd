"""SQL that turns the text of a value into its type, or says that it does not fit."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lakehouse.engines.duckdb.types import SPARK_TYPES, duckdb_type
from lakehouse.ingest.files import features
from lakehouse.ingest.files.model import PlannedColumn

#: What a query fails with where a value does not fit and every value must.
MISFIT = "lake misfit"

_SAME_IN_BOTH = ("BOOLEAN", "TINYINT", "SMALLINT", "BIGINT", "FLOAT", "DOUBLE", "DATE")
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)")


@dataclass(frozen=True)
class Cast:
    """How one value becomes its type: SQL for "it fits" (never null for a text) and for the value."""

    fits: str
    value: str

    def misfit(self, text: str) -> str:
        return f"({text} IS NOT NULL AND NOT coalesce({self.fits}, false))"


def cast_of(column: PlannedColumn, raw: str, text: str) -> Cast | None:
    """The cast for a column, or None where every text fits. `raw` and `text` are SQL (see `features.features_sql`)."""
    if column.type == "string":
        return None
    if column.format:
        return _local(column, text)
    if column.type in ("date", "timestamp", "timestamp_ntz"):
        return _dated(column, text)
    return _plain(column, raw)


def spark_type(duckdb: str) -> str:
    """A DuckDB type in Spark's words; what Spark has no word for is kept as text."""
    if duckdb.lower() in SPARK_TYPES:
        return SPARK_TYPES[duckdb.lower()]
    if duckdb in _SAME_IN_BOTH or duckdb.startswith("DECIMAL"):
        return duckdb.lower()
    return duckdb if is_nested(duckdb) else "string"


def is_nested(type: str) -> bool:
    """A list, struct or map, which only Parquet files have; its type stays in DuckDB's words."""
    return type.endswith("]") or type.startswith(("STRUCT", "MAP"))


def common_type(one: str, other: str) -> str:
    """The type that holds the values of both; text holds everything."""
    if one == other:
        return one
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
    digits, scale = (max(size[place] for size in sized if size) for place in (0, 1))
    return f"decimal(38,{scale})" if digits + scale <= 38 else "string"


def _size(type: str) -> tuple[int, int] | None:
    """Digits before and after the point."""
    if type in _INTEGERS:
        return (3, 5, 10, 19)[_INTEGERS.index(type)], 0
    found = _DECIMAL.fullmatch(type)
    return (int(found[1]) - int(found[2]), int(found[2])) if found else None


def _plain(column: PlannedColumn, raw: str) -> Cast:
    kind, target = column.type, duckdb_type(column.type)
    value = f"TRY_CAST({raw} AS {target})"
    if kind == "boolean":
        return Cast(features.matches(raw, features.BOOLEAN), f"CAST(trim({raw}) AS BOOLEAN)")
    if kind in _INTEGERS:
        # The shape comes first: a cast alone would take 007, 1_000, 1e3 and 1.5 for whole numbers.
        return Cast(f"({features.matches(raw, features.INTEGER)} AND {value} IS NOT NULL)", value)
    if kind in ("double", "float"):
        return _double(column, raw, value)
    if found := _DECIMAL.fullmatch(kind):
        return Cast(f"({_fits_decimal(raw, int(found[1]), int(found[2]))} AND {value} IS NOT NULL)", value)
    return Cast(f"({value} IS NOT NULL)", value)


def _double(column: PlannedColumn, raw: str, value: str) -> Cast:
    number = "|".join((features.INTEGER, features.FRACTION, features.EXPONENT, features.NOT_FINITE))
    # A table whose column already is a double wants doubles; a first file must not lose digits by becoming one.
    finite = f"NOT isinf({value})" if column.recorded else features.double_keeps(raw)
    not_finite = features.matches(raw, features.NOT_FINITE)
    quick = f"(length({raw}) <= 16 AND {features.matches(raw, features.FRACTION)})"
    slow = f"({features.matches(raw, number)} AND ({not_finite} OR {finite}))"
    return Cast(f"CASE WHEN {quick} THEN true ELSE {slow} END", value)


def _fits_decimal(raw: str, precision: int, scale: int) -> str:
    whole = f"(?:0|[1-9][0-9]{{0,{precision - scale - 1}}})" if precision > scale else "0"
    # RE2 counts to 1000 at most, far beyond 38.
    fraction = rf"(?:\.[0-9]{{1,{scale}}})?" if scale else ""
    return features.matches(raw, rf" *-?{whole}?{fraction} *")


def _dated(column: PlannedColumn, text: str) -> Cast:
    value = f"TRY_CAST({text} AS {duckdb_type(column.type)})"
    shape = {
        "date": features.DATE,
        "timestamp": features.TIMESTAMP,
        "timestamp_ntz": f"{features.TIMESTAMP_NTZ}|{features.DATE}",
    }[column.type]
    if not (column.cut or column.recorded):
        # So that no time is cut before the plan says so.
        shape = shape.replace(features.NINE_DIGITS, features.SIX_DIGITS)
    return Cast(f"({features.matches(text, shape)} AND {value} IS NOT NULL)", value)


def _local(column: PlannedColumn, text: str) -> Cast:
    parsed = f"try_strptime(trim({text}), '{column.format}')"
    value = f"CAST({parsed} AS {duckdb_type(column.type)})"
    shaped = features.matches(text, features.LOCAL)
    if not column.recorded:
        return Cast(f"({shaped} AND {parsed} IS NOT NULL)", value)
    iso = _dated(column, text)  # a later file may well write the same column the ISO way
    return Cast(
        f"(({shaped} AND {parsed} IS NOT NULL) OR {iso.fits})",
        f"CASE WHEN {shaped} THEN {value} ELSE {iso.value} END",
    )
