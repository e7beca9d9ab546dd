"""Run statements on a lake, or ask which engine would."""

from __future__ import annotations

from typing import Any

from lakehouse.core.requests import QueryRequest
from lakehouse.lake import Lake


def rows(lake: Lake, sql: str, **options: Any) -> list[tuple[Any, ...]]:
    """What DuckDB says."""
    return lake.sql(sql, engine="duckdb", **options).rows()


def choice(lake: Lake, sql: str, as_of: str = "") -> tuple[str, str]:
    """The engine that `auto` chooses, and the reason, without running the statement."""
    components = lake._components
    return components.queries.choose(lake.check(QueryRequest(sql, as_of), "auto"), components.tables)[:2]
