"""Combine two changes of a table since a common state, where the keys of the changed rows prove that both hold.

The rows that a branch added, changed and removed are merged by key into the table as main has it. That is right if no key was changed
on both sides, or to the same row: then the order of the two changes does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import TableError
from lakehouse.core.format import TableFormat
from lakehouse.core.names import TableName
from lakehouse.core.quoting import name as _name
from lakehouse.core.quoting import text as _text
from lakehouse.core.requests import QueryRequest
from lakehouse.core.tables import Column, Scan, Snapshot, TableInfo
from lakehouse.engines.duckdb import DuckDB
from lakehouse.tables.fork import Fork
from lakehouse.tables.native import NativeWriter
from lakehouse.tables.spark import STAGED, StatementWriter
from lakehouse.tables.write import StagedRows, TableWriter, write_with

_DELETED = "_lake_deleted"
#: The number of keys that a conflict names.
_SHOWN_KEYS = 5
#: Notes of snapshots that list ingested files: an ingest on main skips files that came with a branch.
_FILE_NOTES = ("source", "sha256", "objects")
#: Notes of a run about what it built a table from; rows that are merged into another state do not follow from it.
_RUN_NOTES = {"inputs", "code", "codes", "fingerprint", "fingerprints", "cursor"}

#: Runs a statement on Spark, in which `STAGED` may be a view of files.
RunStatement = Callable[[QueryRequest], object]


@dataclass(frozen=True)
class Divergence:
    """The pointers of a table that two sides have changed: in their common state, on the branch, and where it is merged to."""

    table: TableName
    base: str
    ours: str
    theirs: str


@dataclass(frozen=True)
class _Side:
    """A table at one pointer."""

    info: TableInfo
    scan: Scan
    history: Sequence[Snapshot]


@dataclass(frozen=True)
class Replayer:
    """Compares and combines changes of Iceberg tables."""

    iceberg: TableFormat
    duckdb: DuckDB
    run: RunStatement
    folder: Path
    """For temporary files; Spark reads staged files below the folder of ingests alone."""

    def obstacle(self, divergence: Divergence) -> str:
        """Why the two changes cannot be combined; empty if their keys prove that they can."""
        try:
            base, ours, theirs = self._sides(divergence)
        except TableError as exc:  # a view, or a metadata file that is gone
            return exc.message
        return _obstacle_of_layout(base, ours, theirs) or self._obstacle_of_keys(base, ours, theirs)

    def replay(self, fork: Fork, divergence: Divergence, origin: str) -> None:
        """Merge the rows that `ours` changed into a table of a fork, whose pointer is `theirs`, as one snapshot.

        Args:
            origin: what the rows come from, for the history of the table.
        """
        base, ours, theirs = self._sides(divergence)
        table, key = divergence.table, ours.info.key
        with TemporaryDirectory(prefix="replay-", dir=self._ready_folder()) as work:
            folder = Path(work) / "rows"
            folder.mkdir()
            query = f"{_changes(base.info)} SELECT * FROM ours_changed o ANTI JOIN theirs_changed t ON {_same(key)}"
            target = _text(str(folder / "part.parquet"))
            copied = self.duckdb.execute(f"COPY ({query}) TO {target} (FORMAT parquet)", _views(base, ours, theirs))
            if not copied[0][0]:
                return
            rows = StagedRows(folder, [column.name for column in ours.info.columns], deleted=_DELETED)
            write_with(self._writers(fork, table), lambda writer: writer.merge(rows, theirs.info.columns, key))
        fork.annotate(table, {"merged": origin, **_file_notes(base, ours)})

    def _ready_folder(self) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder

    def _writers(self, fork: Fork, table: TableName) -> list[TableWriter]:
        def run(sql: str, folder: Path) -> None:
            self.run(QueryRequest(sql, arrow=False, branch=fork.branch, files={STAGED: str(folder)}))

        native = NativeWriter(self.duckdb, fork.branch, fork.on_branch.pyiceberg_properties(), table)
        return [native, StatementWriter(table, run)]

    def _sides(self, divergence: Divergence) -> tuple[_Side, _Side, _Side]:
        table = divergence.table

        def side(pointer: str) -> _Side:
            there = self.iceberg.at_pointers({table: pointer})
            return _Side(there.describe(table), there.scan(table), there.history(table))

        return side(divergence.base), side(divergence.ours), side(divergence.theirs)

    def _obstacle_of_keys(self, base: _Side, ours: _Side, theirs: _Side) -> str:
        key, views = base.info.key, _views(base, ours, theirs)
        listed = ", ".join(map(_name, key))
        without = " OR ".join(f"{_name(column)} IS NULL" for column in key)
        for view in views:
            unusable = f"SELECT 1 FROM {view} GROUP BY {listed} HAVING count(*) > 1 OR {without} LIMIT 1"
            if self.duckdb.query(unusable, views, "merge").rows():
                return f"its key {', '.join(key)} is null or there twice in some rows"
        both = (
            f"{_changes(base.info)} SELECT {', '.join(f'o.{_name(column)}' for column in key)} FROM ours_changed o"
            f" JOIN theirs_changed t ON {_same(key)}"
            f" WHERE NOT ((o.{_DELETED} AND t.{_DELETED}) OR (o.{_DELETED} = t.{_DELETED} AND {_equal(base.info.columns)}))"
        )
        rows = self.duckdb.query(f"SELECT *, count(*) OVER () FROM ({both}) ORDER BY ALL", views, "merge", _SHOWN_KEYS)
        shown = rows.rows()
        if not shown:
            return ""
        values = ["/".join(map(str, row[:-1])) for row in shown]
        more = ", …" if shown[0][-1] > len(shown) else ""
        return f"both changed {', '.join(key)} = {', '.join(values)}{more}"


def _obstacle_of_layout(base: _Side, ours: _Side, theirs: _Side) -> str:
    """Why the rows of three states cannot be compared by key, or more than rows was changed."""
    if not base.info.key:
        return "it has no key (lake.key), so rows cannot be told apart"
    kinds = [[(column.name, column.type) for column in side.info.columns] for side in (base, ours, theirs)]
    if kinds[0] != kinds[1] or kinds[0] != kinds[2] or base.info.key != theirs.info.key:
        return "its columns or its key have changed"
    if _layout(base.info) != _layout(ours.info):
        return "the branch changed its layout or properties"
    if any(_RUN_NOTES & set(snapshot.notes) for snapshot in _new_snapshots(base, ours)):
        return "a run built it from other tables"
    return ""


def _layout(info: TableInfo) -> tuple[object, ...]:
    return info.partitioning, info.sorting, info.key, dict(info.properties)


def _new_snapshots(base: _Side, ours: _Side) -> list[Snapshot]:
    known = {snapshot.id for snapshot in base.history}
    return [snapshot for snapshot in ours.history if snapshot.id not in known]


def _file_notes(base: _Side, ours: _Side) -> dict[str, str]:
    """The notes about files of the snapshots since the common state, joined."""
    snapshots = _new_snapshots(base, ours)
    joined = {
        name: dict.fromkeys(note for snapshot in snapshots if (note := snapshot.notes.get(name, "")))
        for name in _FILE_NOTES
    }
    return {name: ",".join(notes) for name, notes in joined.items() if notes}


def _views(base: _Side, ours: _Side, theirs: _Side) -> dict[TableName | str, Scan]:
    return {"base": base.scan, "ours": ours.scan, "theirs": theirs.scan}


def _changes(info: TableInfo) -> str:
    """SQL for the rows that each side added, changed or (marked as deleted) removed."""
    columns = ", ".join(_name(column.name) for column in info.columns)

    def changed(side: str) -> str:
        return (
            f"{side}_changed AS (SELECT {columns}, false AS {_DELETED} FROM {side} o"
            f" ANTI JOIN base t ON {_equal(info.columns)} UNION ALL"
            f" SELECT {columns}, true FROM base o ANTI JOIN {side} t ON {_same(info.key)})"
        )

    return f"WITH {changed('ours')}, {changed('theirs')}"


def _same(key: Sequence[str]) -> str:
    return " AND ".join(f"o.{_name(column)} IS NOT DISTINCT FROM t.{_name(column)}" for column in key)


def _equal(columns: Sequence[Column]) -> str:
    return _same([column.name for column in columns])
