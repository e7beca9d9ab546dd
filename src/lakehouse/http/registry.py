"""The one list of routes: each with what it needs of its caller, so that no route is open by mistake."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import FastAPI, Path, Query

from lakehouse.http.errors import ERROR_RESPONSES

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Rule:
    """What a route needs."""

    method: str
    path: str
    needs: str
    """public, read, write or admin."""
    once: bool = False
    """It changes something, so it takes an Idempotency-Key."""
    repeatable: bool = False
    """Doing it twice leaves what doing it once left: after a crash it may be done again."""
    uploads: bool = False
    """Its body is a file, not JSON."""


#: Every route by method and path template.
RULES: dict[tuple[str, str], Rule] = {}


class Routes:
    """Declares the routes of one module."""

    def __init__(self, tag: str) -> None:
        self._tag = tag
        self._declared: list[tuple[Rule, Callable[..., Any], dict[str, Any]]] = []

    def get(self, path: str, needs: str, **options: Any) -> Callable[[F], F]:
        """Declare a route that reads."""
        return self._add(Rule("GET", path, needs), options)

    def post(  # noqa: PLR0913 - one keyword per field of Rule
        self,
        path: str,
        needs: str,
        *,
        once: bool = True,
        repeatable: bool = False,
        uploads: bool = False,
        **options: Any,
    ) -> Callable[[F], F]:
        """Declare a route that changes something, or whose request needs a body."""
        return self._add(Rule("POST", path, needs, once, repeatable, uploads), options)

    def delete(self, path: str, needs: str, **options: Any) -> Callable[[F], F]:
        """Declare a route that removes something."""
        return self._add(Rule("DELETE", path, needs, once=True, repeatable=True), options)

    def _add(self, rule: Rule, options: dict[str, Any]) -> Callable[[F], F]:
        def decorate(endpoint: F) -> F:
            RULES[rule.method, rule.path] = rule
            self._declared.append((rule, endpoint, options))
            return endpoint

        return decorate

    def add_to(self, api: FastAPI) -> None:
        """Add the declared routes to an application."""
        for rule, endpoint, options in self._declared:
            responses = {**ERROR_RESPONSES, **options.get("responses", {})}
            kept = {name: value for name, value in options.items() if name != "responses"}
            api.add_api_route(rule.path, endpoint, methods=[rule.method], responses=responses, tags=[self._tag], **kept)


Branch = Annotated[str, Query(description="Branch (default: main).", max_length=128)]
PageSize = Annotated[int, Query(description="Entries per page (default: 1000).", ge=0, le=10_000)]
PageToken = Annotated[str, Query(description="next_page_token of the page before.", max_length=200)]
Table = Annotated[str, Path(description="namespace.table", max_length=300)]
When = Annotated[
    str, Query(description="A snapshot id, a tag, an ISO time, or words such as yesterday.", max_length=200)
]
Limit = Annotated[int, Query(description="Maximum number of rows.", ge=0, le=1_000_000)]
