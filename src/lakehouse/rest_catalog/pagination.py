"""Lists, whole or in pages: the token of a page is its last name."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakehouse.rest_catalog.errors import RestError
from lakehouse.rest_catalog.messages import CatalogRequest, CatalogResponse
from lakehouse.rest_catalog.names import levels_of

if TYPE_CHECKING:
    from lakehouse.rest_catalog.backend import CatalogBackend

_DEFAULT_SIZE = 1000


def list_page(backend: CatalogBackend, request: CatalogRequest, kind: str) -> CatalogResponse:
    """Return the tables or views of a namespace."""
    after, size = page_parameters(request)
    listed = backend.pointers.names(request.branch, request.namespace, kind, after, size + 1 if size else 0)
    names, token = cut_page(listed, size)
    namespace = levels_of(request.namespace)
    identifiers = [{"namespace": namespace, "name": name} for name in names]
    return CatalogResponse(body={"identifiers": identifiers, "next-page-token": token})


def page_parameters(request: CatalogRequest) -> tuple[str, int]:
    """Return the name to continue after and the page size; 0 means all, for clients without pagination."""
    size, token = request.query.get("pageSize", ""), request.query.get("pageToken", "")
    if not size and "pageToken" not in request.query:
        return "", 0
    if size and not (size.isascii() and size.isdigit() and int(size) > 0):
        raise RestError(f"pageSize={size!r} is not a positive number.")
    try:
        after = base64.urlsafe_b64decode(token.encode("ascii")).decode()
    except (binascii.Error, ValueError) as exc:
        raise RestError("The pageToken is not one of this server.") from exc
    return after, int(size) if size else _DEFAULT_SIZE


def cut_page(names: Sequence[str], size: int) -> tuple[Sequence[str], str | None]:
    """Return the first `size` names, and the token of the next page if there is one."""
    if not size or len(names) <= size:
        return names, None
    return names[:size], base64.urlsafe_b64encode(names[size - 1].encode()).decode()
