"""The service as an ASGI application over an open lake."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from lakehouse.config.settings import Settings
from lakehouse.core import __version__
from lakehouse.core.errors import BadRequestError, LakeError, NotFoundError
from lakehouse.core.idempotency import IdempotencyStore
from lakehouse.core.names import listed
from lakehouse.http.audit import AuditLog
from lakehouse.http.authentication import Authenticator
from lakehouse.http.catalog import PATH as CATALOG_PATH
from lakehouse.http.catalog import open_catalog
from lakehouse.http.database import ServiceDatabase
from lakehouse.http.errors import unexpected
from lakehouse.http.jobs.runner import JobRunner
from lakehouse.http.keys import KeyStore
from lakehouse.http.limits import Limits
from lakehouse.http.metrics import Metrics
from lakehouse.http.middleware import Gate
from lakehouse.http.oidc import OidcVerifier
from lakehouse.http.openapi import describe
from lakehouse.http.pages import failure_response
from lakehouse.http.queries import open_queries
from lakehouse.http.routes import ask, console, ingest, jobs, maintenance, mcp, query, refs, runs, system, tables
from lakehouse.http.routes import keys as key_routes
from lakehouse.http.service import Service, call_of
from lakehouse.http.sessions import Sessions, SignInLinks
from lakehouse.http.statements import StatementStore
from lakehouse.lake import Lake
from lakehouse.lake.assemble import parse_size

_ROUTES = (query, system, tables, ask, refs, ingest, jobs, runs, maintenance, key_routes, mcp, console)
_SHOWN_VALIDATION_ERRORS = 3


def create_service(lake: Lake, settings: Settings) -> Service:
    """The parts of a service over a lake."""
    serve, logs = settings.serve, lake.folder / "logs"
    keys, database = KeyStore(lake.folder), ServiceDatabase(lake.folder / "service.db")
    sessions = Sessions(lake.folder, keys, database, bool(serve.tls_cert_file) or serve.behind_proxy)
    queries = open_queries(settings)
    jobs = JobRunner(database, settings, lake.folder / "run" / "uploads", logs / "serve.log")
    gauges = {
        "queries_running": ("Statements that run on a query process", lambda: float(queries.pool.busy)),
        "queries_waiting": ("Statements that wait for a query process", lambda: float(queries.pool.waiting)),
        "jobs_running": ("Jobs that run", lambda: float(jobs.counts().get("running", 0))),
        "jobs_waiting": ("Jobs that wait", lambda: float(jobs.counts().get("queued", 0))),
    }
    return Service(
        lake=lake,
        settings=settings,
        keys=keys,
        authenticator=Authenticator(keys, sessions, _oidc(settings), is_off=not settings.auth),
        queries=queries,
        statements=StatementStore(lake.folder / "run" / "statements"),
        jobs=jobs,
        idempotency=IdempotencyStore(database),
        limits=Limits(serve.rate, serve.concurrency),
        audit=AuditLog(logs / "audit", parse_size("serve.audit_size", serve.audit_size)),
        metrics=Metrics(gauges),
        catalog=open_catalog(lake, settings),
        database=database,
        sessions=sessions,
        links=SignInLinks(lake.folder),
    )


def create_app(service: Service) -> ASGIApp:
    """The application: the routes behind the gate."""
    return Gate(api := create_api(service), service, api.router)


def create_api(service: Service) -> FastAPI:
    """The routes without the gate."""
    api = FastAPI(title="lakehouse", version=__version__, docs_url=None, redoc_url=None, description=_ABOUT)
    for module in _ROUTES:
        module.routes.add_to(api)
    api.openapi = lambda: describe(api)  # type: ignore[method-assign] # as FastAPI's documentation extends it
    if service.catalog is not None:
        api.mount(CATALOG_PATH, service.catalog)
    api.add_exception_handler(LakeError, _explain_error)
    api.add_exception_handler(Exception, _explain_bug)
    api.add_exception_handler(RequestValidationError, _explain_validation)
    api.add_exception_handler(HTTPException, _explain_http)
    return api


_ABOUT = "Tables, SQL, history, branches and pipelines of one lake. Every error has the same shape."


def _oidc(settings: Settings) -> OidcVerifier | None:
    serve = settings.serve
    if not serve.oidc_issuer:
        return None
    audience = serve.oidc_audience or "lakehouse"
    return OidcVerifier(serve.oidc_issuer, audience, serve.oidc_groups, serve.oidc_claim, serve.oidc_jwks)


def _failed(request: Request, error: LakeError) -> Response:
    """The answer to a request that failed; the audit log gets its error code."""
    call = call_of(request)
    call.note(error=error.code)
    return failure_response(request.scope, error, call.principal, call.service.sessions)


async def _explain_error(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, LakeError)
    return _failed(request, exc)


async def _explain_bug(request: Request, exc: Exception) -> Response:
    if isinstance(exc.__cause__, LakeError):  # part of the answer is sent, so nobody reads this one
        return _failed(request, exc.__cause__)
    return _failed(request, unexpected(exc, request.scope["state"]["call"].request_id))


async def _explain_validation(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, RequestValidationError)
    errors: list[Any] = list(exc.errors())
    parts = [f"{'.'.join(str(part) for part in error['loc'][1:]) or 'body'}: {error['msg']}" for error in errors]
    message = listed([part[:200] for part in parts], _SHOWN_VALIDATION_ERRORS, "; ")
    return _failed(request, BadRequestError(f"The request is wrong: {message}.", "See /docs."))


async def _explain_http(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, HTTPException)
    if isinstance(exc.__cause__, LakeError):  # raised while the body was read
        return _failed(request, exc.__cause__)
    if exc.status_code == 404:
        return _failed(request, NotFoundError(f"There is no {request.method} {request.url.path[:200]}.", "See /docs."))
    return _failed(request, BadRequestError(f"The request is wrong: {exc.detail}.", "See /docs."))
