"""The Iceberg REST catalog as an ASGI application, to be served alone or mounted in another.

Handlers are plain functions in a thread pool. This module does what they share: authentication, branches, idempotency and
the format of responses.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as PathRoute

from lakehouse.core.errors import BadSettingError, CatalogBusyError, LakeError
from lakehouse.core.errors import ForbiddenError as CallerForbiddenError
from lakehouse.core.idempotency import LIFETIME_S, MAX_KEY, IdempotencyStore, KeyedRequest, store_answer
from lakehouse.core.names import CATALOG, MAIN
from lakehouse.rest_catalog.access import CALLER, Caller, branch_name
from lakehouse.rest_catalog.backend import CatalogBackend
from lakehouse.rest_catalog.errors import (
    CommitFailedError,
    ForbiddenError,
    NotFoundError,
    RestError,
    UnauthorizedError,
    UnprocessableError,
    UnsupportedError,
)
from lakehouse.rest_catalog.locations import table_locations
from lakehouse.rest_catalog.messages import CatalogRequest, CatalogResponse, TransactionHook
from lakehouse.rest_catalog.metadata_files import MetadataFiles, only_referenced_snapshots
from lakehouse.rest_catalog.pointers import Namespaces, Pointers
from lakehouse.rest_catalog.request_body import parse_object, read_body
from lakehouse.rest_catalog.routes import PATH, Route, find, routes
from lakehouse.rest_catalog.vending import CredentialVending, Grant

if TYPE_CHECKING:
    from lakehouse.catalogs.sql import SqlCatalog

_METHODS = ["GET", "HEAD", "POST", "DELETE", "PUT", "PATCH"]
_LOG = logging.getLogger(__name__)
#: How long a request waits for an earlier one with the same Idempotency-Key.
_WAIT_S, _PAUSE_S = 30.0, 0.05
#: A request that has not ended after this time died with its server; several servers may share a database.
_ABANDONED_S = 600


def create_app(
    catalog: SqlCatalog,
    files: Mapping[str, str],
    tokens: Mapping[str, Caller],
    vend: bool = True,
    protected: Sequence[str] = (),
    allow_file_deletion: bool = False,
) -> FastAPI:
    """Create the application.

    Args:
        catalog: the SQL catalog of `main`.
        files: PyIceberg's FileIO properties for metadata files.
        tokens: bearer tokens of which every request needs one, and who their holders are.
        vend: whether clients that request them get keys of the storage.
        protected: branches that clients may read but not change.
        allow_file_deletion: whether clients may set the properties with which engines delete files.
    """
    database = catalog.database
    backend = CatalogBackend(
        catalog, Pointers(database), Namespaces(database), MetadataFiles(files), allow_file_deletion
    )
    server = _Server(backend, _Authenticator(tokens), CredentialVending(files, vend), protected)
    app = FastAPI(title="Iceberg REST catalog", docs_url=None, redoc_url=None, openapi_url=None)
    app.router.routes.append(PathRoute("/{path:path}", server.respond, methods=_METHODS))
    return app


class _Authenticator:
    """Accepts requests with one of the bearer tokens."""

    def __init__(self, tokens: Mapping[str, Caller]) -> None:
        self._tokens = {token.encode(): caller for token, caller in tokens.items() if token}
        if not self._tokens:
            raise BadSettingError("The REST catalog has no token.", "Set at least one: without any, nobody has access.")

    def check(self, headers: Mapping[str, str]) -> Caller:
        """Return the holder of the token; refuse a request without a valid one. The comparison takes the same time for every token."""
        kind, _, token = headers.get("authorization", "").partition(" ")
        sent = token.strip().encode()
        # Every token is compared, so that the time does not depend on which one matches.
        holders = [caller for known, caller in self._tokens.items() if hmac.compare_digest(sent, known)]
        if kind.lower() != "bearer" or not holders:
            raise UnauthorizedError("The token is missing or invalid.")
        return holders[0]


class _Server:
    def __init__(
        self,
        backend: CatalogBackend,
        authenticator: _Authenticator,
        vending: CredentialVending,
        protected: Sequence[str],
    ) -> None:
        self._backend, self._authenticator, self._vending = backend, authenticator, vending
        self._protected = frozenset(protected)
        self._idempotency = IdempotencyStore(backend.catalog.database)
        self._routes = routes(self._backend, self._credentials)

    async def respond(self, request: Request) -> Response:
        """Handle any request."""
        try:
            # Before the body is read. An application that mounts the catalog states the caller itself.
            request.scope.setdefault(CALLER, self._authenticator.check(request.headers))
            body = await read_body(request)
        except RestError as exc:
            # The rest of the body is not read, so the connection cannot be used again.
            return _error_response(exc, request.method, {"Connection": "close"})
        return await run_in_threadpool(self._respond, request, body)

    def _respond(self, request: Request, body: bytes) -> Response:
        try:
            return self._route(request, body)
        except RestError as exc:
            return _error_response(exc, request.method)
        except CallerForbiddenError as exc:
            return _error_response(ForbiddenError(exc.message, exc.hint), request.method)
        except LakeError as exc:
            # After this failure of a database alone it is certain that nothing was changed.
            busy = isinstance(exc, CatalogBusyError)
            kind = "ServiceUnavailableException" if busy else "ServiceFailureException"
            return _error_response(RestError(exc.message, exc.hint, 503 if busy else 500, kind), request.method)
        except RecursionError:
            return _error_response(RestError("The request is nested too deeply."), request.method)
        except Exception:  # noqa: BLE001 - the client gets a response, the log the reason
            _LOG.exception("%s %s failed", request.method, request.url.path)
            message = "The catalog failed; see its log."
            return _error_response(RestError(message, status=500, kind="ServiceFailureException"), request.method)

    def _route(self, request: Request, body: bytes) -> Response:
        segments = _segments(request)
        if segments == ["v1", "config"] and request.method == "GET":
            return _json_response(self._config(request))
        matched = find(self._routes, request.method, segments[1:]) if segments[:1] == ["v1"] else None
        if matched is None:
            raise UnsupportedError(f"{request.method} {request.url.path} is not supported.", status=404)
        route, names, prefix = matched
        caller: Caller = request.scope[CALLER]
        # Before anything is looked up: whether a branch exists that the caller may not use is no answer of ours.
        (caller.check_change if route.is_change else caller.check_branch)(_name_of(prefix))
        parsed = CatalogRequest(
            self._branch(prefix), names, dict(request.query_params), parse_object(body), caller=caller
        )
        if route.limited_by == PATH:
            caller.check_namespace(parsed.namespace)
        if route.is_change:
            self._check_protected(parsed.branch)
        key = _own_key(caller, request.headers.get("idempotency-key", ""))
        idempotent = bool(key) and route.is_change
        response = self._once(route, parsed, key, request, body) if idempotent else route.handler(parsed)
        return self._http_response(response, request, lambda: self._grant(caller, parsed.branch))

    def _once(self, route: Route, parsed: CatalogRequest, key: str, request: Request, body: bytes) -> CatalogResponse:
        """Execute a request unless one with the same key was; a client error is stored as a response too."""
        content = b"\n".join([request.method.encode(), request.url.path.encode(), request.url.query.encode(), body])
        fingerprint = hashlib.sha256(content).hexdigest()
        earlier = self._claim(key, fingerprint)
        if earlier is not None:
            return earlier

        def store(response: CatalogResponse) -> TransactionHook:
            return lambda db: store_answer(db, key, fingerprint, response.status, response.to_json())

        try:
            response = route.handler(replace(parsed, store=store))
        except RestError as exc:
            if exc.status >= 500:
                self._idempotency.release(key)
                raise
            response = CatalogResponse(exc.status, exc.as_body())
        except Exception:
            self._idempotency.release(key)
            raise
        self._idempotency.finish(key, fingerprint, response.status, response.to_json())
        return response

    def _claim(self, key: str, fingerprint: str) -> CatalogResponse | None:
        """Return the response to an earlier request with the key, or None: then the caller executes the request."""
        deadline = time.monotonic() + _WAIT_S
        while (earlier := self._idempotency.claim(key, fingerprint, _is_abandoned)) is not None:
            if earlier.fingerprint != fingerprint:
                raise UnprocessableError("The Idempotency-Key was used for another request.")
            if earlier.status is not None:
                return CatalogResponse.from_json(earlier.status, earlier.answer)
            if time.monotonic() > deadline:
                raise CommitFailedError("A request with the same Idempotency-Key is still in progress.")
            time.sleep(_PAUSE_S)
        return None

    def _branch(self, prefix: str) -> str:
        """Return the catalog name of the branch that a prefix names."""
        if prefix in ("", MAIN, CATALOG):
            return CATALOG
        if prefix not in self._backend.catalog.branches():
            raise NotFoundError(f"There is no branch {prefix}.", kind="NoSuchNamespaceException")
        return prefix

    def _check_protected(self, branch: str) -> None:
        name = MAIN if branch == CATALOG else branch
        if name in self._protected:
            raise ForbiddenError(
                f"The branch {name} is protected (branches.protected): only checked runs change it.",
                "Write to another branch.",
            )

    def _config(self, request: Request) -> dict[str, Any]:
        """Return the client configuration; `warehouse=NAME@BRANCH` selects a branch for clients without a prefix."""
        warehouse = request.query_params.get("warehouse", "")
        branch = warehouse.rpartition("@")[2] if "@" in warehouse else ""
        if branch:
            request.scope[CALLER].check_branch(_name_of(branch))
        overrides = {"prefix": branch} if branch and self._branch(branch) else {}
        return {
            "defaults": {"namespace-separator": "%1F", **self._vending.defaults},
            "overrides": overrides,
            "endpoints": [route.endpoint for route in self._routes],
            "idempotency-key-lifetime": f"PT{LIFETIME_S // 3600}H",
        }

    def _credentials(self, request: CatalogRequest) -> CatalogResponse:
        """Return the keys of a table's storage."""
        metadata = self._backend.files.table(self._backend.pointers.get(request.branch, request.table))
        locations = table_locations(metadata.location, metadata.properties)
        return CatalogResponse(body=self._vending.credentials(locations, self._grant(request.caller, request.branch)))

    def _grant(self, caller: Caller, branch: str) -> Grant:
        """Return what a caller may have of the storage: where keys cannot be limited like the caller, nothing."""
        name = branch_name(branch)
        shares_files = not all(caller.uses(other) for other in (MAIN, *self._backend.catalog.branches()))
        return Grant(
            own_keys=caller.is_owner,
            temporary_keys=not shares_files,  # all branches of a table have their files in one folder
            may_add=caller.may_change(name) and name not in self._protected,
        )

    def _http_response(self, response: CatalogResponse, request: Request, granted: Callable[[], Grant]) -> Response:
        if response.body is not None and not response.staged:
            return _json_response(response.body, response.status)
        delegation = request.headers.get("x-iceberg-access-delegation", "")
        grant = granted() if delegation else Grant()
        if response.staged and response.body is not None:
            staged = response.body["metadata"]
            locations = table_locations(staged["location"], staged.get("properties", {}))
            storage = self._vending.config(locations, delegation, grant)
            return _json_response({"config": {}, **response.body, **storage}, response.status)
        if not response.metadata:
            return Response(status_code=response.status)
        return self._metadata_response(response, request, delegation, grant)

    def _metadata_response(
        self, response: CatalogResponse, request: Request, delegation: str, grant: Grant
    ) -> Response:
        """Return the raw metadata file inside the few fields that the protocol adds."""
        referenced = request.method == "GET" and request.query_params.get("snapshots") == "refs"
        etag = hashlib.sha256(f"{response.metadata} {referenced} {delegation} {grant}".encode()).hexdigest()[:32]
        headers = {"ETag": f'"{etag}"'}
        if request.method == "GET" and etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        raw = self._backend.files.raw(response.metadata)
        if referenced:
            raw = only_referenced_snapshots(raw)
        storage = {}
        if self._vending.vends_keys(delegation, grant):
            metadata = json.loads(raw)
            locations = table_locations(metadata.get("location", ""), metadata.get("properties", {}))
            storage = self._vending.config(locations, delegation, grant)
        envelope = json.dumps({"metadata-location": response.metadata, "config": {}, **storage}, separators=(",", ":"))
        content = envelope[:-1].encode() + b',"metadata":' + raw.strip() + b"}"
        return Response(content, response.status, headers, media_type="application/json")


