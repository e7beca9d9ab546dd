"""Compare the schema of files with that of the table, and plan the changes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import ContractError
from lakehouse.core.tables import Column, TableInfo
from lakehouse.ingest import layout
from lakehouse.ingest.files import PlannedColumn, RecordedColumn, fields_of, is_nested

_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
#: Type promotions that Iceberg does without rewriting rows.
_PROMOTIONS = {("int", "bigint"), ("float", "double")}
#: The Hive Metastore has no timestamp without time zone; tables there store such values as UTC.
_WITHOUT_ZONE, _WITH_ZONE = "timestamp_ntz", "timestamp"


@dataclass(frozen=True)
class SchemaChanges:
    """The changes that a table needs to take the columns of the files."""

    added: tuple[PlannedColumn, ...] = ()
    widened: tuple[PlannedColumn, ...] = ()
    rewritten: tuple[PlannedColumn, ...] = ()
    """Columns whose old values must be converted to the new type, in most cases string."""
    unpartitioned: tuple[str, ...] = ()
    unsorted: tuple[str, ...] = ()
    """Partition and sort fields that the new type of their column does not allow."""

    def __bool__(self) -> bool:
        return bool(self.added or self.widened or self.rewritten)

    @property
    def types(self) -> dict[str, str]:
        """New types by column name."""
        return {column.name: column.type for column in (*self.widened, *self.rewritten)}

    def describe(self) -> tuple[str, ...]:
        """One line per change, for the report."""
        return (
            *(f"column added: {column.name} {column.type}" for column in self.added),
            *(f"column changed: {c.name} {c.recorded} -> {c.type}" for c in (*self.widened, *self.rewritten)),
            *(f"no longer partitioned by {field}" for field in self.unpartitioned),
            *(f"no longer sorted by {field}" for field in self.unsorted),
        )


def plan_schema_changes(planned: Sequence[PlannedColumn], table: Sequence[Column], contract: str) -> SchemaChanges:
    """The changes that the planned columns need; ContractError if there are any and the contract is `freeze`."""
    types = {column.name: column.type for column in table}
    added = tuple(column for column in planned if column.name not in types)
    changed = [c for c in planned if c.name in types and not _fits(c, types[c.name])]
    changes = SchemaChanges(
        added=added,
        widened=tuple(column for column in changed if _can_promote(types[column.name], column.type)),
        rewritten=tuple(column for column in changed if not _can_promote(types[column.name], column.type)),
    )
    if changes and contract == "freeze":
        raise ContractError(
            f"The files do not match the schema of the table: {'; '.join(changes.describe())}.",
            "Correct the files, or change the table with --contract evolve.",
        )
    return changes


def with_layout_changes(changes: SchemaChanges, info: TableInfo) -> SchemaChanges:
    """Add the partition and sort fields that the table loses by the changes."""
    types = {column.name: column.type for column in changes.rewritten}
    return replace(
        changes,
        unpartitioned=layout.incompatible_fields(info.partitioning, types),
        unsorted=layout.incompatible_fields(info.sorting, types),
    )


def columns_after(columns: Sequence[Column], changes: SchemaChanges, last: Sequence[str] = ()) -> tuple[Column, ...]:
    """The columns of a table after the changes, with those named in `last` at the end."""
    result = [replace(column, type=changes.types.get(column.name, column.type)) for column in columns]
    result += [Column(column.name, column.type, comment=column.header) for column in changes.added]
    return (*(c for c in result if c.name not in last), *(c for c in result if c.name in last))


def merge_recorded(column: RecordedColumn, table_type: str) -> RecordedColumn:
    """A recorded column with the type of the table, unless the table stores that type as another one."""
    if (column.type, table_type) == (_WITHOUT_ZONE, _WITH_ZONE):
        return column
    return replace(column, type=table_type)


def with_utc_timestamps(columns: Sequence[PlannedColumn]) -> tuple[PlannedColumn, ...]:
    """Columns as a table in a Hive Metastore stores them: every timestamp in UTC."""
    return tuple(replace(column, type=_WITH_ZONE) if column.type == _WITHOUT_ZONE else column for column in columns)


def _fits(planned: PlannedColumn, table_type: str) -> bool:
    """Whether the column takes values of the planned type without a schema change."""
    if planned.recorded == planned.type == _WITHOUT_ZONE and table_type == _WITH_ZONE:
        return True  # see merge_recorded
    return planned.type == table_type or table_type == "string" or (planned.type, table_type) == ("bigint", "double")


def nested_changes(old: str, new: str, path: tuple[str, ...]) -> list[tuple[tuple[str, ...], str, bool]] | None:
    """What makes the old type of a column the new one without rewriting rows; None if that is not possible.

    Each change is the path of a field, its type, and whether the field is new.
    """
    if old == new:
        return []
    if not is_nested(old):
        return [(path, new, False)] if _can_promote(old, new) else None
    if old.partition("<")[0] != new.partition("<")[0]:
        return None
    changes, before = [], fields_of(old)
    for name, kind in fields_of(new).items():
        inner = (
            [((*path, name), kind, True)] if name not in before else nested_changes(before[name], kind, (*path, name))
        )
        if inner is None:
            return None
        changes += inner
    return changes


def _can_promote(old: str, new: str) -> bool:
    if is_nested(old):
        return nested_changes(old, new, ()) is not None
    if (old, new) in _PROMOTIONS:
        return True
    before, after = _DECIMAL.fullmatch(old), _DECIMAL.fullmatch(new)
    return bool(before and after and before[2] == after[2] and int(before[1]) <= int(after[1]))
