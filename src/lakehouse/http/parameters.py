"""Parameters that many routes have."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query

Branch = Annotated[str, Query(description="Branch (default: main).", max_length=128)]
PageSize = Annotated[int, Query(description="Entries per page (default: 1000).", ge=0, le=10_000)]
PageToken = Annotated[str, Query(description="next_page_token of the page before.", max_length=200)]
Table = Annotated[str, Path(description="namespace.table", max_length=300)]
When = Annotated[
    str, Query(description="A snapshot id, a tag, an ISO time, or words such as yesterday.", max_length=200)
]
Limit = Annotated[int, Query(description="Maximum number of rows.", ge=0, le=1_000_000)]
