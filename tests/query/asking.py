"""How tests ask a lake."""

from __future__ import annotations

from typing import Any

from lakehouse.core.engine import QueryRequest
from lakehouse.lake import Lake
from lakehouse.query.route import Choice
from lakehouse.query.sql import parse


def rows(lake: Lake, sql: str, **options: Any) -> list[tuple[Any, ...]]:
    """What DuckDB says."""
    return lake.sql(sql, engine="duckdb", **options).rows()


def choice(lake: Lake, sql: str, engine: str = "auto", as_of: str = "") -> Choice:
    """What would run it, without running it: Spark is not needed to know that it is."""
    return lake._components.queries._choose(parse(sql), lake._components.tables, QueryRequest(sql, as_of), engine)[0]
