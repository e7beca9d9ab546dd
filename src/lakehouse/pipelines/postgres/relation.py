"""A table of PostgreSQL: its columns as the lake will have them, and the queries that read them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

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
    """A column of a source's table, as the lake will have it."""

    name: str
    """Its name in the lake, where all are in lower case."""
    itself: str
    """Its name in PostgreSQL, quoted."""
    kind: str
    """Its type in the lake: int, bigint, decimal(10,2), timestamp, string, …"""
    expression: str
    """How PostgreSQL makes such a value of it."""
    base: str
    """PostgreSQL's own type below it: timestamptz, int8, …"""
    declared: str
    """Its type as PostgreSQL's users know it."""

    @property
    def is_whole_number(self) -> bool:
        return self.kind in ("int", "bigint")


@dataclass(frozen=True)
class Relation:
    """A table of the source with its columns and the column that says when a row was changed."""

    schema: str
    name: str
    columns: Sequence[Column]
    changed: str = ""
    """Nothing: there is no such column, so all rows are read each time."""

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"

    def column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    @property
    def fingerprint(self) -> str:
        """Changes when the columns do."""
        return hashlib.sha256(repr([(each.name, each.kind) for each in self.columns]).encode()).hexdigest()[:16]

    def query(self, names: Sequence[str] = (), since: datetime | None = None) -> str:
        """A SELECT of some columns, or of all, and of all rows or those changed since a moment."""
        wanted = [self.column(name) for name in names] if names else self.columns
        listed = ", ".join(f"{column.expression} AS {identifier(column.name)}" for column in wanted)
        where = f" WHERE {self._changed_since(since)}" if since and self.changed else ""
        return f"SELECT {listed} FROM {identifier(self.schema)}.{identifier(self.name)}{where}"

    def _changed_since(self, since: datetime) -> str:
        # The bound has the column's own type, so that an index on it is used. The bound itself is included: two rows
        # of one moment may not have been there at the same time. A row without a moment could have changed any time.
        column = self.column(self.changed).itself
        zoned = self.column(self.changed).base == "timestamptz"
        moment = since.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
        bound = f"'{moment}+00'::timestamptz" if zoned else f"'{moment}'::timestamp"
        return f"({column} >= {bound} OR {column} IS NULL)"


def identifier(name: str) -> str:
    """A name in PostgreSQL's SQL."""
    return '"' + name.replace('"', '""') + '"'


def column_of(name: str, base: str, declared: str, precision: int, scale: int) -> Column:
    """How a column is read. What the lake has no type for comes as PostgreSQL writes it."""
    itself = identifier(name)
    kind, expression = _reading(itself, base, precision, scale)
    return Column(name.lower(), itself, kind, expression, base, declared)


def _reading(itself: str, base: str, precision: int, scale: int) -> tuple[str, str]:
    if base in _PLAIN:
        return _PLAIN[base], itself
    if base == "int2":
        return "int", f"{itself}::int4"
    if base in ("date", "timestamptz"):
        return base.removesuffix("tz"), _within_calendar(itself)
    if base == "timestamp":  # a clock on some wall: UTC's, since the database does not say
        return "timestamp", f"({_within_calendar(itself)} AT TIME ZONE 'UTC')"
    if base == "numeric" and 0 <= scale <= precision <= 38:
        fitting = f"{itself}::numeric({precision},{scale})"
        return f"decimal({precision},{scale})", f"CASE WHEN {itself} <> 'NaN' THEN {fitting} END"
    return "string", f"{itself}::text"


def _within_calendar(column: str) -> str:
    # 'infinity', and years that Python and Iceberg's readers do not know, are no moment there.
    return f"CASE WHEN {column} >= '0001-01-01' AND {column} < '9999-12-31' THEN {column} END"
