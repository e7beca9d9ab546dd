"""What a branch changes: tables, their schemas and rows, before it is published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lakehouse.core.errors import TableError
from lakehouse.core.format import TableFormat
from lakehouse.core.names import TableName
from lakehouse.core.refs import Change
from lakehouse.core.result import Result
from lakehouse.core.tables import Column, Scan
from lakehouse.engines.duckdb import DuckDB
from lakehouse.query.diff import compare


@dataclass(frozen=True)
class TableChange:
    """What a branch does to one table."""

    table: str
    change: str
    """added, removed or changed."""
    rows_before: int | None
    rows_after: int | None
    columns_added: tuple[Column, ...] = ()
    columns_removed: tuple[Column, ...] = ()
    columns_changed: tuple[tuple[Column, Column], ...] = ()
    rows_added: int | None = None
    """Counted by reading both sides; None where nobody asked for that."""
    rows_removed: int | None = None
    rows_changed: int | None = None
    conflict: bool = False
    """main has changed the table too, so it cannot be published as it is."""

    def as_dict(self) -> dict[str, Any]:
        """In plain words, for JSON."""
        told = {
            key: value for key, value in asdict(self).items() if value is not None and not key.startswith("columns")
        }
        return {
            **told,
            "columns_added": [f"{column.name} {column.type}" for column in self.columns_added],
            "columns_removed": [f"{column.name} {column.type}" for column in self.columns_removed],
            "columns_changed": [f"{old.name} {old.type} -> {new.type}" for old, new in self.columns_changed],
        }


def tell_changes(iceberg: TableFormat, changes: Sequence[Change]) -> list[TableChange]:
    """The changes from metadata alone: schemas, and how many rows there were and are."""
    return [_told(iceberg, change) for change in changes]


def _told(iceberg: TableFormat, change: Change) -> TableChange:
    try:
        old, new = _sides(iceberg, change)
    except TableError:  # a view, whose metadata has no rows, or a file that is gone
        return TableChange(str(change.table), change.what, None, None)
    then = {column.name: column for column in old.columns} if old else {}
    now = {column.name: column for column in new.columns} if new else {}
    both = change.what == "changed"
    return TableChange(
        table=str(change.table),
        change=change.what,
        rows_before=old.total_rows if old else 0,
        rows_after=new.total_rows if new else 0,
        columns_added=tuple(now[name] for name in now if name not in then) if both else (),
        columns_removed=tuple(then[name] for name in then if name not in now) if both else (),
        columns_changed=tuple(
            (then[name], now[name]) for name in now if name in then and then[name].type != now[name].type
        ),
    )


def count_rows(
    iceberg: TableFormat, duckdb: DuckDB, changes: Sequence[Change], conflicts: Sequence[TableName]
) -> list[TableChange]:
    """The changes with their rows counted, by key where a table has one."""
    found = []
    for change, told in zip(changes, tell_changes(iceberg, changes), strict=True):
        added, removed, changed = _counts(iceberg, duckdb, change, told)
        facts = {"rows_added": added, "rows_removed": removed, "rows_changed": changed}
        found.append(TableChange(**{**told.__dict__, **facts, "conflict": change.table in conflicts}))
    return found


def _counts(
    iceberg: TableFormat, duckdb: DuckDB, change: Change, told: TableChange
) -> tuple[int | None, int | None, int | None]:
    if told.rows_after is None and told.rows_before is None:
        return None, None, None
    if change.what == "added":
        return told.rows_after, 0, 0
    if change.what == "removed":
        return 0, told.rows_before, 0
    counts, _ = changed_rows(iceberg, duckdb, change, 0)
    return counts.get("added", 0), counts.get("removed", 0), counts.get("after", 0)


def changed_rows(iceberg: TableFormat, duckdb: DuckDB, change: Change, limit: int) -> tuple[dict[str, int], Result]:
    """The rows that a branch changes in a table: how many of each kind, and some of them."""
    old, new = _sides(iceberg, change)
    here = old or new
    assert here is not None
    nothing = Scan(here.columns)
    side = change.after or change.before
    key = _at(iceberg, change.table, side).describe(change.table).key
    return compare(duckdb, old or nothing, new or nothing, key, limit)


def _sides(iceberg: TableFormat, change: Change) -> tuple[Scan | None, Scan | None]:
    """How to read a table before and after."""
    old = _at(iceberg, change.table, change.before).scan(change.table) if change.before else None
    new = _at(iceberg, change.table, change.after).scan(change.table) if change.after else None
    return old, new


def _at(iceberg: TableFormat, table: TableName, pointer: str | None) -> TableFormat:
    return iceberg.at_pointers({table: pointer})
