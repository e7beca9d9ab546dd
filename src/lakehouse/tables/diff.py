"""Compare a table at two snapshots: its schema, and its rows (by key if there is one)."""

from __future__ import annotations

from collections.abc import Sequence

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import BadNameError, NotSupportedError
from lakehouse.core.names import TableName
from lakehouse.core.quoting import name as _name
from lakehouse.core.requests import DiffRequest
from lakehouse.core.result import Result
from lakehouse.core.tables import Column, Scan
from lakehouse.engines.duckdb import DuckDB
from lakehouse.engines.duckdb.types import with_sorted_maps
from lakehouse.tables.directory import Tables


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
    """`change` (added, removed, before, after), then the columns of both schemas; `_change` if one is called so."""

    def _repr_html_(self) -> str:
        """HTML for notebooks."""
        counts = f"{self.added} added, {self.removed} removed, {self.changed} changed"
        return f"<p>{self.table}: {counts}</p>{self.rows._repr_html_()}"


def diff_table(tables: Tables, duckdb: DuckDB, request: DiffRequest) -> Diff:
    """Compare a table at two WHENs."""
    table = request.table
    table_format = tables.format_of(table)
    info = table_format.describe(table)
    current = info.current.id if info.current else ""
    first = tables.snapshot_at(table, request.start)
    last = tables.snapshot_at(table, request.end) or current
    old, new = table_format.scan(table, first), table_format.scan(table, last)
    comparison = _Comparison(duckdb, old, new, _resolve_key(request.key or info.key, old, new))
    comparison.reject_duplicate_keys(table)
    counts = comparison.counts()
    then = {column.name.lower(): column for column in old.columns}
    now = {column.name.lower(): column for column in new.columns}
    return Diff(
        table=table,
        start=first,
        end=last,
        key=comparison.key,
        columns_added=tuple(column for name, column in now.items() if name not in then),
        columns_removed=tuple(column for name, column in then.items() if name not in now),
        columns_changed=tuple(
            (then[name], column) for name, column in now.items() if name in then and then[name].type != column.type
        ),
        added=counts.get("added", 0),
        removed=counts.get("removed", 0),
        changed=counts.get("after", 0),
        rows=comparison.rows(request.limit),
    )


def compare(duckdb: DuckDB, old: Scan, new: Scan, key: Sequence[str], limit: int) -> tuple[dict[str, int], Result]:
    """Count the differing rows of two scans by kind, and return some of them; by key if it is unique on both sides."""
    names = [{column.name.lower() for column in scan.columns} for scan in (old, new)]
    usable = key if all(name.lower() in side for name in key for side in names) else ()
    comparison = _Comparison(duckdb, old, new, _resolve_key(usable, old, new))
    if comparison.duplicate_keys():
        comparison = _Comparison(duckdb, old, new, ())
    return comparison.counts(), comparison.rows(limit)


def _resolve_key(key: Sequence[str], old: Scan, new: Scan) -> tuple[str, ...]:
    """The key's columns in the table's spelling, because column names are case-insensitive."""
    for scan in (old, new):
        names = {column.name.lower(): column.name for column in scan.columns}
        if missing := [name for name in key if name.lower() not in names]:
            raise BadNameError(
                f"{', '.join(missing)} is not a column at both snapshots.", f"Columns: {', '.join(names.values())}."
            )
    return tuple(names[name.lower()] for name in key)


