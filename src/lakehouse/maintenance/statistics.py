"""Keeps statistics of distinct values (NDV, in Puffin files), by which Trino orders joins. Spark computes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lakehouse.core.catalog import Catalog
from lakehouse.core.dataclass import dataclass
from lakehouse.core.files import Files
from lakehouse.core.metadata_file import load_metadata
from lakehouse.core.names import TableName
from lakehouse.core.quoting import spark_text
from lakehouse.maintenance.report import Action
from lakehouse.tables.fork import Committer, forked

#: The statistics are computed again when the number of rows has changed by this share; planners use older ones until then.
_CHANGED_BY = 0.1
_COMMITS = 10
STEP = "statistics"


@dataclass(frozen=True)
class StatisticsWriter:
    """Computes the statistics of tables.

    Args:
        run_spark: runs a statement on a branch with Spark.
    """

    catalog: Catalog
    files: Files
    committer: Committer
    run_spark: Callable[[str, str], object]

    def write(self, table: TableName, dry_run: bool) -> list[Action]:
        """Compute the statistics of a table if it has none, or if they are of another number of rows."""
        pointer = self.catalog.pointer(table)
        detail = outdated(load_metadata(pointer, self.files)) if pointer else ""
        if not pointer or not detail:
            return []
        if dry_run:
            return [Action(str(table), STEP, "planned", detail, "spark")]
        computed = self._compute(table, pointer)
        for _ in range(_COMMITS):
            pointer = self.catalog.pointer(table)
            if not computed or pointer is None:
                break
            raw = load_metadata(pointer, self.files)
            if computed["snapshot-id"] not in {snapshot["snapshot-id"] for snapshot in raw["snapshots"]}:
                break
            others = [entry for entry in raw.get("statistics", []) if entry["snapshot-id"] != computed["snapshot-id"]]
            new = {**raw, "statistics": [*others, computed]}
            if self.committer.commit(table, pointer, new, f"compute the statistics of {table}"):
                return [Action(str(table), STEP, "done", detail, "spark")]
        return [Action(str(table), STEP, "skipped", "other writers changed the table meanwhile", "spark")]

    def _compute(self, table: TableName, pointer: str) -> Mapping[str, Any] | None:
        """Let Spark compute them on a branch; None if the table has changed before it began."""
        with forked(self.catalog, "maintain", [table], self.files) as fork:
            if fork.base[table] != pointer:
                return None
            catalog = fork.on_branch
            self.run_spark(
                f"CALL {catalog.name}.system.compute_table_stats(table => {spark_text(str(table))})", fork.branch
            )
            raw = load_metadata(catalog.pointer(table) or pointer, self.files)
            current = raw["current-snapshot-id"]
            return next((entry for entry in raw.get("statistics", []) if entry["snapshot-id"] == current), None)


def outdated(raw: Mapping[str, Any]) -> str:
    """Return why a table needs statistics; empty if it does not."""
    rows = {snapshot["snapshot-id"]: _rows(snapshot) for snapshot in raw.get("snapshots", [])}
    now = rows.get(raw.get("current-snapshot-id", -1), 0)
    if not now:
        return ""
    known = [rows[entry["snapshot-id"]] for entry in raw.get("statistics", []) if entry["snapshot-id"] in rows]
    if not known:
        return "the table had no statistics"
    if abs(now - known[-1]) <= _CHANGED_BY * now:
        return ""
    return f"the statistics were of {known[-1]:,} rows, the table has {now:,}"


def _rows(snapshot: Mapping[str, Any]) -> int:
    return int(snapshot.get("summary", {}).get("total-records", 0))
