"""Partitioning and sort order of a table: validation, and changes when a column changes its type.

Iceberg cannot drop a column that the layout uses, so the layout is dropped first and restored afterwards where the new
type allows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import BadSettingError, NoSuchColumnError, NotSupportedError, UnknownChoiceError
from lakehouse.core.names import TableName
from lakehouse.core.tables import TableInfo

_FIELD = re.compile(r"(?:(?P<transform>\w+)\((?:(?P<width>\d+), )?(?P<inner>.+)\)|(?P<plain>\S+))(?P<order> .+)?")
_TIMES = {"timestamp", "timestamp_ntz"}
_DAYS = {"date", *_TIMES}
#: Column types that each transform accepts; a transform that is not listed, identity among them, accepts all.
_ACCEPTED_TYPES: Mapping[str, set[str]] = {
    "truncate": {"int", "bigint", "decimal", "string", "binary"},
    "bucket": {"int", "bigint", "decimal", "string", "binary", *_DAYS},
    "hours": _TIMES,
    "days": _DAYS,
    "months": _DAYS,
    "years": _DAYS,
}

#: Partition transforms of Iceberg in Spark SQL.
_TRANSFORMS = (
    *("bucket", "truncate", "identity"),
    *("year", "years", "month", "months", "day", "days", "date", "hour", "hours", "date_hour"),
)
_REQUESTED_FIELD = re.compile(
    r"(?:(?P<transform>\w+)\s*\(\s*(?:\d+\s*,\s*)?)?(?P<column>\w+|`[^`]+`)(?:\s*,\s*\d+)?(?(transform)\s*\))"
    r"(?:\s+(?:ASC|DESC))?(?:\s+NULLS\s+(?:FIRST|LAST))?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class LayoutField:
    """One field of a partitioning or sort order: a column with an optional transform and direction."""

    column: str
    transform: str = ""
    width: str = ""
    order: str = ""

    @classmethod
    def parse(cls, text: str) -> LayoutField:
        """Parse a field as `lake describe` prints it."""
        match = _FIELD.fullmatch(text)
        assert match is not None
        column = match["plain"] or match["inner"]
        return cls(column, match["transform"] or "", match["width"] or "", match["order"] or "")

    def __str__(self) -> str:
        inner = ", ".join(filter(None, (self.width, f"`{self.column}`")))
        return (f"{self.transform}({inner})" if self.transform else inner) + self.order

    def accepts(self, kind: str) -> bool:
        """Whether the column may have this type."""
        return self.transform not in _ACCEPTED_TYPES or kind.partition("(")[0] in _ACCEPTED_TYPES[self.transform]


def check_layout(option: str, layout: str, columns: Sequence[str]) -> None:
    """Reject a partitioning or sort order of a new table that names an unknown column or transform."""
    for field in filter(None, map(str.strip, re.split(r",(?![^(]*\))", layout))):
        match = _REQUESTED_FIELD.fullmatch(field)
        if match is None:
            raise BadSettingError(
                f"Invalid field in {option}: {field!r}.",
                'Write columns and transforms as in "days(ts), bucket(16, id)".',
            )
        transform, column = match["transform"], match["column"].strip("`")
        if transform and transform.lower() not in _TRANSFORMS:
            raise UnknownChoiceError(f"a transform in {option}", transform, _TRANSFORMS)
        if column.lower() not in columns:
            raise NoSuchColumnError(
                f"There is no column {column}, which {option} names.", f"Columns: {', '.join(columns)}."
            )
        if option == "--partition-by" and not column.isascii():
            # The name of a partition field is part of Avro files, whose reader in DuckDB ends the process at such a name.
            raise NotSupportedError(
                f"A table cannot be partitioned by {column}: not every engine reads partitions whose name has such letters.",
                "Rename the column in the file to ASCII letters, or partition by another one.",
            )


def quoted_layout(layout: str) -> str:
    """A requested partitioning or sort order with quoted columns: a name may have letters that Spark's parser lacks."""
    fields = filter(None, map(str.strip, re.split(r",(?![^(]*\))", layout)))
    return ", ".join(map(_quoted_field, fields))


def _quoted_field(field: str) -> str:
    match = _REQUESTED_FIELD.fullmatch(field)
    assert match is not None  # see check_layout
    start, end = match.span("column")
    return f"{field[:start]}`{match['column'].strip('`')}`{field[end:]}"


def incompatible_fields(fields: Sequence[str], types: Mapping[str, str]) -> tuple[str, ...]:
    """The fields of a partitioning or sort order that the new types of columns do not allow."""
    return tuple(field for field in fields if not _is_compatible(LayoutField.parse(field), types))


def drop_statements(table: TableName, info: TableInfo, types: Mapping[str, str]) -> Iterator[str]:
    """Statements that drop the fields of the columns which get new types."""
    for field in _affected(info.partitioning, types):
        yield f"ALTER TABLE {table.spark} DROP PARTITION FIELD {field}"
    if _affected(info.sorting, types):
        yield f"ALTER TABLE {table.spark} WRITE UNORDERED"


def restore_statements(table: TableName, info: TableInfo, types: Mapping[str, str]) -> Iterator[str]:
    """Statements that restore the dropped fields which the new types allow."""
    for field in _affected(info.partitioning, types):
        if _is_compatible(field, types):
            yield f"ALTER TABLE {table.spark} ADD PARTITION FIELD {field}"
    remaining = [str(field) for field in map(LayoutField.parse, info.sorting) if _is_compatible(field, types)]
    if _affected(info.sorting, types) and remaining:
        clauses = {"range": "", "hash": "DISTRIBUTED BY PARTITION "}
        distributed = clauses.get(info.properties.get("write.distribution-mode", ""), "LOCALLY ")
        yield f"ALTER TABLE {table.spark} WRITE {distributed}ORDERED BY {', '.join(remaining)}"


def _affected(fields: Sequence[str], types: Mapping[str, str]) -> list[LayoutField]:
    return [field for field in map(LayoutField.parse, fields) if field.column in types]


def _is_compatible(field: LayoutField, types: Mapping[str, str]) -> bool:
    return field.column not in types or field.accepts(types[field.column])
