"""A PostgreSQL table: its columns with their types in the lake, and the queries that read them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lakehouse.core.dataclass import dataclass
from lakehouse.pipelines.upsert import arrow_type

if TYPE_CHECKING:
    import pyarrow as pa


_PLAIN = {
    "bool": "boolean",
    "int4": "int",
    "int8": "bigint",
    "float4": "float",
    "float8": "double",
    "text": "string",
    "varchar": "string",
    "bytea": "binary",
}


@dataclass(frozen=True)
class Column:
    """A column of a PostgreSQL table and its type in the lake."""

    name: str
    """Its name in the lake, in lower case."""
    quoted: str
    """Its name in PostgreSQL, quoted."""
    kind: str
    """Its type in the lake: int, bigint, decimal(10,2), timestamp, string, …"""
    expression: str
    """The SQL expression for a value of that type."""
    base: str
    """The base type in PostgreSQL: timestamptz, int8, …"""
    declared: str
    """The declared type in PostgreSQL."""

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "bigint")


@dataclass(frozen=True)
class Relation:
    """A PostgreSQL table with its columns and its updated_at column."""

    schema: str
    name: str
    columns: Sequence[Column]
    updated_at: str = ""
    """The column with the time of a row's last change; empty: all rows are read each time."""

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"

    def column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    @property
    def fingerprint(self) -> str:
        """Changes with the columns."""
        return hashlib.sha256(repr([(column.name, column.kind) for column in self.columns]).encode()).hexdigest()[:16]

    def query(self, names: Sequence[str] = (), since: datetime | None = None) -> str:
        """SELECT some or all columns of all rows, or of those changed since a time."""
        columns = [self.column(name) for name in names] if names else self.columns
        listed = ", ".join(f"{column.expression} AS {identifier(column.name)}" for column in columns)
        where = f" WHERE {self._changed_since(since)}" if since and self.updated_at else ""
        return f"SELECT {listed} FROM {identifier(self.schema)}.{identifier(self.name)}{where}"

    def digest_query(self, key: Sequence[str], since: datetime | None) -> str:
        """SELECT the number of rows, a digest of their keys and times, and one of whole rows that changed since a time."""
        names = [*key, *([self.updated_at] if self.updated_at else [])]
        identity = ", ".join(f"t.{self.column(name).quoted}" for name in names)
        changed = f" FILTER (WHERE {self._changed_since(since)})" if since and self.updated_at else ""
        return (
            f"SELECT count(*), sum(hashtextextended(ROW({identity})::text, 0)), sum(hashtextextended(t::text, 0)){changed}"
            f" FROM {identifier(self.schema)}.{identifier(self.name)} AS t"
        )

    def _changed_since(self, since: datetime) -> str:
        # The bound has the column's type, so that PostgreSQL uses an index. It is inclusive: rows of one timestamp may
        # have been committed one after the other. A row without a timestamp may have changed at any time.
        column = self.column(self.updated_at)
        time = since.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
        bound = f"'{time}+00'::timestamptz" if column.base == "timestamptz" else f"'{time}'::timestamp"
        return f"({column.quoted} >= {bound} OR {column.quoted} IS NULL)"


def identifier(name: str) -> str:
    """A quoted PostgreSQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def column_of(name: str, base: str, declared: str, precision: int, scale: int) -> Column:
    """A column with its type in the lake. Types without an equivalent are read as PostgreSQL's text."""
    quoted = identifier(name)
    kind, expression = _conversion(quoted, base, precision, scale)
    return Column(name.lower(), quoted, kind, expression, base, declared)


def _conversion(quoted: str, base: str, precision: int, scale: int) -> tuple[str, str]:
    if base in _PLAIN:
        return _PLAIN[base], quoted
    if base == "int2":
        return "int", f"{quoted}::int4"
    if base in ("date", "timestamptz"):
        return base.removesuffix("tz"), _within_calendar(quoted)
    if base == "timestamp":  # without a zone: taken as UTC
        return "timestamp", f"({_within_calendar(quoted)} AT TIME ZONE 'UTC')"
    if base == "numeric" and 0 <= scale <= precision <= 38:
        fitting = f"{quoted}::numeric({precision},{scale})"
        return f"decimal({precision},{scale})", f"CASE WHEN {quoted} <> 'NaN' THEN {fitting} END"
    return "string", f"{quoted}::text"


def _within_calendar(column: str) -> str:
    # Python and Iceberg have neither 'infinity' nor years outside of this range: such values become null.
    return f"CASE WHEN {column} >= '0001-01-01' AND {column} < '9999-12-31' THEN {column} END"


def arrow_rows(columns: Sequence[Column], rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Fetched rows with the types that their columns have in the lake."""
    import pyarrow as pa

    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    arrays = [pa.array(value, arrow_type(column.kind)) for value, column in zip(values, columns, strict=True)]
    return pa.table(arrays, names=[column.name for column in columns])
