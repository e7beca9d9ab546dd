"""Explain a query: its plan, and the files and bytes that it reads."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from lakehouse.core.result import Explain
from lakehouse.core.tables import Scan

if TYPE_CHECKING:
    import duckdb


def explain_query(
    cursor: duckdb.DuckDBPyConnection,
    sql: str,
    scans: Iterable[Scan],
    reason: str,
    parameters: Mapping[str, Any] | None = None,
) -> Explain:
    """Run the query once under DuckDB's profiler, and count the files that its scans opened."""
    values = dict(parameters) if parameters else None
    cursor.execute("SET enable_external_file_cache = false")  # cached files would not count as read
    try:
        profile = json.loads(cursor.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + sql, values).fetchall()[0][1])
        plan = cursor.execute("EXPLAIN " + sql, values).fetchall()[0][1]
    finally:
        cursor.execute("SET enable_external_file_cache = true")  # of the whole database, not of this cursor
    scans = list(scans)
    return Explain(
        engine="duckdb",
        reason=reason,
        files_read=_files_read(profile),
        files_total=sum(scan.total_files or 0 for scan in scans),
        bytes_read=profile.get("total_bytes_read"),
        bytes_total=sum(scan.total_bytes or 0 for scan in scans),
        plan=plan,
    )


def _files_read(profile: Any) -> int:
    """The number of files that all scans of a profiled plan opened."""
    own = str((profile.get("extra_info") or {}).get("Total Files Read", "0"))
    number = int(own) if own.isdigit() else 0
    return number + sum(_files_read(child) for child in profile.get("children", []))
