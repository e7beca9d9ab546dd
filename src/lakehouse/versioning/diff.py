"""Diff a branch with main: changed tables, columns and rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import TableError
from lakehouse.core.format import TableFormat
from lakehouse.core.names import TableName
from lakehouse.core.refs import Change
from lakehouse.core.result import Result
from lakehouse.core.tables import Column, Scan
from lakehouse.engines.duckdb import DuckDB
from lakehouse.tables.diff import compare


@dataclass(frozen=True)
class TableChange:
    """The changes of a branch to one table."""

    table: str
    change: str
    """added, removed or changed."""
    rows_before: int | None
    rows_after: int | None
    columns_added: tuple[Column, ...] = ()
    columns_removed: tuple[Column, ...] = ()
    columns_changed: tuple[tuple[Column, Column], ...] = ()
    rows_added: int | None = None
    """Counted by reading both sides; None if not requested."""
    rows_removed: int | None = None
    rows_changed: int | None = None
    conflict: bool = False
    """main has changed the table too, so the branch cannot be merged."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        known = {
            key: value for key, value in asdict(self).items() if value is not None and not key.startswith("columns")
        }
        return {
            **known,
            "columns_added": [f"{column.name} {column.type}" for column in self.columns_added],
            "columns_removed": [f"{column.name} {column.type}" for column in self.columns_removed],
            "columns_changed": [f"{old.name} {old.type} -> {new.type}" for old, new in self.columns_changed],
        }


def describe_changes(iceberg: TableFormat, changes: Sequence[Change]) -> list[TableChange]:
    """The changes from metadata alone: columns and row counts."""
    return [_describe(iceberg, change) for change in changes]


def _describe(iceberg: TableFormat, change: Change) -> TableChange:
    try:
        old, new = _sides(iceberg, change)
    except TableError:  # a view, whose metadata has no rows, or a missing file
        return TableChange(str(change.table), change.what, None, None)
    before = {column.name: column for column in old.columns} if old else {}
    after = {column.name: column for column in new.columns} if new else {}
    both = change.what == "changed"
    return TableChange(
        table=str(change.table),
        change=change.what,
        rows_before=old.total_rows if old else 0,
        rows_after=new.total_rows if new else 0,
        columns_added=tuple(after[name] for name in after if name not in before) if both else (),
        columns_removed=tuple(before[name] for name in before if name not in after) if both else (),
        columns_changed=tuple(
            (before[name], after[name]) for name in after if name in before and before[name].type != after[name].type
        ),
    )


def count_rows(
    iceberg: TableFormat, duckdb: DuckDB, changes: Sequence[Change], conflicts: Sequence[TableName]
) -> list[TableChange]:
    """The changes with row counts, by key where a table has one."""
    counted = []
    for change, described in zip(changes, describe_changes(iceberg, changes), strict=True):
        added, removed, changed = _counts(iceberg, duckdb, change, described)
        counts = {"rows_added": added, "rows_removed": removed, "rows_changed": changed}
        counted.append(TableChange(**{**described.__dict__, **counts, "conflict": change.table in conflicts}))
    return counted


def _counts(
    iceberg: TableFormat, duckdb: DuckDB, change: Change, described: TableChange
) -> tuple[int | None, int | None, int | None]:
    if described.rows_after is None and described.rows_before is None:
        return None, None, None
    if change.what == "added":
        return described.rows_after, 0, 0
    if change.what == "removed":
        return 0, described.rows_before, 0
    counts, _ = changed_rows(iceberg, duckdb, change, 0)
    return counts.get("added", 0), counts.get("removed", 0), counts.get("after", 0)


def changed_rows(iceberg: TableFormat, duckdb: DuckDB, change: Change, limit: int) -> tuple[dict[str, int], Result]:
    """The number of changed rows of each kind, and some of the rows."""
    old, new = _sides(iceberg, change)
    scan = old or new
    assert scan is not None
    empty = Scan(scan.columns)
    if change.before == change.after:  # no file is read
        old = new = None
    key = _at(iceberg, change.table, change.after or change.before).describe(change.table).key
    return compare(duckdb, old or empty, new or empty, key, limit)


def _sides(iceberg: TableFormat, change: Change) -> tuple[Scan | None, Scan | None]:
    """The scans of a table before and after the change."""
    old = _at(iceberg, change.table, change.before).scan(change.table) if change.before else None
    new = _at(iceberg, change.table, change.after).scan(change.table) if change.after else None
    return old, new


def _at(iceberg: TableFormat, table: TableName, pointer: str | None) -> TableFormat:
    return iceberg.at_pointers({table: pointer})
