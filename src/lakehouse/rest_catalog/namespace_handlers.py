"""Handlers of namespaces: list, create, load, change, drop."""

from __future__ import annotations

from collections.abc import Mapping

from lakehouse.core.names import TableName
from lakehouse.rest_catalog import names
from lakehouse.rest_catalog.backend import CatalogBackend
from lakehouse.rest_catalog.errors import NoSuchNamespaceError, RestError, UnprocessableError
from lakehouse.rest_catalog.messages import CatalogRequest, CatalogResponse, parse_properties
from lakehouse.rest_catalog.own_files import OwnFiles
from lakehouse.rest_catalog.pagination import cut_page, page_parameters


class NamespaceHandlers:
    """Handles the requests for namespaces."""

    def __init__(self, backend: CatalogBackend) -> None:
        self._backend, self._namespaces = backend, backend.namespaces

    def list(self, request: CatalogRequest) -> CatalogResponse:
        """Return the children of a namespace, or the top-level namespaces."""
        parent = request.query.get("parent", "")
        above = names.levels_of(names.parse_namespace(parent)) if parent else []
        depth = len(above)
        keys = filter(request.caller.sees_namespace, self._namespaces.keys(request.branch))
        every = [names.levels_of(key) for key in keys]
        children = sorted({levels[depth] for levels in every if len(levels) > depth and levels[:depth] == above})
        if parent and not children and not self._exists(request, names.namespace_key(above)):
            raise NoSuchNamespaceError(f"Namespace does not exist: {'.'.join(above)}")
        after, size = page_parameters(request)
        page, token = cut_page([name for name in children if name > after], size)
        return CatalogResponse(body={"namespaces": [[*above, name] for name in page], "next-page-token": token})

    def create(self, request: CatalogRequest) -> CatalogResponse:
        """Create a namespace."""
        levels = request.body.get("namespace")
        if not isinstance(levels, list) or not levels or not all(isinstance(level, str) for level in levels):
            raise RestError("The request lacks 'namespace', a list of names.")
        properties = parse_properties(request.body.get("properties"))
        key = request.namespace_of(levels)
        self._check_location(request, key, properties)
        response = CatalogResponse(body={"namespace": levels, "properties": properties})
        self._namespaces.create(request.branch, key, properties, request.store(response))
        return response

    def load(self, request: CatalogRequest) -> CatalogResponse:
        """Return the properties of a namespace."""
        key = request.namespace
        own = self._namespaces.properties(request.branch, key)
        # Without a location, Trino creates a table by a plain request and then fails on its first metadata file.
        properties = {"location": self._backend.namespace_location(request.branch, key), **own}
        return CatalogResponse(body={"namespace": names.levels_of(key), "properties": properties})

    def exists(self, request: CatalogRequest) -> CatalogResponse:
        """Check that there is such a namespace."""
        self._namespaces.properties(request.branch, request.namespace)
        return CatalogResponse(204)

    def change(self, request: CatalogRequest) -> CatalogResponse:
        """Set and remove properties."""
        updates = parse_properties(request.body.get("updates"))
        self._check_location(request, request.namespace, updates)
        removals = request.body.get("removals") or []
        if not isinstance(removals, list) or not all(isinstance(name, str) for name in removals):
            raise RestError("The removals must be a list of names.")
        if both := sorted(set(removals) & set(updates)):
            raise UnprocessableError(f"The properties {', '.join(both)} cannot be set and removed at once.")
        existing = set(self._namespaces.properties(request.branch, request.namespace))
        response = CatalogResponse(
            body={
                "updated": sorted(updates),
                "removed": sorted(existing & set(removals)),
                "missing": sorted(set(removals) - existing),
            }
        )
        self._namespaces.change(request.branch, request.namespace, updates, removals, request.store(response))
        return response

    def _exists(self, request: CatalogRequest, key: str) -> bool:
        return request.caller.sees_namespace(key) and self._namespaces.exists(request.branch, key)

    def _check_location(self, request: CatalogRequest, key: str, properties: Mapping[str, str]) -> None:
        """Check the location of a namespace, below which its new tables are created."""
        if "location" in properties:
            self._backend.warehouse.check(properties["location"])
            OwnFiles(self._backend, request, TableName(key, "")).check_namespace_location(properties["location"])

    def drop(self, request: CatalogRequest) -> CatalogResponse:
        """Delete an empty namespace."""
        response = CatalogResponse(204)
        self._namespaces.drop(request.branch, request.namespace, request.store(response))
        return response