class _Comparison:
    """SQL that finds the differences of two scans."""

    def __init__(self, duckdb: DuckDB, old: Scan, new: Scan, key: tuple[str, ...]) -> None:
        self._duckdb, self._old, self._new, self.key = duckdb, old, new, key
        self._views: dict[TableName | str, Scan] = {"before": old, "after": new}
        spelled = {column.name.lower(): column.name for column in (*old.columns, *new.columns)}
        now_first = dict.fromkeys(column.name.lower() for column in (*new.columns, *old.columns))
        self._names = [spelled[name] for name in now_first]
        then = {column.name.lower(): column.type for column in old.columns}
        self._as_text = {
            column.name.lower()
            for column in new.columns
            if (before := then.get(column.name.lower(), column.type)) != column.type
            and not (_is_number(before) and _is_number(column.type))
        }
        self._change = "change"
        while self._change in spelled:
            self._change = f"_{self._change}"

    def reject_duplicate_keys(self, table: TableName) -> None:
        """Rows that share a key cannot be matched, so all of them would seem changed."""
        number = self.duplicate_keys()
        if number:
            raise NotSupportedError(
                f"{', '.join(self.key)} is not a key of {table}: {number} of its values occur in more than one row.",
                f"Add columns to --key: {', '.join(self._names)}.",
            )

    def duplicate_keys(self) -> int:
        """How many key values occur in more than one row of a side."""
        if not self.key:
            return 0
        key = _list(self.key)
        double = " UNION ALL ".join(
            f"SELECT count(*) FROM (SELECT 1 FROM {side} GROUP BY {key} HAVING count(*) > 1)" for side in self._views
        )
        return int(max(row[0] for row in self._duckdb.query(double, self._views, "diff").rows()))

    def counts(self) -> dict[str, int]:
        sql = f"SELECT {_name(self._change)}, count(*) FROM ({self._sql()}) GROUP BY 1"
        return dict(self._duckdb.query(sql, self._views, "diff").rows())

    def rows(self, limit: int) -> Result:
        order = _list(self.key or self._names)
        sql = f"SELECT * FROM ({self._sql()}) ORDER BY {order}, {_name(self._change)} DESC"
        return self._duckdb.query(sql, self._views, "diff", limit)

    def _sql(self) -> str:
        return self._keyed() if self.key else self._unkeyed()

    def _keyed(self) -> str:
        same_key = " AND ".join(f"b.{_name(name)} IS NOT DISTINCT FROM a.{_name(name)}" for name in self.key)
        others = [_name(name) for name in self._names if name not in self.key]
        differs = " OR ".join(f"b.{name} IS DISTINCT FROM a.{name}" for name in others) or "false"
        return (
            f"WITH b AS ({self._side('before', self._old)}), a AS ({self._side('after', self._new)})"
            f" SELECT 'added' AS {_name(self._change)}, a.* FROM a ANTI JOIN b ON {same_key}"
            f" UNION ALL SELECT 'removed', b.* FROM b ANTI JOIN a ON {same_key}"
            f" UNION ALL SELECT 'before', b.* FROM b SEMI JOIN a ON {same_key} AND ({differs})"
            f" UNION ALL SELECT 'after', a.* FROM a SEMI JOIN b ON {same_key} AND ({differs})"
        )

    def _unkeyed(self) -> str:
        """Without a key a changed row is one removed and one added; duplicates count."""
        before, after = self._side("before", self._old), self._side("after", self._new)
        return (
            f"SELECT 'added' AS {_name(self._change)}, * FROM (({after}) EXCEPT ALL ({before}))"
            f" UNION ALL SELECT 'removed', * FROM (({before}) EXCEPT ALL ({after}))"
        )

    def _side(self, view: str, scan: Scan) -> str:
        """The rows of one side with the columns of both."""
        types = {column.name.lower(): column.type for column in scan.columns}

        def value(name: str) -> str:
            if name.lower() not in types:
                return "NULL"
            comparable = with_sorted_maps(_name(name), types[name.lower()])
            return f"CAST({comparable} AS VARCHAR)" if name.lower() in self._as_text else comparable

        return f"SELECT {', '.join(f'{value(name)} AS {_name(name)}' for name in self._names)} FROM {view}"


def _is_number(kind: str) -> bool:
    """Whether DuckDB compares the type with other numbers; every other pair of types is compared as text."""
    return kind.partition("(")[0] in {"tinyint", "smallint", "int", "bigint", "float", "double", "decimal"}


def _list(names: Sequence[str]) -> str:
    return ", ".join(map(_name, names))
