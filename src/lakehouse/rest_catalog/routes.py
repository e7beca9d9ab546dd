"""The protocol's addresses, and which handler answers each: the one list that `/v1/config` also tells clients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from lakehouse.rest_catalog.answers import Answer, Call
from lakehouse.rest_catalog.backing import Backing
from lakehouse.rest_catalog.commits import Committer
from lakehouse.rest_catalog.namespaces import NamespaceCalls
from lakehouse.rest_catalog.tables import Tables
from lakehouse.rest_catalog.view_calls import ViewCalls

Handler = Callable[[Call], Answer]

_NAMESPACE = "namespaces/{namespace}"
_TABLE = f"{_NAMESPACE}/tables/{{table}}"
_VIEW = f"{_NAMESPACE}/views/{{table}}"


@dataclass(frozen=True)
class Route:
    """A method and an address, in which `{…}` stands for one segment."""

    method: str
    template: str
    handler: Handler

    @property
    def told(self) -> str:
        """The endpoint in the protocol's words."""
        return f"{self.method} /v1/{{prefix}}/{self.template}".replace("/views/{table}", "/views/{view}")

    @property
    def makes_changes(self) -> bool:
        """Whether sending it twice could do it twice."""
        return self.method in ("POST", "DELETE") and not self.template.endswith("/metrics")

    def match(self, segments: Sequence[str]) -> dict[str, str] | None:
        """What stands in the place of the names, or None if this is another address."""
        wanted = self.template.split("/")
        if len(wanted) != len(segments):
            return None
        found = {}
        for want, given in zip(wanted, segments, strict=True):
            if want.startswith("{"):
                found[want[1:-1]] = unquote(given)
            elif want != given:
                return None
        return found


def routes(backing: Backing, credentials: Handler) -> tuple[Route, ...]:
    """Every address that is served."""
    spaces, tables, views = NamespaceCalls(backing), Tables(backing), ViewCalls(backing)
    commits = Committer(backing)
    return (
        Route("GET", "namespaces", spaces.list),
        Route("POST", "namespaces", spaces.create),
        Route("GET", _NAMESPACE, spaces.load),
        Route("HEAD", _NAMESPACE, spaces.exists),
        Route("DELETE", _NAMESPACE, spaces.drop),
        Route("POST", f"{_NAMESPACE}/properties", spaces.change),
        Route("GET", f"{_NAMESPACE}/tables", tables.list),
        Route("POST", f"{_NAMESPACE}/tables", tables.create),
        Route("GET", _TABLE, tables.load),
        Route("HEAD", _TABLE, tables.exists),
        Route("POST", _TABLE, commits.table),
        Route("DELETE", _TABLE, tables.drop),
        Route("GET", f"{_TABLE}/credentials", credentials),
        Route("POST", f"{_TABLE}/metrics", tables.report_metrics),
        Route("POST", f"{_NAMESPACE}/register", tables.register),
        Route("POST", "tables/rename", tables.rename),
        Route("POST", "transactions/commit", commits.transaction),
        Route("GET", f"{_NAMESPACE}/views", views.list),
        Route("POST", f"{_NAMESPACE}/views", views.create),
        Route("GET", _VIEW, views.load),
        Route("HEAD", _VIEW, views.exists),
        Route("POST", _VIEW, views.change),
        Route("DELETE", _VIEW, views.drop),
        Route("POST", f"{_NAMESPACE}/register-view", views.register),
        Route("POST", "views/rename", views.rename),
    )


def find(known: Sequence[Route], method: str, segments: Sequence[str]) -> tuple[Route, dict[str, str], str] | None:
    """The route of an address behind `/v1`, the names in it, and the prefix in front of it, if there is one."""
    for prefixed in (0, 1):
        for route in known:
            if route.method == method and (found := route.match(segments[prefixed:])) is not None:
                return route, found, unquote(segments[0]) if prefixed else ""
    return None
