"""The endpoints of the protocol and their handlers; `/v1/config` sends the same list to clients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from urllib.parse import unquote

from lakehouse.core.dataclass import dataclass
from lakehouse.rest_catalog.backend import CatalogBackend
from lakehouse.rest_catalog.commits import CommitHandlers
from lakehouse.rest_catalog.messages import CatalogRequest, CatalogResponse
from lakehouse.rest_catalog.namespace_handlers import NamespaceHandlers
from lakehouse.rest_catalog.table_handlers import TableHandlers
from lakehouse.rest_catalog.view_handlers import ViewHandlers

Handler = Callable[[CatalogRequest], CatalogResponse]

PATH, BODY, FILTERED = "path", "body", "filtered"
_NAMESPACE = "namespaces/{namespace}"
_TABLE = f"{_NAMESPACE}/tables/{{table}}"
_VIEW = f"{_NAMESPACE}/views/{{table}}"


@dataclass(frozen=True)
class Route:
    """A method and a path template, in which `{…}` stands for one segment."""

    method: str
    template: str
    handler: Handler
    limited_by: str
    """Where the namespaces are that the caller must be allowed to use: in the `path` or in the `body`; a list is `filtered`."""

    @property
    def endpoint(self) -> str:
        """The endpoint as the protocol writes it."""
        return f"{self.method} /v1/{{prefix}}/{self.template}".replace("/views/{table}", "/views/{view}")

    @property
    def is_change(self) -> bool:
        """Whether a repeated request could have a second effect."""
        return self.method in ("POST", "DELETE") and not self.template.endswith("/metrics")

    def match(self, segments: Sequence[str]) -> dict[str, str] | None:
        """Return the values of the template's names, or None if the path does not match."""
        template = self.template.split("/")
        if len(template) != len(segments):
            return None
        names = {}
        for expected, segment in zip(template, segments, strict=True):
            if expected.startswith("{"):
                names[expected[1:-1]] = unquote(segment)
            elif expected != segment:
                return None
        return names


def routes(backend: CatalogBackend, credentials: Handler) -> tuple[Route, ...]:
    """Return all routes."""
    namespaces, tables, views = NamespaceHandlers(backend), TableHandlers(backend), ViewHandlers(backend)
    commits = CommitHandlers(backend)
    return (
        Route("GET", "namespaces", namespaces.list, FILTERED),
        Route("POST", "namespaces", namespaces.create, BODY),
        Route("GET", _NAMESPACE, namespaces.load, PATH),
        Route("HEAD", _NAMESPACE, namespaces.exists, PATH),
        Route("DELETE", _NAMESPACE, namespaces.drop, PATH),
        Route("POST", f"{_NAMESPACE}/properties", namespaces.change, PATH),
        Route("GET", f"{_NAMESPACE}/tables", tables.list, PATH),
        Route("POST", f"{_NAMESPACE}/tables", tables.create, PATH),
        Route("GET", _TABLE, tables.load, PATH),
        Route("HEAD", _TABLE, tables.exists, PATH),
        Route("POST", _TABLE, commits.table, PATH),
        Route("DELETE", _TABLE, tables.drop, PATH),
        Route("GET", f"{_TABLE}/credentials", credentials, PATH),
        Route("POST", f"{_TABLE}/metrics", tables.report_metrics, PATH),
        Route("POST", f"{_NAMESPACE}/register", tables.register, PATH),
        Route("POST", "tables/rename", tables.rename, BODY),
        Route("POST", "transactions/commit", commits.transaction, BODY),
        Route("GET", f"{_NAMESPACE}/views", views.list, PATH),
        Route("POST", f"{_NAMESPACE}/views", views.create, PATH),
        Route("GET", _VIEW, views.load, PATH),
        Route("HEAD", _VIEW, views.exists, PATH),
        Route("POST", _VIEW, views.change, PATH),
        Route("DELETE", _VIEW, views.drop, PATH),
        Route("POST", f"{_NAMESPACE}/register-view", views.register, PATH),
        Route("POST", "views/rename", views.rename, BODY),
    )


def find(known: Sequence[Route], method: str, segments: Sequence[str]) -> tuple[Route, dict[str, str], str] | None:
    """Return the route of a path below `/v1`, the names in the path, and its prefix, if any."""
    for prefixed in (0, 1):
        for route in known:
            if route.method == method and (names := route.match(segments[prefixed:])) is not None:
                return route, names, unquote(segments[0]) if prefixed else ""
    return None
