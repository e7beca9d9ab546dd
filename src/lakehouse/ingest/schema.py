"""The table's schema beside the files': what has to change in the table, and what may."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lakehouse.core.tables import Column, TableInfo
from lakehouse.ingest import layout
from lakehouse.ingest.errors import ContractError
from lakehouse.ingest.files import PlannedColumn, RecordedColumn

_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
#: What Iceberg lets a column become in place.
_WIDER = {("int", "bigint"), ("float", "double")}
#: A metastore has no word for a time without a zone: of a table that stands there, it is kept as UTC's.
_WITHOUT_ZONE, _WITH_ZONE = "timestamp_ntz", "timestamp"


@dataclass(frozen=True)
class Evolution:
    """The changes that bring a table to the schema of the files."""

    added: tuple[PlannedColumn, ...] = ()
    widened: tuple[PlannedColumn, ...] = ()
    rewritten: tuple[PlannedColumn, ...] = ()
    """The column changes to a type that its old values have to be converted to: text, mostly."""
    unpartitioned: tuple[str, ...] = ()
    unsorted: tuple[str, ...] = ()
    """Parts of the table's layout that a column's new type does not allow."""

    def __bool__(self) -> bool:
        return bool(self.added or self.widened or self.rewritten)

    @property
    def types(self) -> dict[str, str]:
        """The new types of the columns that change theirs."""
        return {column.name: column.type for column in (*self.widened, *self.rewritten)}

    def words(self) -> tuple[str, ...]:
        return (
            *(f"column added: {column.name} {column.type}" for column in self.added),
            *(f"column changed: {c.name} {c.recorded} -> {c.type}" for c in (*self.widened, *self.rewritten)),
            *(f"no longer partitioned by {field}" for field in self.unpartitioned),
            *(f"no longer sorted by {field}" for field in self.unsorted),
        )


def evolution(planned: Sequence[PlannedColumn], table: Sequence[Column], contract: str) -> Evolution:
    """What has to change in the table for the planned columns to fit; refused if the contract is to freeze."""
    types = {column.name: column.type for column in table}
    added = tuple(column for column in planned if column.name not in types)
    differing = [c for c in planned if c.name in types and not _fits(c, types[c.name])]
    found = Evolution(
        added=added,
        widened=tuple(column for column in differing if _widens(types[column.name], column.type)),
        rewritten=tuple(column for column in differing if not _widens(types[column.name], column.type)),
    )
    if found and contract == "freeze":
        raise ContractError(
            f"The files do not keep to the table's schema: {'; '.join(found.words())}.",
            "Mend the files, or let the table follow them with --contract evolve.",
        )
    return found


def with_layout(found: Evolution, info: TableInfo) -> Evolution:
    """The same changes, with what they mean for the table's partitioning and sort order."""
    types = {column.name: column.type for column in found.rewritten}
    return replace(
        found, unpartitioned=layout.lost(info.partitioning, types), unsorted=layout.lost(info.sorting, types)
    )


def evolved(columns: Sequence[Column], changes: Evolution, last: Sequence[str] = ()) -> tuple[Column, ...]:
    """The columns of a table after the changes, those named `last` at the end."""
    kept = [replace(column, type=changes.types.get(column.name, column.type)) for column in columns]
    kept += [Column(column.name, column.type, comment=column.header) for column in changes.added]
    return (*(c for c in kept if c.name not in last), *(c for c in kept if c.name in last))


def as_kept(column: RecordedColumn, held: str) -> RecordedColumn:
    """A column as the files were read when it was written down, in the type that the table has."""
    if (column.type, held) == (_WITHOUT_ZONE, _WITH_ZONE):
        return column
    return replace(column, type=held)


def without_times_of_no_zone(columns: Sequence[PlannedColumn]) -> tuple[PlannedColumn, ...]:
    """Columns for a table that stands in a metastore."""
    return tuple(replace(each, type=_WITH_ZONE) if each.type == _WITHOUT_ZONE else each for each in columns)


def _fits(planned: PlannedColumn, held: str) -> bool:
    """Whether values of the planned type go into the column as they are."""
    if planned.recorded == planned.type == _WITHOUT_ZONE and held == _WITH_ZONE:
        return True  # so they were read from the start (as_kept)
    return planned.type == held or held == "string" or (planned.type, held) in {("bigint", "double")}


def _widens(old: str, new: str) -> bool:
    if (old, new) in _WIDER:
        return True
    before, after = _DECIMAL.fullmatch(old), _DECIMAL.fullmatch(new)
    return bool(before and after and before[2] == after[2] and int(before[1]) <= int(after[1]))
