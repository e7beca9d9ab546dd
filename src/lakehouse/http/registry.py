"""Routes take path, method and rights from the table of operations, so that none is open by mistake; and their common parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import FastAPI, Path, Query

from lakehouse.http.errors import ERROR_RESPONSES
from lakehouse.operations import BY_NAME

F = TypeVar("F", bound=Callable[..., Any])


class Routes:
    """Declares the routes of one module."""

    def __init__(self, tag: str) -> None:
        self._tag = tag
        self._declared: list[tuple[Callable[..., Any], dict[str, Any]]] = []

    def operation(self, **options: Any) -> Callable[[F], F]:
        """Declare a function as the route of the operation that has its name."""

        def decorate(endpoint: F) -> F:
            self._declared.append((endpoint, options))
            return endpoint

        return decorate

    def add_to(self, api: FastAPI) -> None:
        """Add the declared routes to an application."""
        for endpoint, options in self._declared:
            method, path = BY_NAME[endpoint.__name__].route
            responses = {**ERROR_RESPONSES, **options.get("responses", {})}
            kept = {name: value for name, value in options.items() if name != "responses"}
            api.add_api_route(path, endpoint, methods=[method], responses=responses, tags=[self._tag], **kept)


Branch = Annotated[str, Query(description="Branch (default: main).", max_length=128)]
PageSize = Annotated[int, Query(description="Entries per page (default: 1000).", ge=0, le=10_000)]
PageToken = Annotated[str, Query(description="next_page_token of the page before.", max_length=200)]
Table = Annotated[str, Path(description="namespace.table", max_length=300)]
When = Annotated[
    str, Query(description="A snapshot id, a tag, an ISO time, or words such as yesterday.", max_length=200)
]
Limit = Annotated[int, Query(description="Maximum number of rows.", ge=0, le=1_000_000)]
