"""The Iceberg REST catalog below /catalog: the same keys; a key's limits hold for the branch and namespace in the address."""

from __future__ import annotations

import hmac
import json
import secrets
from urllib.parse import unquote

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from lakehouse.catalogs.sql import SqlCatalog
from lakehouse.config.profiles import resolve_profile
from lakehouse.config.secrets import secrets_of
from lakehouse.config.settings import Settings
from lakehouse.core.errors import ForbiddenError, LakeError
from lakehouse.core.names import CATALOG, MAIN
from lakehouse.http.errors import status_of
from lakehouse.http.principal import Principal
from lakehouse.lake import Lake
from lakehouse.storage import access
from lakehouse.storage.s3 import is_remote

PATH = "/catalog"
#: The caller with the catalog's own token, who has the owner's rights there.
_TOKEN_HOLDER = Principal("catalog-token", "admin", "token of the REST catalog")
_KINDS = {401: "NotAuthorizedException", 403: "ForbiddenException", 404: "NoSuchTableException"}
_READS = ("GET", "HEAD")


class CatalogMount:
    """The catalog's application, which this service authenticates for."""

    def __init__(self, lake: Lake, catalog: SqlCatalog, settings: Settings) -> None:
        from lakehouse.lake.backend import warehouse_access
        from lakehouse.rest_catalog.app import create_app

        resolved = resolve_profile(settings)
        remote = is_remote(warehouse_access(settings)[0])
        self._inner_token, self._own_token = secrets.token_hex(32), secrets_of(settings).rest_token
        files = access.for_pyiceberg(resolved.s3) if remote else {}
        self._app: ASGIApp = create_app(catalog, files, [self._inner_token], protected=settings.branches.protected)

    def token_holder(self, scope: Scope) -> Principal | None:
        """The caller, if the request has the catalog's own token."""
        kind, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        matches = hmac.compare_digest(token.strip().encode(), self._own_token.encode())
        return _TOKEN_HOLDER if kind.lower() == "bearer" and matches else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        principal: Principal = scope["state"]["call"].principal
        check(principal, scope["method"], _segments(scope))
        headers = [(name, value) for name, value in scope["headers"] if name != b"authorization"]
        headers.append((b"authorization", f"Bearer {self._inner_token}".encode()))
        await self._app({**scope, "headers": headers}, receive, send)


def open_catalog(lake: Lake, settings: Settings) -> CatalogMount | None:
    """The catalog of a lake that has a SQL catalog; None for other kinds, which have servers of their own."""
    catalog = lake.refs.branches.catalog
    return CatalogMount(lake, catalog, settings) if isinstance(catalog, SqlCatalog) else None


def check(principal: Principal, method: str, segments: list[str]) -> None:
    """Refuse what the caller's limits do not allow: the address names the branch and the namespace."""
    if segments[:2] == ["v1", "config"]:
        return
    rest = segments[1:]
    prefix = "" if rest[:1] in (["namespaces"], ["tables"], ["views"], ["transactions"]) else rest[0] if rest else ""
    branch = MAIN if prefix in ("", CATALOG) else prefix
    rest = rest[1:] if prefix else rest
    principal.check_branch(branch)
    if method not in _READS:
        principal.check_change(branch)
    if principal.namespaces and not (rest[:1] == ["namespaces"] and rest[1:2] and rest[1] in principal.namespaces):
        raise ForbiddenError(
            f"The key {principal.id} is limited to namespaces: {', '.join(principal.namespaces)}.",
            "Address tables as namespaces/NAMESPACE/tables/TABLE.",
        )


def error_response(error: LakeError) -> Response:
    """An error in the shape that clients of Iceberg expect."""
    status = status_of(error)
    kind = _KINDS.get(status, "BadRequestException" if status < 500 else "ServiceFailureException")
    body = {"error": {"message": f"{error.message} {error.hint}".strip(), "type": kind, "code": status}}
    return Response(json.dumps(body), status, media_type="application/json")


def _segments(scope: Scope) -> list[str]:
    path: str = (scope.get("raw_path") or scope["path"].encode()).decode("ascii", "replace")
    return [unquote(part) for part in path.removeprefix(PATH).strip("/").split("/")]
