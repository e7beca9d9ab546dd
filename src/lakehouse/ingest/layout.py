"""Partitioning and sort order of a table whose columns change their type.

Iceberg lets no column go that its layout is made of: the layout is taken off first and put back afterwards, as far as
it makes sense for the new type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lakehouse.core.names import TableName
from lakehouse.core.tables import TableInfo

_FIELD = re.compile(r"(?:(?P<transform>\w+)\((?:(?P<width>\d+), )?(?P<inner>.+)\)|(?P<plain>\S+))(?P<order> .+)?")
_TIMES = {"timestamp", "timestamp_ntz"}
_DAYS = {"date", *_TIMES}
#: What each transform can be made of; the others, plain columns among them, of anything.
_TAKES: Mapping[str, set[str]] = {
    "truncate": {"int", "bigint", "decimal", "string", "binary"},
    "bucket": {"int", "bigint", "decimal", "string", "binary", *_DAYS},
    "hours": _TIMES,
    "days": _DAYS,
    "months": _DAYS,
    "years": _DAYS,
}


@dataclass(frozen=True)
class Field:
    """One part of a partitioning or a sort order: a column, perhaps transformed, perhaps with a direction."""

    column: str
    transform: str = ""
    width: str = ""
    order: str = ""

    @classmethod
    def read(cls, told: str) -> Field:
        """From the words that `lake describe` has for it."""
        found = _FIELD.fullmatch(told)
        assert found is not None
        column = found["plain"] or found["inner"]
        return cls(column, found["transform"] or "", found["width"] or "", found["order"] or "")

    def __str__(self) -> str:
        inner = ", ".join(filter(None, (self.width, f"`{self.column}`")))
        return (f"{self.transform}({inner})" if self.transform else inner) + self.order

    def takes(self, kind: str) -> bool:
        """Whether the column may be of such a type."""
        return self.transform not in _TAKES or kind.partition("(")[0] in _TAKES[self.transform]


def lost(told: Sequence[str], types: Mapping[str, str]) -> tuple[str, ...]:
    """What of a partitioning or a sort order makes no sense once columns have these types."""
    return tuple(each for each in told if not _stays(Field.read(each), types))


def taken_off(table: TableName, info: TableInfo, types: Mapping[str, str]) -> Iterator[str]:
    """Statements that free the columns which get these types."""
    for field in _touched(info.partitioning, types):
        yield f"ALTER TABLE {table} DROP PARTITION FIELD {field}"
    if _touched(info.sorting, types):
        yield f"ALTER TABLE {table} WRITE UNORDERED"


def put_back(table: TableName, info: TableInfo, types: Mapping[str, str]) -> Iterator[str]:
    """Statements that bring back what was taken off, where the columns' new types allow it."""
    for field in _touched(info.partitioning, types):
        if _stays(field, types):
            yield f"ALTER TABLE {table} ADD PARTITION FIELD {field}"
    stays = [str(field) for field in map(Field.read, info.sorting) if _stays(field, types)]
    if _touched(info.sorting, types) and stays:
        how = {"range": "", "hash": "DISTRIBUTED BY PARTITION "}
        distributed = how.get(info.properties.get("write.distribution-mode", ""), "LOCALLY ")
        yield f"ALTER TABLE {table} WRITE {distributed}ORDERED BY {', '.join(stays)}"


def _touched(told: Sequence[str], types: Mapping[str, str]) -> list[Field]:
    return [field for field in map(Field.read, told) if field.column in types]


def _stays(field: Field, types: Mapping[str, str]) -> bool:
    return field.column not in types or field.takes(types[field.column])
