"""What changed in a table between two moments: its schema, and its rows (by key where there is one)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakehouse.core.errors import BadNameError
from lakehouse.core.names import TableName
from lakehouse.core.ports import Column, Scan
from lakehouse.core.result import Result
from lakehouse.engines.duckdb import DuckDB
from lakehouse.serve.tables import Tables


@dataclass(frozen=True)
class Diff:
    """The difference between two snapshots of a table."""

    table: TableName
    start: str
    end: str
    key: tuple[str, ...]
    columns_added: tuple[Column, ...]
    columns_removed: tuple[Column, ...]
    columns_changed: tuple[tuple[Column, Column], ...]
    added: int
    removed: int
    changed: int
    rows: Result
    """`change` (added, removed, before, after), then the columns of both schemas."""

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        counts = f"{self.added} added, {self.removed} removed, {self.changed} changed"
        return f"<p>{self.table}: {counts}</p>{self.rows._repr_html_()}"


@dataclass(frozen=True)
class Wanted:
    """What to compare: a table at two WHENs (`end` empty means now), by the table's key or another one."""

    table: TableName
    start: str
    end: str = ""
    key: Sequence[str] = ()
    limit: int = 1000
    """How many rows to show; all are counted."""


def diff_table(tables: Tables, duckdb: DuckDB, wanted: Wanted) -> Diff:
    """Compare a table at two moments."""
    table = wanted.table
    table_format = tables.format_of(table)
    info = table_format.describe(table)
    current = info.current.id if info.current else ""
    first = tables.snapshot_at(table, wanted.start)
    last = tables.snapshot_at(table, wanted.end) or current
    old, new = table_format.scan(table, first), table_format.scan(table, last)
    by_key = tuple(wanted.key) or info.key
    _check_key(by_key, old, new)
    sql = _keyed_sql(old, new, by_key) if by_key else _unkeyed_sql(old, new)
    views: dict[TableName | str, Scan] = {"before": old, "after": new}
    counted = duckdb.run(f"SELECT change, count(*) FROM ({sql}) GROUP BY change", views, "diff")
    counts: dict[str, int] = dict(counted.rows())
    order = ", ".join(f'"{name}"' for name in by_key) or "ALL"
    rows = duckdb.run(f"SELECT * FROM ({sql}) ORDER BY {order}, change DESC", views, "diff", wanted.limit)
    names_then = {column.name: column for column in old.columns}
    names_now = {column.name: column for column in new.columns}
    return Diff(
        table=table,
        start=first,
        end=last,
        key=by_key,
        columns_added=tuple(column for column in new.columns if column.name not in names_then),
        columns_removed=tuple(column for column in old.columns if column.name not in names_now),
        columns_changed=tuple(
            (names_then[column.name], column)
            for column in new.columns
            if column.name in names_then and names_then[column.name].type != column.type
        ),
        added=counts.get("added", 0),
        removed=counts.get("removed", 0),
        changed=counts.get("after", 0),
        rows=rows,
    )


def _check_key(key: Sequence[str], old: Scan, new: Scan) -> None:
    for scan in (old, new):
        names = [column.name for column in scan.columns]
        if missing := [name for name in key if name not in names]:
            raise BadNameError(
                f"{', '.join(missing)} is not a column at both moments.", f"Columns there: {', '.join(names)}."
            )


def _both(old: Scan, new: Scan) -> tuple[str, str, list[str]]:
    """The rows of each side with the columns of both, and the names of those columns."""
    then, now = [column.name for column in old.columns], [column.name for column in new.columns]
    names = list(dict.fromkeys([*now, *then]))

    def picked(present: list[str]) -> str:
        return ", ".join(f'"{name}"' if name in present else f'NULL AS "{name}"' for name in names)

    return f"SELECT {picked(then)} FROM before", f"SELECT {picked(now)} FROM after", names


def _keyed_sql(old: Scan, new: Scan, key: Sequence[str]) -> str:
    before, after, names = _both(old, new)
    same_key = " AND ".join(f'b."{name}" IS NOT DISTINCT FROM a."{name}"' for name in key)
    differs = " OR ".join(f'b."{name}" IS DISTINCT FROM a."{name}"' for name in names if name not in key) or "false"
    return (
        f"WITH b AS ({before}), a AS ({after})"
        f" SELECT 'added' AS change, a.* FROM a ANTI JOIN b ON {same_key}"
        f" UNION ALL SELECT 'removed', b.* FROM b ANTI JOIN a ON {same_key}"
        f" UNION ALL SELECT 'before', b.* FROM b SEMI JOIN a ON {same_key} AND ({differs})"
        f" UNION ALL SELECT 'after', a.* FROM a SEMI JOIN b ON {same_key} AND ({differs})"
    )


def _unkeyed_sql(old: Scan, new: Scan) -> str:
    """Without a key a changed row is one removed and one added; duplicates count."""
    before, after, _ = _both(old, new)
    return (
        f"SELECT 'added' AS change, * FROM (({after}) EXCEPT ALL ({before}))"
        f" UNION ALL SELECT 'removed', * FROM (({before}) EXCEPT ALL ({after}))"
    )
