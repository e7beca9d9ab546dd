"""Handlers of views: list, create, load, change, register, rename, drop."""

from __future__ import annotations

import uuid

from pyiceberg.catalog.rest import CreateViewRequest
from pyiceberg.view.metadata import ViewMetadata

from lakehouse.catalogs.sql.rows import VIEW
from lakehouse.rest_catalog import names, table_policy, view_updates
from lakehouse.rest_catalog.backend import COMMIT_ATTEMPTS, CatalogBackend, parse_model
from lakehouse.rest_catalog.commits import put_new
from lakehouse.rest_catalog.errors import CommitFailedError
from lakehouse.rest_catalog.messages import CatalogRequest, CatalogResponse, parse_properties
from lakehouse.rest_catalog.metadata_files import new_location
from lakehouse.rest_catalog.own_files import OwnFiles
from lakehouse.rest_catalog.pagination import list_page
from lakehouse.rest_catalog.pointers import Swap


class ViewHandlers:
    """Handles the requests for views."""

    def __init__(self, backend: CatalogBackend) -> None:
        self._backend = backend

    def list(self, request: CatalogRequest) -> CatalogResponse:
        """Return the views of a namespace."""
        return list_page(self._backend, request, VIEW)

    def load(self, request: CatalogRequest) -> CatalogResponse:
        """Return the metadata of a view."""
        return CatalogResponse(metadata=self._backend.pointers.get(request.branch, request.table, VIEW))

    def exists(self, request: CatalogRequest) -> CatalogResponse:
        """Check that there is such a view."""
        self._backend.pointers.get(request.branch, request.table, VIEW)
        return CatalogResponse(204)

    def create(self, request: CatalogRequest) -> CatalogResponse:
        """Create a view."""
        name = names.table_name(request.namespace, request.text("name"))
        backend = self._backend
        backend.pointers.check_free(request.branch, name, VIEW)
        properties = parse_properties(request.body.get("properties"))
        own = {"location": request.body.get("location"), "name": name.table, "properties": properties}
        body = parse_model(CreateViewRequest, {**request.body, **own})
        own_files = OwnFiles(backend, request, name)
        default = own_files.free_location(backend.default_location(request.branch, name), uuid.uuid4().hex[:8])
        folder = (body.location or default).rstrip("/")
        metadata = view_updates.new_view(folder, body.view_schema, body.view_version, properties)
        table_policy.check_locations(backend, own_files, metadata, None)
        location = new_location(folder, properties)
        response = CatalogResponse(metadata=location)
        put_new(backend, request, Swap(name, None, location, VIEW), _serialize(metadata), response)
        return response

    def change(self, request: CatalogRequest) -> CatalogResponse:
        """Apply updates to a view; retry if the view has changed meanwhile and the requirements still hold."""
        commit = parse_model(view_updates.CommitViewRequest, request.body)
        backend, name = self._backend, request.table
        for _ in range(COMMIT_ATTEMPTS):
            start = backend.pointers.get(request.branch, name, VIEW)
            base = backend.files.view(start)
            view_updates.check(commit.requirements, base)
            result = view_updates.apply_updates(base, commit.updates)
            if result is base:
                return CatalogResponse(metadata=start)
            table_policy.check_locations(backend, OwnFiles(backend, request, name), result, base)
            end = new_location(result.location, result.properties, start)
            backend.files.write(end, _serialize(result))
            response = CatalogResponse(metadata=end)
            if backend.pointers.swap(request.branch, [Swap(name, start, end, VIEW)], request.store(response)):
                return response
            backend.files.remove(end)
        raise CommitFailedError(f"Other clients changed {names.format_name(name)} {COMMIT_ATTEMPTS} times meanwhile.")

    def register(self, request: CatalogRequest) -> CatalogResponse:
        """Set the pointer of a new name to existing metadata of a view."""
        name = names.table_name(request.namespace, request.text("name"))
        location = request.text("metadata-location")
        self._backend.warehouse.check_metadata_file(location)
        OwnFiles(self._backend, request, name).check_registration(location)
        self._backend.files.view(location)
        response = CatalogResponse(metadata=location)
        self._backend.pointers.swap(request.branch, [Swap(name, None, location, VIEW)], request.store(response))
        return response

    def rename(self, request: CatalogRequest) -> CatalogResponse:
        """Rename a view."""
        start, end = (request.identifier(request.body.get(role)) for role in ("source", "destination"))
        response = CatalogResponse(204)
        self._backend.pointers.rename(request.branch, start, end, VIEW, request.store(response))
        return response

    def drop(self, request: CatalogRequest) -> CatalogResponse:
        """Delete a view."""
        response = CatalogResponse(204)
        self._backend.pointers.drop_view(request.branch, request.table, request.store(response))
        return response


def _serialize(metadata: ViewMetadata) -> bytes:
    return str(metadata.model_dump_json()).encode()