def _name_of(prefix: str) -> str:
    """Return the branch that a prefix names."""
    return MAIN if prefix in ("", CATALOG) else prefix


def _own_key(caller: Caller, key: str) -> str:
    """Return an Idempotency-Key that no other caller has."""
    if len(key) > MAX_KEY:
        raise RestError(f"The Idempotency-Key is longer than {MAX_KEY} characters.")
    return hashlib.sha256(f"{caller.id}:{key}".encode()).hexdigest() if key and caller.id else key


def _is_abandoned(request: KeyedRequest) -> bool:
    return request.begun_at < time.time() - _ABANDONED_S


def _segments(request: Request) -> list[str]:
    """Return the segments of the path, not decoded yet: a name may hold a slash."""
    path: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    mounted: str = request.scope.get("root_path", "").rstrip("/")
    return path.decode("ascii", "replace").removeprefix(mounted).strip("/").split("/")


def _json_response(body: Mapping[str, Any], status: int = 200) -> Response:
    return Response(json.dumps(body, separators=(",", ":")), status, media_type="application/json")


def _error_response(error: RestError, method: str, headers: Mapping[str, str] | None = None) -> Response:
    headers = {**(headers or {}), **({"WWW-Authenticate": "Bearer"} if error.status == 401 else {})}
    if method == "HEAD":
        return Response(status_code=error.status, headers=headers)
    content = json.dumps(error.as_body())
    return Response(content, error.status, headers, media_type="application/json")
