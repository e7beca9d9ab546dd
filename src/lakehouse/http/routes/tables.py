"""Tables: list, describe, history."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query

from lakehouse.http.answers import page, plain
from lakehouse.http.principal import READ
from lakehouse.http.registry import Routes
from lakehouse.http.service import CallContext

routes = Routes("tables")
Branch = Annotated[str, Query(description="Branch (default: main).", max_length=128)]
PageSize = Annotated[int, Query(description="Entries per page (default: 1000).", ge=0, le=10_000)]
PageToken = Annotated[str, Query(description="next_page_token of the page before.", max_length=200)]


@routes.get("/tables", READ)
def tables(
    call: CallContext, branch: Branch = "", page_size: PageSize = 0, page_token: PageToken = ""
) -> dict[str, Any]:
    """List the tables that the caller may see."""
    found = [info for info in call.lake(branch).tables() if call.principal.sees(info.name)]
    return page("tables", found, page_size, page_token)


@routes.get("/tables/{table}", READ)
def describe(call: CallContext, table: str, branch: Branch = "") -> Any:
    """Schema, partitioning, key and current snapshot of a table."""
    return plain(call.lake(branch).describe(call.table(table)))
