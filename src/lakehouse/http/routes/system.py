"""Health of the service: whether it runs, and whether it can answer queries."""

from __future__ import annotations

from typing import Any

from fastapi import Response

from lakehouse.core.version import __version__
from lakehouse.http.principal import PUBLIC, READ
from lakehouse.http.registry import Routes
from lakehouse.http.service import CallContext

routes = Routes("service")


@routes.get("/healthz", PUBLIC)
def healthz() -> dict[str, str]:
    """Whether the service runs."""
    return {"status": "ok", "version": __version__}


@routes.get("/readyz", PUBLIC)
def readyz(call: CallContext, response: Response) -> dict[str, Any]:
    """Whether the service can answer: the catalog responds."""
    call.service.lake.branches()
    return {"status": "ok"}


@routes.get("/whoami", READ)
def whoami(call: CallContext) -> dict[str, Any]:
    """The caller as the service sees it."""
    principal = call.principal
    return {
        "id": principal.id,
        "name": principal.name,
        "scope": principal.scope,
        "namespaces": list(principal.namespaces),
        "branches": list(principal.branches),
    }
