"""SQL: one statement, answered in the request."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from lakehouse.core.requests import QueryRequest
from lakehouse.http.answers import plain
from lakehouse.http.principal import READ
from lakehouse.http.registry import Routes
from lakehouse.http.service import CallContext

routes = Routes("query")


class QueryBody(BaseModel):
    """The body of POST /query."""

    sql: str = Field(description="One statement of Spark SQL.", max_length=1_000_000)
    engine: str = Field("", description="auto, duckdb, spark, trino (default: the setting query.engine).")
    as_of: str = Field("", description="Read every table as of this WHEN: a snapshot id, tag, time or words.")
    branch: str = Field("", description="Branch of all tables (default: main).")
    limit: int | None = Field(None, ge=0, description="Maximum number of rows (default: serve.max_rows).")
    explain: bool = Field(False, description="Also say which engine ran it, why, and how much it read.")

    model_config = {"extra": "forbid", "json_schema_extra": {"example": {"sql": "select 1 as one"}}}


@routes.post("/query", READ)
def query(call: CallContext, body: QueryBody) -> dict[str, Any]:
    """Run one statement and return its rows."""
    request = QueryRequest(body.sql, body.as_of, body.limit, body.explain, branch=body.branch.lower())
    result = call.lake(body.branch).query(request, body.engine or None)
    names = result.names
    rows = [plain(dict(zip(names, row, strict=True))) for row in result.rows()]
    return {
        "columns": [{"name": column.name, "type": column.type} for column in result.columns],
        "rows": rows,
        "row_count": len(rows),
        "truncated": False,
        "engine": result.engine,
        **({"explain": plain(result.explain)} if body.explain else {}),
    }
