"""The Iceberg REST catalog as an ASGI application, to be served alone or mounted in another.

Handlers are plain functions in a pool of threads. What they share (tokens, branches, idempotency, the form of
answers) is here, once.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as Address

from lakehouse.core.errors import CatalogBusyError, LakeError
from lakehouse.core.names import CATALOG, MAIN
from lakehouse.rest_catalog.answers import Answer, Call
from lakehouse.rest_catalog.backing import Backing
from lakehouse.rest_catalog.files import MetadataFiles, only_referenced_snapshots
from lakehouse.rest_catalog.guard import Guard
from lakehouse.rest_catalog.namespace_rows import Namespaces
from lakehouse.rest_catalog.pointers import Pointers
from lakehouse.rest_catalog.problems import NotFound, Problem, Unsupported
from lakehouse.rest_catalog.receipts import LIFETIME, Receipt, Receipts
from lakehouse.rest_catalog.routes import Route, find, routes
from lakehouse.rest_catalog.vending import Vending

if TYPE_CHECKING:
    from lakehouse.catalogs.sql import SqlCatalog

_METHODS = ["GET", "HEAD", "POST", "DELETE", "PUT", "PATCH"]
_LOG = logging.getLogger(__name__)


def create_app(
    catalog: SqlCatalog,
    files: Mapping[str, str],
    tokens: Sequence[str] = (),
    vend: bool = True,
) -> FastAPI:
    """The application.

    Args:
        catalog: the SQL catalog, as `main` has it.
        files: PyIceberg's FileIO properties, with which metadata files are read and written.
        tokens: a request must bear one of these; none at all: programs on this machine may ask without.
        vend: whether the keys among `files` are told to clients that ask for them.
    """
    server = _Server(catalog, files, tokens, vend)
    app = FastAPI(title="Iceberg REST catalog", docs_url=None, redoc_url=None, openapi_url=None)
    app.router.routes.append(Address("/{path:path}", server.answer, methods=_METHODS))
    return app


class _Server:
    def __init__(self, catalog: SqlCatalog, files: Mapping[str, str], tokens: Sequence[str], vend: bool) -> None:
        database = catalog.database
        self._guard, self._vending = Guard(tokens), Vending(files, vend)
        self._backing = Backing(catalog, Pointers(database), Namespaces(database), MetadataFiles(files))
        self._receipts = Receipts(database)
        self._routes = routes(self._backing, self._credentials)

    async def answer(self, request: Request) -> Response:
        """Any request."""
        body = await request.body()
        return await run_in_threadpool(self._answer, request, body)

    def _answer(self, request: Request, body: bytes) -> Response:
        try:
            self._guard.check(request.headers)
            return self._routed(request, body)
        except Problem as exc:
            return _refusal(exc, request.method)
        except LakeError as exc:
            # Busy is the one failure of a database after which it is certain that nothing was done.
            busy = isinstance(exc, CatalogBusyError)
            kind = "ServiceUnavailableException" if busy else "ServiceFailureException"
            return _refusal(Problem(exc.message, exc.hint, 503 if busy else 500, kind), request.method)
        except Exception:  # noqa: BLE001 - the client gets an answer, the log the reason
            _LOG.exception("%s %s failed", request.method, request.url.path)
            told = "The catalog could not do that; its log says why."
            return _refusal(Problem(told, status=500, kind="ServiceFailureException"), request.method)

    def _routed(self, request: Request, body: bytes) -> Response:
        segments = _segments(request)
        if segments == ["v1", "config"] and request.method == "GET":
            return _as_json(self._config(request.query_params.get("warehouse", "")))
        found = find(self._routes, request.method, segments[1:]) if segments[:1] == ["v1"] else None
        if found is None:
            raise Unsupported(f"{request.method} {request.url.path} is not served here.", status=404)
        route, names, prefix = found
        call = Call(self._branch(prefix), names, dict(request.query_params), _object(body))
        key = request.headers.get("idempotency-key", "")
        answer = self._once(route, call, key, request, body) if key and route.makes_changes else route.handler(call)
        return self._response(answer, request)

    def _once(self, route: Route, call: Call, key: str, request: Request, body: bytes) -> Answer:
        """Do what is asked unless it was done under the same key; a refusal that would come again is an answer too."""
        asked = b"\n".join([request.method.encode(), request.url.path.encode(), request.url.query.encode(), body])
        before = self._receipts.begin(key, hashlib.sha256(asked).hexdigest())
        if before is not None:
            return before
        receipt = Receipt(key)
        try:
            answer = route.handler(replace(call, keep=receipt.keep))
        except Problem as exc:
            if exc.status >= 500:
                self._receipts.forget(key)
                raise
            answer = Answer(exc.status, exc.as_body())
        except Exception:
            self._receipts.forget(key)
            raise
        self._receipts.finish(receipt, answer)
        return answer

    def _branch(self, prefix: str) -> str:
        """The catalog's key of the branch that a prefix names."""
        if prefix in ("", MAIN, CATALOG):
            return CATALOG
        if prefix not in self._backing.catalog.branches():
            raise NotFound(f"There is no branch {prefix}.", kind="NoSuchNamespaceException")
        return prefix

    def _config(self, warehouse: str) -> dict[str, Any]:
        """What clients learn first; `warehouse=NAME@BRANCH` leads those to a branch that know no prefix."""
        branch = warehouse.rpartition("@")[2] if "@" in warehouse else ""
        overrides = {"prefix": branch} if branch and self._branch(branch) else {}
        return {
            "defaults": {"namespace-separator": "%1F", **self._vending.defaults},
            "overrides": overrides,
            "endpoints": [route.told for route in self._routes],
            "idempotency-key-lifetime": LIFETIME,
        }

    def _credentials(self, call: Call) -> Answer:
        """The keys to a table's storage, for those who ask for nothing else."""
        metadata = self._backing.files.table(self._backing.pointers.get(call.branch, call.table))
        return Answer(body=self._vending.credentials(metadata.location))

    def _response(self, answer: Answer, request: Request) -> Response:
        if answer.body is not None and not answer.staged:
            return _as_json(answer.body, answer.status)
        asked = request.headers.get("x-iceberg-access-delegation", "")
        if answer.staged and answer.body is not None:
            storage = self._vending.config(answer.body["metadata"]["location"], asked)
            return _as_json({"config": {}, **answer.body, **storage}, answer.status)
        if not answer.metadata:
            return Response(status_code=answer.status)
        return self._with_metadata(answer, request, asked)

    def _with_metadata(self, answer: Answer, request: Request, asked: str) -> Response:
        """The metadata file as it is between the few fields that the protocol puts around it."""
        referenced = request.method == "GET" and request.query_params.get("snapshots") == "refs"
        mark = hashlib.sha256(f"{answer.metadata} {referenced} {asked}".encode()).hexdigest()[:32]
        headers = {"ETag": f'"{mark}"'}
        if request.method == "GET" and mark in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        raw = self._backing.files.raw(answer.metadata)
        if referenced:
            raw = only_referenced_snapshots(raw)
        storage = {}
        if self._vending.tells(asked):
            storage = self._vending.config(json.loads(raw).get("location", ""), asked)
        around = json.dumps({"metadata-location": answer.metadata, "config": {}, **storage}, separators=(",", ":"))
        content = around[:-1].encode() + b',"metadata":' + raw.strip() + b"}"
        return Response(content, answer.status, headers, media_type="application/json")


def _segments(request: Request) -> list[str]:
    """The address in pieces that are not decoded yet: a name may hold a slash."""
    path: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    mounted: str = request.scope.get("root_path", "").rstrip("/")
    return path.decode("ascii", "replace").removeprefix(mounted).strip("/").split("/")


def _object(body: bytes) -> dict[str, Any]:
    if not body:
        return {}
    try:
        found = json.loads(body)
    except ValueError as exc:
        raise Problem("The request's body is not JSON.") from exc
    if not isinstance(found, dict):
        raise Problem("The request's body is not a JSON object.")
    return found


def _as_json(body: Mapping[str, Any], status: int = 200) -> Response:
    return Response(json.dumps(body, separators=(",", ":")), status, media_type="application/json")


def _refusal(problem: Problem, method: str) -> Response:
    headers = {"WWW-Authenticate": "Bearer"} if problem.status == 401 else {}
    if method == "HEAD":
        return Response(status_code=problem.status, headers=headers)
    content = json.dumps(problem.as_body())
    return Response(content, problem.status, headers, media_type="application/json")
