"""The Iceberg REST catalog below /catalog, with the keys of the service: the catalog itself checks their limits."""

from __future__ import annotations

import hmac
import json
import secrets
import threading

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from lakehouse.catalogs.sql import SqlCatalog
from lakehouse.config.profiles import resolve_profile
from lakehouse.config.secrets import secrets_of
from lakehouse.config.settings import Settings
from lakehouse.core.errors import LakeError
from lakehouse.http.errors import status_of
from lakehouse.http.principal import Principal
from lakehouse.lake import Lake
from lakehouse.rest_catalog.access import CALLER, Owner
from lakehouse.storage import access
from lakehouse.storage.s3 import is_remote

PATH = "/catalog"
#: The caller with the catalog's own token, who has the owner's rights there.
_TOKEN_HOLDER = Principal("catalog-token", "admin", "token of the REST catalog")
_KINDS = {401: "NotAuthorizedException", 403: "ForbiddenException", 404: "NoSuchTableException"}


class CatalogMount:
    """The catalog's application, which this service authenticates for."""

    def __init__(self, catalog: SqlCatalog, settings: Settings) -> None:
        self._catalog, self._settings = catalog, settings
        self._inner_token, self._own_token = secrets.token_hex(32), secrets_of(settings).rest_token
        self._lock = threading.Lock()
        self._app: ASGIApp | None = None

    def token_holder(self, scope: Scope) -> Principal | None:
        """The caller, if the request has the catalog's own token."""
        kind, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        matches = hmac.compare_digest(token.strip().encode(), self._own_token.encode())
        return _TOKEN_HOLDER if kind.lower() == "bearer" and matches else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(name, value) for name, value in scope["headers"] if name != b"authorization"]
        headers.append((b"authorization", f"Bearer {self._inner_token}".encode()))
        caller: Principal = scope["state"]["call"].principal
        app: ASGIApp = await run_in_threadpool(self._open) if self._app is None else self._app
        await app({**scope, "headers": headers, CALLER: caller}, receive, send)

    def _open(self) -> ASGIApp:
        """Open the catalog with its first request: it loads PyIceberg, which is a quarter of the time to start a service."""
        from lakehouse.lake.backend import warehouse_access
        from lakehouse.rest_catalog.app import create_app

        with self._lock:
            if self._app is None:
                remote = is_remote(warehouse_access(self._settings)[0])
                files = access.for_pyiceberg(resolve_profile(self._settings).s3) if remote else {}
                protected = self._settings.branches.protected
                self._app = create_app(self._catalog, files, {self._inner_token: Owner()}, protected=protected)
            return self._app


def open_catalog(lake: Lake, settings: Settings) -> CatalogMount | None:
    """The catalog of a lake that has a SQL catalog; None for other kinds, which have servers of their own."""
    catalog = lake.refs.branches.catalog
    return CatalogMount(catalog, settings) if isinstance(catalog, SqlCatalog) else None


def error_response(error: LakeError) -> Response:
    """An error in the shape that clients of Iceberg expect."""
    status = status_of(error)
    kind = _KINDS.get(status, "BadRequestException" if status < 500 else "ServiceFailureException")
    body = {"error": {"message": f"{error.message} {error.hint}".strip(), "type": kind, "code": status}}
    return Response(json.dumps(body), status, media_type="application/json")
